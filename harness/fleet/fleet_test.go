package fleet

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
)

// client returns a client of an adb server in memory that serves phones with
// the given API levels.
func client(t *testing.T, apis map[string]int) *adb.Client {
	t.Helper()
	var phones []adbd.Phone
	for _, serial := range slices.Sorted(maps.Keys(apis)) {
		phones = append(phones, androidsim.New(androidsim.Options{Serial: serial, API: apis[serial]}))
	}
	server := adbd.NewServer(phones...)
	t.Cleanup(func() { server.Close() })
	c, err := NewClient(adb.Options{Dial: server.Dial, NoStart: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func getenv(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

func TestOpen(t *testing.T) {
	two := map[string]int{"a": 34, "b": 21}
	for name, c := range map[string]struct {
		phones map[string]int
		choice DeviceChoice
		env    map[string]string
		want   string // the serials, or the error
	}{
		"all":                   {two, DeviceChoice{}, nil, "a b"},
		"chosen by environment": {two, DeviceChoice{}, map[string]string{"ANDROID_SERIAL": "b"}, "b"},
		"chosen by name": {
			two, DeviceChoice{Serials: []string{"b"}}, map[string]string{"ANDROID_SERIAL": "a"}, "b",
		},
		"single device wanted, two connected": {two, DeviceChoice{Single: true}, nil, "2 devices are connected"},
		"single device":                       {map[string]int{"a": 34}, DeviceChoice{Single: true}, nil, "a"},
		"absent device":                       {two, DeviceChoice{Serials: []string{"c"}}, nil, `"c"`},
		"no device connected":                 {nil, DeviceChoice{}, nil, "no device"},
		"one device too old":                  {two, DeviceChoice{MinAPI: 26}, nil, "a"},
		"too few devices": {
			two, DeviceChoice{MinAPI: 26, Require: 2}, nil,
			"the run needs 2 devices (devices.require) but has 1; devices.min_api is 26 but b has API 21",
		},
		"all devices too old": {two, DeviceChoice{MinAPI: 35}, nil, "needs 1 device (devices.require) but has 0"},
	} {
		c.choice.Client, c.choice.Getenv = client(t, c.phones), getenv(c.env)
		f, err := Open(t.Context(), c.choice)
		if err != nil {
			if strings.HasPrefix(c.want, "a") || c.want == "b" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
			continue
		}
		var serials []string
		for _, d := range f.Devices() {
			serials = append(serials, d.Serial())
			if d.Facts.API != c.phones[d.Serial()] {
				t.Errorf("%s: %+v", name, d.Facts)
			}
		}
		if strings.Join(serials, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, serials, c.want)
		}
		if err := f.Close(); err != nil { // no leases are held
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Two runs cannot use the same device or directory at the same time. The second
// run may wait; it then reads the device's clock again.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := t.TempDir()
		c := client(t, map[string]int{"a": 34, "b": 34})
		open := func(serial string) *Fleet {
			f, err := Open(t.Context(),
				DeviceChoice{
					Client: c, Serials: []string{serial}, Getenv: getenv(map[string]string{"LEAKGATE_LEASES": leases}),
				})
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		one, two, three := open("a"), open("a"), open("b")
		dir := filepath.Join(t.TempDir(), "run")
		if err := one.Hold(t.Context(), dir, "first", nil); err != nil {
			t.Fatal(err)
		}
		var used InUseError
		if err := two.Hold(t.Context(), dir+"2", "second", nil); !errors.As(err, &used) || used.Directory ||
			!strings.Contains(err.Error(), "leakgate first (pid ") {
			t.Errorf("the same device: %v", err)
		}
		if err := three.Hold(t.Context(), dir, "third", nil); !errors.As(err, &used) || !used.Directory {
			t.Errorf("the same directory: %v", err)
		}
		time.AfterFunc(time.Minute, func() { one.Close() })
		waited := 0
		before := two.Devices()[0].Facts.Up
		if err := two.Hold(t.Context(), dir, "second", func(InUseError) { waited++ }); err != nil || waited != 1 {
			t.Errorf("%v, reported %d times", err, waited)
		}
		if up := two.Devices()[0].Facts.Up; up < before+time.Minute {
			t.Errorf("got uptime %[2]v, want at least a minute more than %[1]v", before, up)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		if err := open("a").Hold(ctx, dir+"4", "fourth", func(InUseError) {}); !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %v", err)
		}
		for range 2 {
			if err := two.Close(); err != nil {
				t.Error(err)
			}
		}
		if left, err := os.ReadDir(leases); err != nil || len(left) > 0 {
			t.Errorf("left %v, %v", left, err)
		}
	})
}

func TestHoldRefusesDirectories(t *testing.T) {
	f, err := Open(t.Context(),
		DeviceChoice{
			Client: client(t, map[string]int{"a": 34}),
			Getenv: getenv(map[string]string{"LEAKGATE_LEASES": "/dev/null/x"}),
		})
	if err != nil {
		t.Fatal(err)
	}
	var bad DirectoryError
	if err := f.Hold(t.Context(), t.TempDir(), "x", nil); !errors.As(err, &bad) || !bad.Leases {
		t.Errorf("%v", err)
	}
}
