package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/capture/shell"
)

// Facts are what a device says about itself; some of it is another after a reboot.
type Facts struct {
	Serial       string
	Model        string
	Manufacturer string
	// API is ro.build.version.sdk; 0 if the device does not tell.
	API     int
	Release string
	// BuildType is user, userdebug or eng.
	BuildType string
	// ABI is the first that the device runs, such as arm64-v8a; Fingerprint identifies its
	// build of Android; Emulator is true for an emulator. "" and false where it does not say.
	ABI, Fingerprint string
	Emulator         bool
	// HeapLimit is how large the Java heap of an app may grow, in bytes
	// (dalvik.vm.heapgrowthlimit, or heapsize where that is not set); 0 if unknown.
	HeapLimit int64
	// UID of the shell: 0 is root, 2000 the usual shell.
	UID int
	// Up is the device's clock when it was asked: time since boot.
	Up time.Duration
	// Boot is another text after each start of the device; empty where the device
	// does not tell (/proc/sys/kernel/random/boot_id).
	Boot string
	// TimeScale is device seconds per real second: 1 for a real phone. A device
	// that stands in for one in a test tells another in the property
	// leakgate.time_scale.
	TimeScale float64
}

// scaleProperty is where a stand-in device tells its time scale.
const scaleProperty = "leakgate.time_scale"

// askFacts is the real time that a device has to describe itself.
const askFacts = 20 * time.Second

// ReadFacts asks a device to describe itself, in one round trip.
func ReadFacts(ctx context.Context, dev Device) (Facts, error) {
	m := shell.NewMarker()
	a, err := shell.Ask(ctx, dev, askFacts, m.Join([]shell.Part{
		{"up", "cat /proc/uptime"},
		{"id", "id"},
		{"sdk", "getprop ro.build.version.sdk"},
		{"release", "getprop ro.build.version.release"},
		{"model", "getprop ro.product.model"},
		{"maker", "getprop ro.product.manufacturer"},
		{"build", "getprop ro.build.type"},
		{"scale", "getprop " + scaleProperty},
		{"boot", bootCommand},
		{"abi", "getprop ro.product.cpu.abi"},
		{"fingerprint", "getprop ro.build.fingerprint"},
		// ro.kernel.qemu until Android 11, ro.boot.qemu after it (goldfish, init.ranchu.rc).
		{"emulator", "getprop ro.kernel.qemu; getprop ro.boot.qemu"},
		{"limit", "getprop dalvik.vm.heapgrowthlimit"},
		{"size", "getprop dalvik.vm.heapsize"},
	}))
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return Facts{}, fmt.Errorf("%w: reconnect it or run `adb reconnect`; restart the device if that does not help", err)
	case err != nil:
		return Facts{}, fmt.Errorf("ask device: %w", err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return Facts{}, fmt.Errorf("ask device %s: its shell answered %q; is /system/bin/sh usable?", dev.Serial(), shell.Clip(string(a.Stdout)+string(a.Stderr)))
	}
	text := func(label string) string { return shell.Clip(string(parts[label])) }
	up, err := procfs.ParseUptime(parts["up"])
	if err != nil {
		return Facts{}, fmt.Errorf("ask device %s for its clock: %w", dev.Serial(), err)
	}
	f := Facts{
		Serial: dev.Serial(), Model: text("model"), Manufacturer: text("maker"),
		Release: text("release"), BuildType: text("build"), UID: dumpsys.ParseUID(text("id")), Up: up,
		Boot: bootID(parts["boot"]), ABI: text("abi"), Fingerprint: text("fingerprint"),
		Emulator: bytes.Contains(parts["emulator"], []byte("1")),
	}
	for _, label := range []string{"size", "limit"} {
		if limit := dumpsys.ParseMemorySize(parts[label]); limit.Known && limit.N > 0 {
			f.HeapLimit = limit.N
		}
	}
	f.API, _ = strconv.Atoi(text("sdk"))
	f.TimeScale, err = parseScale(text("scale"))
	return f, err
}

func parseScale(text string) (float64, error) {
	if text == "" {
		return 1, nil
	}
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil || !(scale >= 0.0001 && scale <= 10000) {
		return 0, fmt.Errorf("read %s: %q is not a number from 0.0001 to 10000", scaleProperty, text)
	}
	return scale, nil
}

// Describe gives one line about the device.
func (f Facts) Describe() string {
	root := "shell"
	if f.UID == 0 {
		root = "root"
	}
	s := fmt.Sprintf("%s (%s, Android %s, API %d, %s build, %s)", f.Serial, f.Model, f.Release, f.API, f.BuildType, root)
	if f.TimeScale != 1 {
		s += fmt.Sprintf(" at %gx device time", f.TimeScale)
	}
	return s
}
