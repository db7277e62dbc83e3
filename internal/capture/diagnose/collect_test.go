package diagnose

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/capture/shell"
)

// Garbage is collected in processes with a runtime; no other process receives
// the signal.
func TestCollectGarbage(t *testing.T) {
	sawtooth := []androidsim.Model{androidsim.Steady(androidsim.JavaHeap, 20), androidsim.GCSawtooth(50, time.Hour)}
	for name, c := range map[string]struct {
		options    androidsim.Options
		debuggable bool
		uid        int
		// change runs before the signal is sent; refused is the expected
		// reason, or "" if a collection is expected.
		process string
		change  func(*androidsim.Phone, *capture.Process)
		refused string
	}{
		"debuggable app": {debuggable: true, uid: 2000},
		"Android 5":      {options: androidsim.Options{API: 21}, debuggable: true, uid: 2000},
		"root shell":     {options: androidsim.Options{BuildType: "userdebug", Root: true}},
		"release app":    {uid: 2000, refused: "not debuggable"},
		"isolated process": {
			debuggable: true, uid: 2000, process: "com.shop:isolated", refused: "a uid of its own",
		},
		"native process of a debuggable app": {
			debuggable: true, uid: 2000, process: "com.shop:tool", refused: "not a process of the Android runtime",
		},
		"native process, root shell": {
			options: androidsim.Options{BuildType: "userdebug", Root: true}, process: "com.shop:tool",
			refused: "not a process of the Android runtime",
		},
		"earlier start time": {debuggable: true, uid: 2000, refused: "has ended",
			change: func(_ *androidsim.Phone, p *capture.Process) { p.Start-- }},
		"reused pid, root shell": {
			options: androidsim.Options{BuildType: "userdebug", Root: true}, refused: "has ended",
			change: func(phone *androidsim.Phone, _ *capture.Process) { phone.ReusePID("com.shop", "logcat") }},
		"parent is not a zygote": {debuggable: true, uid: 2000, refused: "not a process of the Android runtime",
			change: func(phone *androidsim.Phone, _ *capture.Process) {
				phone.BreakFile("/proc/*/cmdline", androidsim.FileEmpty)
			}},
		"status is unreadable": {debuggable: true, uid: 2000, refused: "not a process of the Android runtime",
			change: func(phone *androidsim.Phone, _ *capture.Process) {
				phone.BreakFile("/proc/*/status", androidsim.FileDenied)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.options.Apps = []androidsim.App{
					{Package: "com.shop", Debuggable: c.debuggable, Processes: []androidsim.ProcessSpec{
						{Name: "com.shop", Models: sawtooth}, {Name: "com.shop:isolated", Isolated: true},
						{Name: "com.shop:tool", Native: true},
					}}}
				phone := androidsim.New(c.options)
				if c.process == "" {
					c.process = "com.shop"
				}
				time.Sleep(20 * time.Minute)
				dev := &localPhone{Phone: phone}
				found, err := capture.FindProcesses(t.Context(), dev, []capture.Pattern{capture.Pattern(c.process)})
				if err != nil || len(found.Processes) != 1 {
					t.Fatalf("%+v %v", found, err)
				}
				p := found.Processes[0]
				before, _ := phone.Memory(c.process)
				if c.change != nil {
					c.change(phone, &p)
				}
				up, got, err := CollectGarbage(t.Context(), dev, c.uid, []capture.Target{{Process: p}}, time.Minute)
				if err != nil || len(got) != 1 || up <= 0 {
					t.Fatalf("%v %+v %v", up, got, err)
				}
				if c.refused != "" {
					if !strings.Contains(got[0].Refused, c.refused) || c.change == nil &&
						phone.PID(c.process) != p.PID {
						t.Errorf("refused: %q, want %q; pid %d is now %d", got[0].Refused, c.refused, p.PID,
							phone.PID(c.process))
					}
					return
				}
				after, _ := phone.Memory(c.process)
				if got[0].Refused != "" || phone.PID(c.process) != p.PID || after.JavaHeap >= before.JavaHeap {
					t.Errorf("refused: %q; %d kB before, %d kB after", got[0].Refused, before.JavaHeap, after.JavaHeap)
				}
			})
		})
	}
}

// A truncated response is an error of the device, not of a process.
func TestCollectGarbageNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phone := androidsim.New(androidsim.Options{})
		phone.TruncateOutput(5, true)
		_, _, err := CollectGarbage(t.Context(), &localPhone{Phone: phone}, 2000,
			[]capture.Target{{Process: capture.Process{Name: "com.shop", UID: 10123, PID: 7, Start: 9}}}, time.Minute)
		if !errors.Is(err, shell.ErrDevice) {
			t.Errorf("error %v", err)
		}
	})
}

func TestCollectAnswer(t *testing.T) {
	for said, want := range map[string]string{
		"sent\n": "", "WARNING: linker: x\nsent\n": "", "gone\n": "the process has ended",
		"\n":          "the device reported no reason",
		"presented\n": "presented", "kill: 7: Operation not permitted\n": "kill: 7: Operation not permitted",
	} {
		if got := collectAnswer([]byte(said)); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
