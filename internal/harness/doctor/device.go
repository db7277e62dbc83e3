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

// hello is the real time in which a device must have told what it is. One that
// takes longer is not asked anything else.
const hello = 10 * time.Second

// inspection is one device being examined.
type inspection struct {
	exam   *examination
	info   adb.DeviceInfo
	device Device
	book   notebook
}

func newInspection(e *examination, info adb.DeviceInfo) *inspection {
	serial := clean(info.Serial)
	return &inspection{
		exam: e, info: info, book: notebook{scope: ScopeDevice, device: serial},
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
	dev, facts, err := n.greet(ctx)
	invalidScale := errors.Is(err, capture.ErrTimeScale)
	if err != nil && !invalidScale {
		n.silent(err)
		return
	}
	n.device.Usable = !invalidScale && (facts.TimeScale == 1 || n.exam.opt.StandIn)
	n.identity(facts)
	if invalidScale {
		n.book.note("time_scale", Bad, err.Error(), "remove the property, or restart the device")
	}
	n.shell(ctx, dev)
	condition, err := readCondition(ctx, dev)
	if err != nil {
		n.book.note("condition", Unknown, n.why(ctx, err), "")
	}
	n.condition(condition, err == nil)
	n.access(facts, condition)
	n.clock(ctx, dev, facts)
	n.processes(ctx, dev, facts)
	if ctx.Err() != nil {
		n.book.note("time", Unknown, fmt.Sprintf("not all was looked at in %v", n.exam.opt.Deadline), "name fewer processes with --process, or one device with --device")
	}
}

// unusable says what a state other than device means, and what to do. The states
// are those of AOSP adb/adb.h, ConnectionState.
func unusable(info adb.DeviceInfo) (text, todo string) {
	state := info.State
	switch {
	case state == "unauthorized", state == "authorizing":
		return "the device has not authorized this computer", "unlock it and accept the USB debugging dialog; if none comes, revoke the USB debugging authorizations in its Developer options and reconnect it"
	case strings.HasPrefix(state, "no permissions"):
		return "this user may not open the device over USB: " + state, "add the udev rules (Debian: package android-sdk-platform-tools-common, and the group plugdev), then reconnect the device"
	case state == "offline", state == "connecting":
		return "the device is " + state + ": it is connected and does not answer", "reconnect it or run `adb reconnect offline`; unlock it, and restart it if that does not help"
	case state == "bootloader", state == "fastbootd":
		return "the device is in its bootloader", "boot it into Android: `fastboot reboot`"
	case state == "recovery", state == "sideload", state == "rescue":
		return "the device is in state " + state, "boot it into Android: `adb reboot`"
	}
	return fmt.Sprintf("the device is in state %q", state), "boot it into Android"
}

// greet asks the device what it is.
func (n *inspection) greet(ctx context.Context) (*adb.Device, capture.Facts, error) {
	ctx, cancel := context.WithTimeout(ctx, hello)
	defer cancel()
	dev, err := n.exam.client.Select(ctx, n.info.Serial)
	if err != nil {
		return nil, capture.Facts{}, err
	}
	facts, err := capture.ReadFacts(ctx, dev)
	return dev, facts, err
}

func (n *inspection) silent(err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		n.book.note("state", Bad, fmt.Sprintf("the device is listed, but its shell has not answered in %v", min(hello, n.exam.opt.Deadline)), "reconnect it or run `adb reconnect`; restart the device if that does not help")
		return
	}
	n.book.note("state", Bad, err.Error(), "reconnect it, and check that `adb shell id` works")
}

// why is an error in words; a deadline is told as such.
func (n *inspection) why(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "the time for this device was used up before"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}

// leastAPI is devices.min_api where a file does not say another: what is older
// was never tried on a phone.
const leastAPI = 21

func (n *inspection) identity(f capture.Facts) {
	d := &n.device
	d.Model, d.Manufacturer, d.Release, d.BuildType = clean(f.Model), clean(f.Manufacturer), clean(f.Release), clean(f.BuildType)
	d.Up, d.TimeScale = new(f.Up.Seconds()), &f.TimeScale
	if f.API > 0 {
		d.API = &f.API
	}
	if f.UID >= 0 {
		d.UID = &f.UID
	}
	text := fmt.Sprintf("%s %s, Android %s (API %d), %s build, up %v", f.Manufacturer, f.Model, f.Release, f.API, f.BuildType, f.Up.Round(time.Second))
	switch {
	case f.API == 0:
		n.book.note("android", Warn, text+": it does not tell its API level", "check `adb shell getprop ro.build.version.sdk`")
	case f.API < leastAPI:
		n.book.note("android", Warn, fmt.Sprintf("%s: older than API %d, which `leakgate run` asks for", text, leastAPI), "use a newer device, or set devices.min_api in the file")
	default:
		n.book.note("android", OK, text, "")
	}
	standIn := fmt.Sprintf("a stand-in: %g s of its time pass in one second", f.TimeScale)
	switch {
	case f.TimeScale == 1:
	case n.exam.opt.StandIn:
		n.book.note("time_scale", OK, standIn, "")
	default:
		n.book.note("time_scale", Bad, standIn+" (property leakgate.time_scale), so a run refuses it", "allow it with --stand-in or LEAKGATE_STAND_IN=1; on a phone, remove the property")
	}
}

func (n *inspection) shell(ctx context.Context, dev *adb.Device) {
	features, err := dev.Features(ctx)
	if err != nil {
		n.book.note("shell_v2", Unknown, n.why(ctx, err), "")
		return
	}
	v2 := slices.Contains(features, "shell_v2")
	n.device.ShellV2 = &v2
	if v2 {
		n.book.note("shell_v2", OK, "commands give their exit status and errors apart (shell_v2)", "")
		return
	}
	n.book.note("shell_v2", OK, "no shell_v2 (Android before 7): the exit status comes by a marker, errors are mixed into the output", "")
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
		n.book.note("boot", Unknown, "the device does not tell if it has booted", "")
		return
	}
	booted := v.N == 1
	n.device.Booted = &booted
	if !booted {
		n.book.note("boot", Warn, "Android has not finished booting", "wait for the home screen")
	}
}

// leastData is what Android itself wants free, 500 MB at most
// (StorageManager.getStorageLowBytes), and a large heap dump.
const leastData = 1 << 30

func (n *inspection) space(free known.Int) {
	if !free.Known {
		n.book.note("data", Unknown, "the free space of /data cannot be told", "")
		return
	}
	n.device.DataFree = &free.N
	text := text.Size(free.N) + " free on /data; a heap dump takes 50 to 500 MB there, for a moment"
	if free.N < leastData {
		n.book.note("data", Warn, text, "free some space on the device")
		return
	}
	n.book.note("data", OK, text, "")
}

const (
	lowPercent = 20
	// hotTenths is 45 degrees: phones slow down about there.
	hotTenths = 450
)

// battery speaks up only where a night is in danger.
func (n *inspection) battery(b deviceBattery) {
	if b.Percent.Known {
		n.device.Battery = &b.Percent.N
		if b.Percent.N < lowPercent && !b.Powered {
			n.book.note("battery", Warn, fmt.Sprintf("the battery is at %d %% and no charger is connected", b.Percent.N), "connect a charger")
		}
	}
	if b.Temperature.Known {
		n.device.Temperature = new(float64(b.Temperature.N) / 10)
		if b.Temperature.N >= hotTenths {
			n.book.note("battery", Warn, fmt.Sprintf("the battery has %.1f °C: a hot device slows down, and with it the workload", float64(b.Temperature.N)/10), "let it cool")
		}
	}
}

// access says what the shell may do. None of it is needed; a debuggable app will do.
func (n *inspection) access(f capture.Facts, c deviceCondition) {
	n.device.SU = clean(c.SU)
	switch {
	case f.UID == 0:
		n.book.note("root", OK, "the shell is root: every process can be read", "")
	case c.SU != "":
		n.book.note("root", OK, fmt.Sprintf("the shell is no root (uid %d); there is %s", f.UID, c.SU), "")
	case f.BuildType == "user":
		n.book.note("root", OK, fmt.Sprintf("no root on a user build (uid %d): debuggable apps can be read in full", f.UID), "")
	default:
		n.book.note("root", Warn, fmt.Sprintf("the shell is no root (uid %d), yet this %s build allows it", f.UID, f.BuildType), "run `adb root`: then every process can be read")
	}
}

// leastSkew is the difference of the clocks that a reader of two logs would notice.
const leastSkew = 2 * time.Second

func (n *inspection) clock(ctx context.Context, dev *adb.Device, f capture.Facts) {
	if f.TimeScale != 1 {
		return // its clock is meant to differ
	}
	c, err := readWallClock(ctx, dev)
	if err != nil {
		n.book.note("clock", Unknown, n.why(ctx, err), "")
		return
	}
	n.device.ClockAhead, n.device.ClockWithin = new(seconds(c.Ahead)), new(seconds(c.Within))
	side, by := "ahead of", c.Ahead
	if by < 0 {
		side, by = "behind", -by
	}
	if by-c.Within < leastSkew {
		n.book.note("clock", OK, fmt.Sprintf("the wall clock agrees with the host's within %v", (by+c.Within).Round(100*time.Millisecond)), "")
		return
	}
	n.book.note("clock", Warn,
		fmt.Sprintf("the wall clock is %v ± %v %s the host's; samples are not concerned (they have the time since boot), logs of both sides are", by.Round(100*time.Millisecond), c.Within.Round(100*time.Millisecond), side),
		"turn automatic date and time on, on both, where their logs are compared")
}

// seconds keeps milliseconds.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }
