package androidsim

import "time"

// The serial and the package of the phones for demonstrations.
const (
	demoSerial  = "demo-phone"
	demoPackage = "com.shop"
)

// Demo is a phone for a demonstration: Android 14, rooted, with the app com.shop
// whose main process leaks 400 MB/h of Java memory under GC and noise, and whose
// process com.shop:push is busy but healthy.
func Demo(scale float64, seed uint64) *Phone {
	return New(demoOptions(scale, seed, ProcessSpec{Models: []Model{Leak(Java, 400, 0)}}))
}

// ServedDemo is the phone of Demo for one who tries things out for hours, with tests of
// the app, one of which leaks. Its main process leaks 150 MB/h, and dies of that after
// three hours, as an app does whose heap is full: the phone may be served all day.
func ServedDemo(scale float64, seed uint64) *Phone {
	o := demoOptions(scale, seed, ProcessSpec{Models: []Model{Leak(Java, 150, 0)}, CrashAfter: 3 * time.Hour})
	o.Instrumentations = []Instrumentation{{
		Package: demoPackage + ".test", Target: demoPackage,
		Models: []Model{Typical(), WarmUp(20, 10*time.Second), GCSawtooth(8, 20*time.Second), Noise(2, 0.7)},
		Tests: []Test{
			{Name: "com.shop.CartTest#addsItem", Took: 2 * time.Second},
			{Name: "com.shop.CartTest#checksOut", Took: 4 * time.Second, Leaks: []LeakedActivities{{"com.shop.CheckoutActivity", 3}}},
			{Name: "com.shop.LoginTest#signsIn", Took: 3 * time.Second},
			{Name: "com.shop.SearchTest#findsByName", Took: 2 * time.Second},
			{Name: "com.shop.SearchTest#findsByPhoto", Outcome: TestIgnored},
		},
	}}
	return New(o)
}

// demoOptions describe the phone, whose main process has more models than others.
func demoOptions(scale float64, seed uint64, main ProcessSpec) Options {
	main.Name, main.RestartAfter = demoPackage, 5*time.Second
	main.Models = append([]Model{Typical(), WarmUp(30, 2*time.Minute), GCSawtooth(16, 90*time.Second), Noise(5, 0.7)}, main.Models...)
	return Options{
		Serial: demoSerial, Model: "Pixel 7 Demo", API: 34, Scale: scale, Seed: seed, Root: true, BuildType: "userdebug", HeapGrowthLimit: 512,
		Apps: []App{{Package: demoPackage, Debuggable: true, Processes: []ProcessSpec{main, {
			Name: demoPackage + ":push", RestartAfter: 5 * time.Second, Models: []Model{Typical(), GCSawtooth(10, 4*time.Minute), Noise(3, 0.7)},
		}}}},
	}
}
