//go:build e2e

package adb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/adbd/adbtest"
)

// The stress tests run the client in a separate process, to separate its memory
// from that of the phones: the test binary runs itself again with this variable
// set.
const stressVariable = "LEAKGATE_ADB_STRESS"

// stress is the input of the client process, and cost its output.
type stress struct {
	Load    string
	Addr    string
	Serials []string
	Size    int64
}

type cost struct {
	// PeakOver is the largest increase in the memory of objects, including
	// uncollected garbage, in bytes; Held is the part of the increase that
	// remained after a collection.
	PeakOver, Held int64
	Took           time.Duration
	// Goroutines and Sockets are the numbers of goroutines and sockets that
	// remained at the end; Error is the error of the load.
	Goroutines, Sockets int
	Error               string
}

// loads maps the name of a load to the function that applies it to the client.
// Size is approximately the number of bytes per device.
var loads = map[string]func(ctx context.Context, devices []*Device, size int64) error{
	"64 commands": func(ctx context.Context, devices []*Device, size int64) error {
		return together(64, func(i int) error { return prints(ctx, devices[0], size) })
	},
	"8 devices": func(ctx context.Context, devices []*Device, size int64) error {
		return together(64, func(i int) error {
			if i >= 32 {
				return pulls(ctx, devices[i%len(devices)], 1<<20)
			}
			return prints(ctx, devices[i%len(devices)], size)
		})
	},
	"pull": func(ctx context.Context, devices []*Device, size int64) error { return pulls(ctx, devices[0], size) },
	"endless": func(ctx context.Context, devices []*Device, size int64) error {
		d := devices[0]
		d.client.opt.MaxStream = size
		var got counter
		_, err := d.Shell(ctx, "exec cat /dev/zero", &got, nil)
		if !errors.Is(err, ErrTooMuch) || int64(got) != size {
			return fmt.Errorf("%d of %d bytes, %w", got, size, err)
		}
		return nil
	},
	"line": func(ctx context.Context, devices []*Device, size int64) error {
		d := devices[0]
		d.client.opt.MaxStream = size
		return prints(ctx, d, size)
	},
}

// longLine returns a command that prints size bytes without a newline.
func longLine(size int64) string { return fmt.Sprintf(`head -c %d /dev/zero | tr '\0' y`, size) }

func prints(ctx context.Context, d *Device, size int64) error {
	var got counter
	if exit, err := d.Shell(ctx, longLine(size), &got, nil); exit != 0 || err != nil || int64(got) != size {
		return fmt.Errorf("device %s printed %d of %d bytes, exit %d, %w", d.Serial(), got, size, exit, err)
	}
	return nil
}

func pulls(ctx context.Context, d *Device, size int64) error {
	var got counter
	if n, err := d.Pull(ctx, fmt.Sprint("/", size), &got); n != size || int64(got) != size || err != nil {
		return fmt.Errorf("device %s sent %d of %d bytes, %w", d.Serial(), n, size, err)
	}
	return nil
}

func together(n int, run func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = run(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func TestMain(m *testing.M) {
	if text := os.Getenv(stressVariable); text != "" {
		var s stress
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			panic(err)
		}
		_ = json.NewEncoder(os.Stdout).Encode(s.measure())
		return
	}
	os.Exit(m.Run())
}

// measure runs the load with a new client.
func (s stress) measure() cost {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := NewClient(Options{Addr: s.Addr, NoStart: true})
	if err != nil {
		return cost{Error: err.Error()}
	}
	var devices []*Device
	for _, serial := range s.Serials {
		d, err := c.Select(ctx, serial)
		if err == nil {
			_, err = d.Shell(ctx, "true", nil, nil)
		}
		if err != nil {
			return cost{Error: err.Error()}
		}
		devices = append(devices, d)
	}
	goroutines, sockets := runtime.NumGoroutine(), openSockets()
	base := collected()
	peak := sampled()
	begin := time.Now()
	err = loads[s.Load](ctx, devices, s.Size)
	result := cost{Took: time.Since(begin), PeakOver: peak() - base, Held: collected() - base}
	if err != nil {
		result.Error = err.Error()
	}
	for range 100 {
		result.Goroutines, result.Sockets = runtime.NumGoroutine()-goroutines, openSockets()-sockets
		if result.Goroutines <= 0 && result.Sockets <= 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return result
}

// objects returns the memory of all objects on the heap, in bytes.
func objects() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// collected returns the memory of the objects that remain after garbage
// collection; emptying pools takes two collections.
func collected() int64 {
	runtime.GC()
	runtime.GC()
	return objects()
}

// sampled measures objects every millisecond until the returned function is
// called; that function returns the maximum.
func sampled() (peak func() int64) {
	stop, most := make(chan struct{}), make(chan int64)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		var high int64
		for {
			high = max(high, objects())
			select {
			case <-stop:
				most <- high
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 { close(stop); return <-most }
}

func openSockets() int {
	n := 0
	files, _ := filepath.Glob("/proc/self/fd/*")
	for _, name := range files {
		if to, err := os.Readlink(name); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// TestStress bounds the resources that the client uses under each load, through
// the real adb server.
func TestStress(t *testing.T) {
	large := int64(300 << 20)
	tests := []struct {
		load    string
		devices int
		size    int64
		most    int64 // limit in bytes, relative to an idle client
	}{
		{"64 commands", 1, 1 << 20, 16 << 20},
		{"8 devices", 8, 1 << 20, 16 << 20},
		{"pull", 1, large, 4 << 20},
		{"endless", 1, 100 << 20, 4 << 20},
		{"line", 1, 100_000_000, 4 << 20},
	}
	s := adbtest.StartServer(t)
	var serials []string
	for i := range 8 {
		p := newHostPhone(t, fmt.Sprint("HOST", i), modern...)
		for _, size := range []int64{1 << 20, large} {
			f, err := os.Create(p.path(fmt.Sprint(size)))
			if err == nil {
				err = errors.Join(f.Truncate(size), f.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		serials = append(serials, s.Connect(t, listening(t, p).Addr()))
	}
	for _, tt := range tests {
		t.Run(tt.load, func(t *testing.T) {
			got := measured(t, stress{tt.load, s.Addr, serials[:tt.devices], tt.size})
			t.Logf("peak %.2f MB above an idle client, %.2f MB above it afterwards, took %v",
				float64(got.PeakOver)/1e6,
				float64(got.Held)/1e6, got.Took.Round(time.Millisecond))
			if got.Error != "" {
				t.Error(got.Error)
			}
			if got.PeakOver > tt.most || got.Held > 1<<20 {
				t.Errorf("peak %d bytes, want at most %d; %d bytes held afterwards", got.PeakOver, tt.most, got.Held)
			}
			if got.Goroutines > 0 || got.Sockets > 0 {
				t.Errorf("%d goroutines and %d sockets remain", got.Goroutines, got.Sockets)
			}
		})
	}
	_, err := testClient(t, Options{Addr: s.Addr}).Select(soon(t), "")
	checkSentence(t, err, ErrSeveralDevices, "8 devices are connected")
}

// measured runs a load in a separate process.
func measured(t *testing.T, s stress) (got cost) {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), stressVariable+"="+string(text))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&errOut, t.Output())
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errOut.String())
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in %q", err, out.String())
	}
	return got
}
