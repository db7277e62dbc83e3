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
	"github.com/leakgate/leakgate/internal/text"
)

// Facts describe a device; some fields change across a reboot.
type Facts struct {
	Serial       string
	Model        string
	Manufacturer string
	// API is ro.build.version.sdk; 0 if unknown.
	API     int
	Release string
	// BuildType is user, userdebug or eng.
	BuildType string
	// ABI is the preferred ABI, such as arm64-v8a; Fingerprint identifies the
	// Android build. Emulator reports whether the device is an emulator.
	// Unknown values are "" and false.
	ABI, Fingerprint string
	Emulator         bool
	// HeapLimit is the maximum size of an app's Java heap, in bytes
	// (dalvik.vm.heapgrowthlimit, or heapsize if that is not set); 0 if
	// unknown.
	HeapLimit int64
	// MemTotal is the memory of the device in bytes (/proc/meminfo); 0 if
	// unknown.
	MemTotal int64
	// UID is the uid of the shell: 0 is root, 2000 the usual shell.
	UID int
	// Up is the device's clock at the time of the reading, as time since boot.
	Up time.Duration
	// Boot is an id that changes with each boot of the device
	// (/proc/sys/kernel/random/boot_id); empty if unknown.
	Boot string
	// TimeScale is the number of device seconds per wall-clock second, from 1
	// to 10000: 1 for a real phone. A simulated phone sets it in the property
	// leakgate.time_scale.
	TimeScale float64
}

// ErrTimeScale means that the device's property leakgate.time_scale is invalid
// or not allowed. A device with an invalid time scale is rejected, because the
// scale determines how long a run takes.
var ErrTimeScale = errors.New("time scale refused")

// scaleProperty is the property in which a simulated device sets its time
// scale.
const scaleProperty = "leakgate.time_scale"

// factsTimeout is the maximum wall-clock time for reading the facts.
const factsTimeout = 20 * time.Second

// ReadFacts reads the facts of a device in one round trip. If the error is
// ErrTimeScale, all other facts are valid.
func ReadFacts(ctx context.Context, dev Device) (Facts, error) {
	m := shell.NewMarker()
	a, err := shell.Ask(ctx, dev, factsTimeout, m.Join([]shell.Part{
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
		// The property is ro.kernel.qemu until Android 11, and ro.boot.qemu in
		// later releases (goldfish, init.ranchu.rc).
		{"emulator", "getprop ro.kernel.qemu; getprop ro.boot.qemu"},
		{"limit", "getprop dalvik.vm.heapgrowthlimit"},
		{"size", "getprop dalvik.vm.heapsize"},
		{"ram", memTotalCommand},
	}))
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return Facts{}, fmt.Errorf("%w: reconnect it or run `adb reconnect`; if that does not help, reboot the device",
			err)
	case err != nil:
		return Facts{}, fmt.Errorf("read facts of the device: %w", err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return Facts{}, fmt.Errorf("read facts of device %s: its shell answered %q; is /system/bin/sh usable?",
			dev.Serial(), shell.Clip(string(a.Stdout)+string(a.Stderr)))
	}
	said := func(label string) string { return shell.Clip(string(parts[label])) }
	up, err := procfs.ParseUptime(parts["up"])
	if err != nil {
		return Facts{}, fmt.Errorf("read uptime of device %s: %w", dev.Serial(), err)
	}
	f := Facts{
		Serial: dev.Serial(), Model: said("model"), Manufacturer: said("maker"),
		Release: said("release"), BuildType: said("build"), UID: dumpsys.ParseUID(said("id")), Up: up,
		Boot: bootID(parts["boot"]), ABI: said("abi"), Fingerprint: said("fingerprint"),
		Emulator: bytes.Contains(parts["emulator"], []byte("1")),
	}
	for _, label := range []string{"size", "limit"} {
		if limit := dumpsys.ParseMemorySize(parts[label]); limit.Known && limit.N > 0 {
			f.HeapLimit = limit.N
		}
	}
	f.MemTotal = memTotal(parts["ram"]).N
	f.API, _ = strconv.Atoi(said("sdk"))
	var ok bool
	if f.TimeScale, ok = parseScale(said("scale")); !ok {
		return f, fmt.Errorf("%w: device %s has the property %s with the invalid value %q: "+
			"want a number from 1 to 10000, or no such property",
			ErrTimeScale, text.Printable(dev.Serial()), scaleProperty, said("scale"))
	}
	return f, nil
}

// parseScale returns the time scale; if it is invalid, it returns 1 and false.
// A scale below 1 would make a run endless.
func parseScale(text string) (scale float64, ok bool) {
	if text == "" {
		return 1, true
	}
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil || !(scale >= 1 && scale <= 10000) {
		return 1, false
	}
	return scale, true
}

// Describe describes the device in one line.
func (f Facts) Describe() string {
	root := "shell"
	if f.UID == 0 {
		root = "root"
	}
	s := fmt.Sprintf("%s (%s, Android %s, API %d, %s build, %s)", f.Serial, f.Model, f.Release, f.API, f.BuildType,
		root)
	if f.TimeScale != 1 {
		s += fmt.Sprintf(", clock %gx as fast as real time", f.TimeScale)
	}
	return s
}
