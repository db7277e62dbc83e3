package doctor

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/shelltest"
)

// batteryText is `dumpsys battery` of Android 13, shortened.
const batteryText = `Current Battery Service state:
  AC powered: false
  USB powered: true
  Wireless powered: false
  Dock powered: false
  Max charging current: 500000
  Charge counter: 3910000
  status: 2
  health: 2
  present: true
  level: 43
  scale: 50
  voltage: 4300
  temperature: 312
  technology: Li-ion
`

func TestBattery(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want deviceBattery
	}{
		"charging": {batteryText, deviceBattery{Percent: known.Of(86), Temperature: known.Of(312), Powered: true}},
		"unplugged": {
			strings.ReplaceAll(batteryText, "USB powered: true", "USB powered: false"),
			deviceBattery{Percent: known.Of(86), Temperature: known.Of(312)},
		},
		"no battery": {
			strings.ReplaceAll(batteryText, "present: true", "present: false"), deviceBattery{Powered: true},
		},
		"no scale": {
			strings.ReplaceAll(batteryText, "scale: 50", "scale: 0"),
			deviceBattery{Temperature: known.Of(312), Powered: true},
		},
		"level above the scale": {
			strings.ReplaceAll(batteryText, "level: 43", "level: 51"),
			deviceBattery{Temperature: known.Of(312), Powered: true},
		},
		"no service": {"Can't find service: battery\n", deviceBattery{}},
		"denied":     {"Permission Denial: can't dump battery service from pid 1, uid 2000\n", deviceBattery{}},
		"nothing":    {"", deviceBattery{}},
	} {
		if got := parseBattery(c.text); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestSUIsAPath(t *testing.T) {
	for text, want := range map[string]string{
		"/system/xbin/su\n": "/system/xbin/su", "/sbin/su\r\n": "/sbin/su", "": "", "su\n": "",
		"/system/bin/sh: command: su: not found\n": "", "/x\x1b[2J\n": "/x?[2J",
	} {
		if got := parseSU(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// labeled returns a device that responds to each labeled part of a joined
// command.
func labeled(parts map[string]string) *shelltest.Device {
	return &shelltest.Device{Run: func(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
		m, _, _ := strings.Cut(strings.TrimPrefix(command, "echo; echo "), " ")
		for label, text := range parts {
			if !strings.Contains(command, m+" '"+label+"'") {
				return 1, fmt.Errorf("unexpected command %s: %s", label, command)
			}
			fmt.Fprintf(stdout, "\n%s %s\n%s", m, label, text)
		}
		_, err := fmt.Fprintf(stdout, "\n%s end\n", m)
		return 0, err
	}}
}

func TestCondition(t *testing.T) {
	got, err := readCondition(t.Context(), labeled(map[string]string{
		"boot": "1\n", "su": "/system/bin/su\n",
		"df": "Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/x 9 2 7 9% /data\n", "battery": batteryText,
	}))
	want := deviceCondition{
		Booted: known.Of(1), SU: "/system/bin/su", DataFree: known.Of(7 << 10),
		Battery: deviceBattery{Percent: known.Of(86), Temperature: known.Of(312), Powered: true},
	}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = readCondition(t.Context(), labeled(map[string]string{"boot": "\n"}))
	if err != nil || got != (deviceCondition{Booted: known.Of(0)}) {
		t.Errorf("device with little output: %+v, %v", got, err)
	}
	cut := &shelltest.Device{Run: func(_ context.Context, _ string, stdout, _ io.Writer) (int, error) {
		_, err := io.WriteString(stdout, "nonsense")
		return 0, err
	}}
	if _, err := readCondition(t.Context(), cut); err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("truncated response: %v", err)
	}
}

// The true difference between two clocks is within the bounds, whatever the
// clocks show, whenever they are read and however long each direction takes.
func TestWallClockBoundsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			ahead := time.Duration(r.Int64N(int64(48*time.Hour))) - 24*time.Hour
			there, back := time.Duration(r.Int64N(int64(2*time.Second))), time.Duration(r.Int64N(int64(2*time.Second)))
			dev := &shelltest.Device{Run: func(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
				if command != "date +%s" {
					t.Errorf("asked %q", command)
				}
				time.Sleep(there)
				defer time.Sleep(back)
				_, err := fmt.Fprintln(stdout, time.Now().Add(ahead).Unix())
				return 0, err
			}}
			c, err := readWallClock(t.Context(), dev)
			if err != nil {
				t.Fatal(err)
			}
			if off := (c.Ahead - ahead).Abs(); off > c.Within {
				t.Errorf("ahead %v: %+v", ahead, c)
			}
			if want := (there+back)/2 + time.Second/2; (c.Within - want).Abs() > time.Microsecond {
				t.Errorf("within %v, want %v", c.Within, want)
			}
		}
	})
}

func TestWallClockRejectsOtherText(t *testing.T) {
	for _, text := range []string{
		"", "\n", "date: bad format\n", "-1\n", "253402300800\n", "12x\n", "%s\n", "99999999999999999999\n",
	} {
		if got, err := parseEpoch([]byte(text)); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
	if got, err := parseEpoch([]byte("noise\r\n1700000000\r\n")); err != nil || got.Unix() != 1700000000 {
		t.Errorf("%v, %v", got, err)
	}
}

// FuzzCondition checks that values are in range, and that they are unknown for
// text without digits.
func FuzzCondition(f *testing.F) {
	f.Add("Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/x 9 2 7 9% /data\n")
	f.Add("Filesystem Size Used Free Blksize\n/data 12.5G 8.2G 4.3G 4096\n")
	f.Add(batteryText)
	f.Add("1700000000\n")
	f.Fuzz(func(t *testing.T, text string) {
		b, free, su := parseBattery(text), dumpsys.ParseDiskFree(text, "/data"), parseSU(text)
		epoch, err := parseEpoch([]byte(text))
		if b.Percent.Known && (b.Percent.N < 0 || b.Percent.N > 100) {
			t.Errorf("%d %% of %q", b.Percent.N, text)
		}
		if free.Known && (free.N < 0 || free.N >= 1<<60) || err == nil &&
			(epoch.Unix() < 0 || epoch.Unix() > maxEpoch) {
			t.Errorf("free %+v, epoch %v of %q", free, epoch, text)
		}
		if !strings.ContainsAny(text, "0123456789") &&
			(b.Percent.Known || b.Temperature.Known || free.Known || err == nil) {
			t.Errorf("%+v, %+v from text without a number: %q", b, free, text)
		}
		if su != "" && (su[0] != '/' || strings.ContainsAny(su, "\n\r\x1b") || len(su) > 130) {
			t.Errorf("su %q", su)
		}
	})
}
