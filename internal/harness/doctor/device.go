package doctor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/text"
)

// helloTimeout is the wall-clock time within which a device must identify
// itself. A slower device is not examined further.
const helloTimeout = 10 * time.Second

// inspection is the examination of one device.
type inspection struct {
	exam   *examination
	info   adb.DeviceInfo
	device Device
	book   checklist
}

func newInspection(e *examination, info adb.DeviceInfo) *inspection {
	serial := clean(info.Serial)
	return &inspection{
		exam: e, info: info, book: checklist{scope: ScopeDevice, device: serial},
		device: Device{Serial: serial, State: clean(info.State), Model: clean(info.Model), Processes: []Process{}},
	}
}

func (n *inspection) inspect(ctx context.Context) {
	if n.info.State != adb.StateDevice {
		text, todo := unusable(n.info)
		n.book.note("state", Bad, text, todo)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, n.exam.opt.Deadline)
	defer cancel()
	n.exam.opt.Progress(n.device.Serial)
	dev, facts, err := n.identify(ctx)
	invalidScale := errors.Is(err, capture.ErrTimeScale)
	if err != nil && !invalidScale {
		n.noteUnresponsive(err)
		return
	}
	n.device.Usable = !invalidScale && (facts.TimeScale == 1 || n.exam.opt.StandIn)
	n.identity(facts)
	if invalidScale {
		n.book.note("clock_rate", Bad, err.Error(), "remove the property, or reboot the device")
	}
	n.shell(ctx, dev)
	condition, err := readCondition(ctx, dev)
	if err != nil {
		n.book.note("condition", Unknown, n.describe(ctx, err), "")
	}
	n.condition(condition, err == nil)
	n.access(facts, condition)
	n.clock(ctx, dev, facts)
	n.processes(ctx, dev, facts)
	if ctx.Err() != nil {
		n.book.note("time", Unknown, fmt.Sprintf("not everything was checked within %v", n.exam.opt.Deadline),
			"name fewer processes with --process, or one device with --device")
	}
}

// unusable describes a state other than "device", and what to do about it. The
// states are defined in AOSP adb/adb.h, ConnectionState.
func unusable(info adb.DeviceInfo) (text, todo string) {
	state := info.State
	switch {
	case state == "unauthorized", state == "authorizing":
		return "the device has not authorized this computer",
			"unlock it and accept the USB debugging dialog; if no dialog appears, revoke the USB debugging " +
				"authorizations in its Developer options and reconnect it"
	case strings.HasPrefix(state, "no permissions"):
		return "no permission to open the device over USB: " + state,
			"install the udev rules (Debian: package android-sdk-platform-tools-common), join the group plugdev, " +
				"then reconnect the device"
	case state == "offline", state == "connecting":
		return "the device is " + state + " (connected, but not responding)",
			"reconnect it or run `adb reconnect offline`; if that does not help, unlock it and reboot it"
	case state == "bootloader", state == "fastbootd":
		return "the device is in its bootloader", "boot it into Android: `fastboot reboot`"
	case state == "recovery", state == "sideload", state == "rescue":
		return "the device is in state " + state, "boot it into Android: `adb reboot`"
	}
	return fmt.Sprintf("the device is in state %q", state), "boot it into Android"
}

// identify reads the facts of the device.
func (n *inspection) identify(ctx context.Context) (*adb.Device, capture.Facts, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	dev, err := n.exam.client.Select(ctx, n.info.Serial)
	if err != nil {
		return nil, capture.Facts{}, err
	}
	facts, err := capture.ReadFacts(ctx, dev)
	return dev, facts, err
}

func (n *inspection) noteUnresponsive(err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		n.book.note("state", Bad,
			fmt.Sprintf("the device is listed, but its shell did not respond within %v",
				min(helloTimeout, n.exam.opt.Deadline)),
			"reconnect it or run `adb reconnect`; if that does not help, reboot the device")
		return
	}
	n.book.note("state", Bad, err.Error(), "reconnect it, and check that `adb shell id` works")
}

// describe returns the message of an error; it describes a timeout in plain
// words.
func (n *inspection) describe(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "the time limit for this device was reached first"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}

// leastAPI is the default of devices.min_api: older releases were never tested
// on a phone.
const leastAPI = 21

func (n *inspection) identity(f capture.Facts) {
	d := &n.device
	d.Model, d.Manufacturer, d.Release, d.BuildType = clean(f.Model), clean(f.Manufacturer), clean(f.Release),
		clean(f.BuildType)
	d.Up, d.TimeScale = new(f.Up.Seconds()), &f.TimeScale
	if f.API > 0 {
		d.API = &f.API
	}
	if f.UID >= 0 {
		d.UID = &f.UID
	}
	text := fmt.Sprintf("%s %s, Android %s (API %d), %s build, up %v", f.Manufacturer, f.Model, f.Release, f.API,
		f.BuildType, f.Up.Round(time.Second))
	switch {
	case f.API == 0:
		n.book.note("android", Warn, text+", unknown API level", "check `adb shell getprop ro.build.version.sdk`")
	case f.API < leastAPI:
		n.book.note("android", Warn,
			fmt.Sprintf("%s: older than API %d, the minimum of `leakgate run`", text, leastAPI),
			"use a newer device, or set devices.min_api in the configuration")
	default:
		n.book.note("android", OK, text, "")
	}
	standIn := fmt.Sprintf("simulated device: its clock runs %g times as fast as real time", f.TimeScale)
	switch {
	case f.TimeScale == 1:
	case n.exam.opt.StandIn:
		n.book.note("clock_rate", OK, standIn, "")
	default:
		n.book.note("clock_rate", Bad, standIn+" (property leakgate.time_scale), so a run refuses it",
			"allow it with --stand-in or LEAKGATE_STAND_IN=1; on a phone, remove the property")
	}
}

func (n *inspection) shell(ctx context.Context, dev *adb.Device) {
	features, err := dev.Features(ctx)
	if err != nil {
		n.book.note("shell_v2", Unknown, n.describe(ctx, err), "")
		return
	}
	v2 := slices.Contains(features, "shell_v2")
	n.device.ShellV2 = &v2
	if v2 {
		n.book.note("shell_v2", OK, "commands return exit status and stderr separately (shell_v2)", "")
		return
	}
	n.book.note("shell_v2", OK, "no shell_v2 (Android before 7): "+
		"the exit status is read from a marker, and stderr is merged into stdout", "")
}

func (n *inspection) condition(c deviceCondition, known bool) {
	if !known {
		return
	}
	n.boot(c.Booted)
	n.space(c.DataFree)
	n.battery(c.Battery)
}

func (n *inspection) boot(v known.Int) {
	if !v.Known {
		n.book.note("boot", Unknown, "cannot determine whether the device has booted", "")
		return
	}
	booted := v.N == 1
	n.device.Booted = &booted
	if !booted {
		n.book.note("boot", Warn, "Android has not finished booting", "wait for the home screen")
	}
}

// leastData is the minimum free space: at most 500 MB for Android itself
// (StorageManager.getStorageLowBytes), plus room for a large heap dump.
const leastData = 1 << 30

func (n *inspection) space(free known.Int) {
	if !free.Known {
		n.book.note("data", Unknown, "cannot determine the free space of /data", "")
		return
	}
	n.device.DataFree = &free.N
	text := text.Size(free.N) + " free on /data; a heap dump takes 50 to 500 MB there temporarily"
	if free.N < leastData {
		n.book.note("data", Warn, text, "free some space on the device")
		return
	}
	n.book.note("data", OK, text, "")
}

const (
	lowPercent = 20
	// hotTenths is 45 °C, in tenths of a degree. Phones start to throttle at
	// about this temperature.
	hotTenths = 450
)

// battery reports only conditions that may stop an overnight run.
func (n *inspection) battery(b deviceBattery) {
	if b.Percent.Known {
		n.device.Battery = &b.Percent.N
		if b.Percent.N < lowPercent && !b.Powered {
			n.book.note("battery", Warn,
				fmt.Sprintf("the battery is at %d %% and no charger is connected", b.Percent.N), "connect a charger")
		}
	}
	if b.Temperature.Known {
		n.device.Temperature = new(float64(b.Temperature.N) / 10)
		if b.Temperature.N >= hotTenths {
			n.book.note("battery", Warn,
				fmt.Sprintf("the battery is at %.1f °C; a hot device throttles, which slows down the workload",
					float64(b.Temperature.N)/10), "let it cool down")
		}
	}
}

// access reports what the shell may read. Root access is optional; a debuggable
// app is sufficient.
func (n *inspection) access(f capture.Facts, c deviceCondition) {
	n.device.SU = clean(c.SU)
	switch {
	case f.UID == 0:
		n.book.note("root", OK, "shell is root; every process can be read", "")
	case c.SU != "":
		n.book.note("root", OK, fmt.Sprintf("shell is not root (uid %d), but su is available at %s", f.UID, c.SU), "")
	case f.BuildType == "user":
		n.book.note("root", OK,
			fmt.Sprintf("shell is not root (uid %d, user build); only debuggable apps can be read in full", f.UID), "")
	default:
		n.book.note("root", Warn,
			fmt.Sprintf("shell is not root (uid %d), but this %s build allows it", f.UID, f.BuildType),
			"run `adb root`; then every process can be read")
	}
}

// leastSkew is the smallest clock difference that matters when the device's
// logs are compared with the host's.
const leastSkew = 2 * time.Second

func (n *inspection) clock(ctx context.Context, dev *adb.Device, f capture.Facts) {
	if f.TimeScale != 1 {
		return // a simulated clock differs intentionally
	}
	c, err := readWallClock(ctx, dev)
	if err != nil {
		n.book.note("clock", Unknown, n.describe(ctx, err), "")
		return
	}
	n.device.ClockAhead, n.device.ClockWithin = new(seconds(c.Ahead)), new(seconds(c.Within))
	side, by := "ahead of", c.Ahead
	if by < 0 {
		side, by = "behind", -by
	}
	if by-c.Within < leastSkew {
		n.book.note("clock", OK,
			fmt.Sprintf("the wall clock matches the host's within %v", (by+c.Within).Round(100*time.Millisecond)), "")
		return
	}
	n.book.note("clock", Warn,
		fmt.Sprintf("the wall clock is %v ± %v %s the host's; this affects logs, not samples (they use the time "+
			"since boot)", by.Round(100*time.Millisecond), c.Within.Round(100*time.Millisecond), side),
		"enable automatic date and time on both to compare their logs")
}

// seconds returns a duration in seconds, rounded to milliseconds.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
