package androidsim

import "time"

// The serials and packages of the demo phones.
const (
	demoSerial  = "demo-phone"
	demoPackage = "com.shop"
	cartPackage = "com.cart"
)

// Demo returns the phone of `leakgate demo`: a rooted phone with Android 14 and
// the app com.shop. The app's main process leaks 400 MB/h of Java memory, on
// top of garbage collections and noise; its process com.shop:push is busy but
// healthy.
func Demo(scale float64, seed uint64) *Phone {
	return New(demoOptions(scale, seed, ProcessSpec{Models: []Model{Leak(Java, 400, 0)}}))
}

// ServedDemo returns a phone like Demo for hours of interactive use, with tests
// of the app, one of which leaks. The main process leaks 150 MB/h; after three
// hours, when its heap is full, it dies, so the phone can be served all day. A
// second app, com.cart, is healthy until its screens are opened; it is for
// suites whose specs take seconds.
func ServedDemo(scale float64, seed uint64) *Phone {
	o := demoOptions(scale, seed, ProcessSpec{Models: []Model{Leak(Java, 150, 0)}, CrashAfter: 3 * time.Hour})
	o.Apps = append(o.Apps, demoCart())
	o.Instrumentations = []Instrumentation{{
		Package: demoPackage + ".test", Target: demoPackage,
		Models: []Model{Typical(), WarmUp(20, 10*time.Second), GCSawtooth(8, 20*time.Second), Noise(2, 0.7)},
		Tests: []Test{
			{Name: "com.shop.CartTest#addsItem", Took: 2 * time.Second},
			{
				Name: "com.shop.CartTest#checksOut", Took: 4 * time.Second,
				Leaks: []LeakedActivities{{"com.shop.CheckoutActivity", 3}},
			},
			{Name: "com.shop.LoginTest#signsIn", Took: 3 * time.Second},
			{Name: "com.shop.SearchTest#findsByName", Took: 2 * time.Second},
			{Name: "com.shop.SearchTest#findsByPhoto", Outcome: TestIgnored},
		},
	}, demoCartTests()}
	return New(o)
}

// demoCart returns com.cart, an app whose screens are healthy, linger or leak.
// Its memory fluctuates little, like that of an app that settles after each
// step.
func demoCart() App {
	return App{
		Package: cartPackage, Debuggable: true,
		Processes: []ProcessSpec{
			{
				Name: cartPackage, RestartAfter: 5 * time.Second,
				Models: []Model{Typical(), WarmUp(6, 15*time.Second), GCSawtooth(4, 2*time.Minute), Noise(0.3, 0.7)},
			},
			{
				Name: cartPackage + ":sync", RestartAfter: 5 * time.Second,
				Models: []Model{Typical(), GCSawtooth(4, 4*time.Minute), Noise(0.3, 0.7)},
			},
		},
		Screens: []Screen{
			{Class: ".MainActivity", Views: 120},
			{Class: ".CartActivity", Views: 60},
			{Class: ".ProductActivity", Lingers: 3 * time.Second},
			{Class: ".CheckoutActivity", Leaks: true},
			{Class: ".LegacyActivity", Leaks: true, HeldBy: "LegacyPage.sInstance"},
			{Class: ".SearchActivity", NativeKB: 300},
		},
	}
}

// demoCartTests returns the tests of com.cart, one of which leaks.
func demoCartTests() Instrumentation {
	return Instrumentation{
		Package: cartPackage + ".test", Target: cartPackage,
		Tests: []Test{
			{Name: "com.cart.CartTest#addsItem", Took: 2 * time.Second},
			{Name: "com.cart.CartTest#removesItem", Took: 2 * time.Second},
			{
				Name: "com.cart.CheckoutTest#pays", Took: 4 * time.Second,
				Leaks: []LeakedActivities{{"com.cart.CheckoutActivity", 1}},
			},
			{Name: "com.cart.ProductTest#opens", Took: 3 * time.Second},
			{Name: "com.cart.SearchTest#findsByName", Took: 2 * time.Second},
		},
	}
}

// demoOptions returns the options of the phone; it adds the given models to the
// main process.
func demoOptions(scale float64, seed uint64, main ProcessSpec) Options {
	main.Name, main.RestartAfter = demoPackage, 5*time.Second
	main.Models = append([]Model{Typical(), WarmUp(30, 2*time.Minute), GCSawtooth(16, 90*time.Second), Noise(5, 0.7)},
		main.Models...)
	return Options{
		Serial: demoSerial, Model: "Pixel 7 Demo", API: 34, Scale: scale, Seed: seed, Root: true,
		BuildType: "userdebug", HeapGrowthLimit: 512,
		Apps: []App{{Package: demoPackage, Debuggable: true, Processes: []ProcessSpec{main, {
			Name: demoPackage + ":push", RestartAfter: 5 * time.Second,
			Models: []Model{Typical(), GCSawtooth(10, 4*time.Minute), Noise(3, 0.7)},
		}}}},
	}
}
