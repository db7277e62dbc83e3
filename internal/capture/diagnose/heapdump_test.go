package diagnose

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/internal/shelltest"
	"github.com/leakgate/leakgate/internal/text"
)

// dumpCase is a fault of a heap dump, and the expected result.
type dumpCase struct {
	name string
	// situation changes the phone before it starts; begin changes the running
	// phone.
	situation func(*situation)
	begin     func(t *testing.T, d *localPhone, facts *capture.Facts, r *Request)
	ending    Ending
	words     string
	// within is the maximum wall-clock time that the case may take.
	within time.Duration
}

// on calls do at the start of each round trip whose command contains words.
func (d *localPhone) on(words string, do func(ctx context.Context) error) {
	d.before = func(ctx context.Context, _ int, what string) error {
		if strings.Contains(what, words) {
			return do(ctx)
		}
		return nil
	}
}

// meanwhile returns a fault that lets a round trip start and runs a function
// during it.
func meanwhile(wait time.Duration, do func()) func(context.Context) error {
	return func(context.Context) error {
		time.AfterFunc(wait, do)
		return nil
	}
}

func cutReader(n int64) func(io.Reader) io.Reader {
	return func(r io.Reader) io.Reader { return io.LimitReader(r, n) }
}

var dumpCases = []dumpCase{
	{name: "complete", ending: Complete, within: 5 * time.Second},
	{name: "complete, am does not wait", situation: func(s *situation) { s.api = 28 }, ending: Complete,
		within: 8 * time.Second},
	{name: "complete, with the GC signal", situation: func(s *situation) { s.api = 26 }, ending: Complete,
		within: 13 * time.Second},
	{name: "the process dies", begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) {
		d.on("am dumpheap", meanwhile(700*time.Millisecond, func() { d.Kill("com.shop") }))
	}, ending: Failed, words: "the process died while its heap was being dumped", within: 5 * time.Second},
	{name: "the process dies, am does not wait", situation: func(s *situation) { s.api = 28 },
		begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) {
			d.on("am dumpheap", meanwhile(700*time.Millisecond, func() { d.Kill("com.shop") }))
		}, ending: Failed, words: "the process died while its heap was being dumped", within: 5 * time.Second},
	{name: "the process restarted before the dump",
		begin:  func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) { d.Restart("com.shop") },
		ending: Skipped, words: "the process ended before the diagnosis", within: time.Second},
	{name: "the system crashes", begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) {
		d.on("am dumpheap", meanwhile(500*time.Millisecond, func() { d.CrashSystem(time.Minute) }))
	}, ending: Failed, words: "died", within: 10 * time.Second},
	{name: "the system is down", begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) {
		d.on("am help", func(context.Context) error { d.CrashSystem(time.Hour); return nil })
	}, ending: Failed, words: "system_server is not running", within: 5 * time.Second},
	{name: "system_server hangs", begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) {
		d.on("am help", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	}, ending: Failed, words: "system_server hangs", within: 15 * time.Second},
	{name: "the process is frozen",
		begin:  func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) { d.Freeze("com.shop", true) },
		ending: Failed, words: "the dump was not finished in 5m0s", within: 6 * time.Minute},
	{name: "not debuggable", situation: func(s *situation) { s.debuggable = false }, ending: Skipped,
		words: "com.shop is not debuggable: use a debuggable build", within: 3 * time.Second},
	{name: "process unknown to am", begin: func(t *testing.T, d *localPhone, _ *capture.Facts, r *Request) {
		found, err := capture.FindProcesses(t.Context(), d, []capture.Pattern{"surfaceflinger"})
		if err != nil || len(found.Processes) != 1 {
			t.Fatal(found, err)
		}
		r.Process = found.Processes[0]
	}, ending: Skipped, words: "am does not know process", within: 3 * time.Second},
	{name: "no am", begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) { d.without = "am" },
		ending: Skipped, words: "this build has no am", within: time.Second},
	{name: "device disk full",
		begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) { d.FillDisk(10 << 20) }, ending: Failed,
		words: "the device's disk is full: 10.0 MB free on /data, and a dump may take", within: time.Second},
	{name: "device disk fills up before the dump",
		situation: func(s *situation) { s.options.DumpHeap = large(200 << 20) },
		begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, r *Request) {
			d.FillDisk(100 << 20)
			r.Expect = 1
		}, ending: Failed, words: "the dump is empty", within: 10 * time.Second},
	{name: "device disk fills up during the dump",
		situation: func(s *situation) { s.options.DumpHeap = large(200 << 20) },
		begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, r *Request) {
			d.on("am dumpheap", func(context.Context) error { d.FillDisk(30 << 20); return nil })
		}, ending: Failed, words: "the device's disk is full", within: 10 * time.Second},
	{name: "device disk fills up, am does not wait",
		situation: func(s *situation) { s.api, s.options.DumpHeap = 28, large(200<<20) },
		begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, r *Request) {
			d.on("am dumpheap", func(context.Context) error { d.FillDisk(30 << 20); return nil })
		}, ending: Failed, words: "the device's disk is full", within: 2 * time.Minute},
	{name: "host disk full", begin: func(_ *testing.T, _ *localPhone, _ *capture.Facts, r *Request) {
		r.HostFree = func() (int64, error) { return reserve + 1<<20, nil }
	}, ending: Failed, words: "the host's disk is full", within: 5 * time.Second},
	{name: "device disk too small for memory outside the Java heap",
		situation: func(s *situation) { s.options.HeapSize = 64 },
		begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) {
			d.FillDisk(130 << 20)
		}, ending: Complete, within: 5 * time.Second},
	{name: "device disk too small for a Java heap",
		situation: func(s *situation) { s.options.HeapSize = 128 },
		begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) {
			d.FillDisk(130 << 20)
		}, ending: Failed, words: "130.0 MB free on /data, and a dump may take", within: time.Second},
	{name: "host disk known to be full", begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, r *Request) {
		r.Expect = 10 << 20
		r.HostFree = func() (int64, error) { return reserve + 19<<20, nil }
		d.on("am dumpheap",
			func(context.Context) error { panic("the process is paused although the dump cannot be stored") })
	}, ending: Failed, words: "the host's disk is full", within: time.Second},
	{name: "host disk space unknown", begin: func(_ *testing.T, _ *localPhone, _ *capture.Facts, r *Request) {
		r.HostFree = func() (int64, error) { return 0, errors.ErrUnsupported }
	}, ending: Complete, words: "the host's free space is unknown", within: 5 * time.Second},
	{name: "pull ends early",
		begin:  func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) { d.pulled = cutReader(5000) },
		ending: Failed, words: "the dump is truncated after 5000 of ", within: 5 * time.Second},
	{name: "pull ends early, am does not wait", situation: func(s *situation) { s.api = 28 },
		begin:  func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) { d.pulled = cutReader(5000) },
		ending: Failed, words: "the dump is truncated after 5000 of ", within: 15 * time.Second},
	{name: "dump truncated on the device", situation: func(s *situation) { s.options.DumpHeap = short },
		ending: Failed, words: "the dump is truncated after", within: 5 * time.Second},
	{name: "no dump", situation: func(s *situation) {
		s.options.DumpHeap = func(w io.Writer, _ androidsim.Heap) error {
			return writeText(w, "Heap dump not available")
		}
	}, ending: Failed, words: "not a heap dump", within: 5 * time.Second},
	{name: "empty dump", situation: func(s *situation) {
		s.options.DumpHeap = func(io.Writer, androidsim.Heap) error { return nil }
	}, ending: Failed, words: "the dump is empty", within: 5 * time.Second},
	{name: "process does not accept the signal", situation: func(s *situation) { s.api = 26 },
		begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) {
			d.BreakFile("/proc/*/status", androidsim.FileEmpty)
		}, ending: Fallback, words: garbage, within: 8 * time.Second},
	{name: "endless pull", begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) {
		d.pulled = func(r io.Reader) io.Reader { return io.LimitReader(io.MultiReader(r, zeros{}), 1<<30) }
	}, ending: Failed, words: "the device sends more than ", within: 5 * time.Second},
	{name: "endless pull, am does not wait", situation: func(s *situation) { s.api = 28 },
		begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) {
			d.pulled = func(r io.Reader) io.Reader { return io.LimitReader(io.MultiReader(r, zeros{}), 1<<30) }
		}, ending: Failed, words: "the device sends more than ", within: 2 * time.Minute},
	{name: "byte changes in transit",
		begin:  func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) { d.pulled = flipped(1) },
		ending: Complete, words: "it was pulled again", within: 6 * time.Second},
	{name: "byte changes in transit, Android 5", situation: func(s *situation) { s.api, s.rooted = 21, true },
		begin:  func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) { d.pulled = flipped(1) },
		ending: Complete, words: "it was pulled again", within: 15 * time.Second},
	{name: "bytes change in transit each time",
		begin:  func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) { d.pulled = flipped(9) },
		ending: Failed, words: "the dump arrives damaged", within: 6 * time.Second},
	{name: "bytes change, device without a checksum",
		begin: func(_ *testing.T, d *localPhone, _ *capture.Facts, _ *Request) {
			d.absent, d.pulled = "md5sum", flipped(9)
		}, ending: Complete, within: 6 * time.Second},
	{name: "directory in place of the dump", begin: func(t *testing.T, d *localPhone, _ *capture.Facts, _ *Request) {
		d.on("pull ", func(ctx context.Context) error {
			for _, name := range d.dumps(t) {
				path := dumpDir + "/" + name
				d.Phone.Shell(ctx, "rm "+path+"; mkdir "+path+"; echo x >"+path+"/x", strings.NewReader(""), io.Discard,
					io.Discard)
			}
			return nil
		})
	}, ending: Failed, words: "pull dump: open /data/local/tmp", within: 10 * time.Second},
	{name: "invalid run name",
		begin: func(_ *testing.T, _ *localPhone, _ *capture.Facts, r *Request) { r.Run = "../x" }, ending: Failed,
		words: "letters and digits", within: time.Second},
}

// flipped returns a function that changes a byte in each of the first n pulls.
func flipped(pulls int) func(io.Reader) io.Reader {
	return func(r io.Reader) io.Reader {
		if pulls--; pulls < 0 {
			return r
		}
		all, err := io.ReadAll(r)
		if err == nil {
			all[len(all)/2] ^= 1
		}
		return bytes.NewReader(all)
	}
}

func writeText(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// large writes a dump of n bytes, in one segment without content.
func large(n int64) func(io.Writer, androidsim.Heap) error {
	return func(w io.Writer, _ androidsim.Heap) error {
		_, err := io.Copy(w, largeDump(n))
		return err
	}
}

// short writes a dump whose end record is missing.
func short(w io.Writer, _ androidsim.Heap) error {
	_, err := io.CopyN(w, largeDump(10_000), 10_000-recordHead)
	return err
}

// zeros is an endless stream of zero bytes.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func record(tag byte, length uint32) []byte {
	return append([]byte{tag, 0, 0, 0, 0}, binary.BigEndian.AppendUint32(nil, length)...)
}

// largeDump returns a complete dump of n bytes.
func largeDump(n int64) io.Reader {
	head := append([]byte("JAVA PROFILE 1.0.3\x00\x00\x00\x00\x04"), make([]byte, 8)...)
	body := n - int64(len(head)) - 2*recordHead
	return io.MultiReader(bytes.NewReader(append(head, record(tagHeapSegment, uint32(body))...)),
		io.LimitReader(zeros{}, body), bytes.NewReader(record(tagHeapEnd, 0)))
}

func TestHeapDump(t *testing.T) {
	for _, c := range dumpCases {
		t.Run(c.name, func(t *testing.T) { synctest.Test(t, c.run) })
	}
}

func (c dumpCase) run(t *testing.T) {
	s := debuggable(34)
	if c.situation != nil {
		c.situation(&s)
	}
	d, facts, r := s.begin(t)
	var paused []bool
	r.Paused = func(on bool) { paused = append(paused, on) }
	if c.begin != nil {
		c.begin(t, d, &facts, &r)
	}
	began := time.Now()
	got, err := collect(t, t.Context(), d, facts, r, "dump")
	took := time.Since(began)
	if err != nil {
		t.Error(err)
	}
	o := got.Steps[0]
	said := strings.Join(append(o.Reasons, o.Note), "; ")
	if strings.Contains(said, "pull dump") && strings.Contains(said, capture.ErrDevice.Error()) {
		t.Errorf("the device answered, but the error says that it does not respond: %s", said)
	}
	if o.Ending != c.ending || !strings.Contains(said, c.words) {
		t.Errorf("%s, want %s with %q: %s", o.Ending, c.ending, c.words, said)
	}
	if took > c.within {
		t.Errorf("took %v", took)
	}
	if n := len(paused); n != 0 && (n != 2 || !paused[0] || paused[1]) {
		t.Errorf("paused %v", paused)
	}
	if left := d.dumps(t); len(left) > 0 {
		t.Errorf("dumps left on the device: %v", left)
	}
}

// TestCallerEndsHeapDump: Ctrl-C during a heap dump leaves no file on the
// device.
func TestCallerEndsHeapDump(t *testing.T) {
	for _, words := range []string{"am help", "am dumpheap", "stat -c", "pull "} {
		synctest.Test(t, func(t *testing.T) {
			d, facts, r := debuggable(34).begin(t)
			ctx, cancel := context.WithCancel(t.Context())
			d.on(words, meanwhile(time.Nanosecond, cancel))
			var stopped bool
			r.Paused = func(on bool) { stopped = on }
			_, err := collect(t, ctx, d, facts, r, "dump")
			if !errors.Is(err, context.Canceled) && words != "pull " {
				t.Errorf("in %s: %v", words, err)
			}
			if left := d.dumps(t); len(left) > 0 || stopped {
				t.Errorf("canceled in %s: dumps left on the device: %v; still paused: %t", words, left, stopped)
			}
		})
	}
}

// TestSlowDumpIsWaitedFor: if the end of a dump is not reported and writing
// pauses, the dump is pulled again.
func TestSlowDumpIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		const size, first = 9000, 20 * time.Second
		var whole bytes.Buffer
		if _, err := whole.ReadFrom(largeDump(size)); err != nil {
			t.Fatal(err)
		}
		written := func() []byte {
			if time.Since(began) < first {
				return whole.Bytes()[:size/2]
			}
			return whole.Bytes()
		}
		p := capture.Process{Name: "com.a", UID: 10100, PID: 7, Start: 5}
		dev := &puller{
			Device: shelltest.Device{
				Run: func(_ context.Context, command string, stdout, stderr io.Writer) (int, error) {
					return 0, play(stdout, command, map[string]string{
						"cat /proc/7/stat": statLine(7, "a", 5), "cat /proc/uptime": "10.00 9.00\n",
						"stat -c %s": fmt.Sprintf("%d\n", len(written())),
						"am help":    "am dumpheap [--user <USER_ID> current] [-g] <PROCESS> <FILE>\n",
					})
				}}, file: written}
		r := Request{Process: p, Dir: t.TempDir(), Run: "r"}
		r.Recipe, _ = RecipeOf("dump")
		got, err := Diagnose(t.Context(), dev, capture.Facts{API: 28, UID: 0, TimeScale: 1}, r)
		checkDiagnosis(t, r, got)
		if o := got.Steps[0]; err != nil || o.Bytes != size || dev.pulls != 2 {
			t.Errorf("%+v, %d pulls, %v", o, dev.pulls, err)
		}
	})
}

// scriptedDump diagnoses process 7 on a scripted device whose am does not wait.
// For each check of the process, stat returns a stat line, or an error if the
// device does not respond.
func scriptedDump(t *testing.T, api int, stat func(dumped bool) (string, error)) Diagnosis {
	t.Helper()
	var whole bytes.Buffer
	if _, err := whole.ReadFrom(largeDump(9000)); err != nil {
		t.Fatal(err)
	}
	dumped, waits := false, ""
	if api >= 30 {
		waits = "Waiting for dump to finish...\n"
	}
	dev := &puller{
		Device: shelltest.Device{Run: func(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
			line := ""
			if strings.Contains(command, "cat /proc/7/stat ") {
				var err error
				if line, err = stat(dumped); err != nil {
					return -1, err
				}
			}
			dumped = dumped || strings.Contains(command, "am dumpheap")
			return 0, play(stdout, command, map[string]string{
				"cat /proc/7/stat ": line, "cat /proc/uptime": "10.00 9.00\n", "stat -c %s": "9000\n",
				"am dumpheap": waits,
				"am help":     "am dumpheap [--user <USER_ID> current] [-g] <PROCESS> <FILE>\n",
			})
		}}, file: whole.Bytes}
	r := Request{Process: capture.Process{Name: "com.a", UID: 10100, PID: 7, Start: 5}, Dir: t.TempDir(), Run: "r"}
	r.Recipe, _ = RecipeOf("dump")
	got, err := Diagnose(t.Context(), dev, capture.Facts{API: api, TimeScale: 1}, r)
	if err != nil {
		t.Error(err)
	}
	checkDiagnosis(t, r, got)
	return got
}

// TestCheckAfterTheDump: a check of the process after the dump decides whether
// the dump belongs to the requested process. A single check without a response
// is not enough to decide.
func TestCheckAfterTheDump(t *testing.T) {
	own, other := statLine(7, "a", 5), statLine(7, "b", 6)
	for _, c := range []struct {
		name string
		// looks lists the responses to the checks after am; "-" means no
		// response, and the last response repeats.
		looks  []string
		ending Ending
		words  string
	}{
		{"there", []string{own}, Complete, ""},
		{"gone", []string{""}, Complete, ""},
		{"no answer", []string{"-", own}, Complete, ""},
		{"no answer twice, then gone", []string{"-", "-", ""}, Complete, ""},
		{"no answer three times", []string{"-", "-", "-", own}, Failed, "watch the dump"},
		{"another process", []string{other}, Failed, "pid 7 now belongs to another process"},
		{"another process after no answer", []string{"-", other}, Failed, "pid 7 now belongs to another process"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				looks := c.looks
				o := scriptedDump(t, 34, func(dumped bool) (string, error) {
					if !dumped {
						return own, nil
					}
					line := looks[0]
					looks = looks[min(1, len(looks)-1):]
					if line == "-" {
						return "", errUnplugged
					}
					return line, nil
				}).Steps[0]
				if o.Ending != c.ending || !strings.Contains(strings.Join(o.Reasons, "; "), c.words) {
					t.Errorf("%+v", o)
				}
			})
		})
	}
}

// TestRemovalThatFails: a removal that fails once is repeated. A dump that may
// still be on the device is named in the outcome, however the step ends, and
// the sweep finds it.
func TestRemovalThatFails(t *testing.T) {
	for _, times := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			d, facts, r := debuggable(34).begin(t)
			failed := 0
			d.before = func(_ context.Context, _ int, what string) error {
				if strings.Contains(what, " 'left'; ") {
					if failed++; failed <= times {
						return errUnplugged
					}
				}
				return nil
			}
			got, err := collect(t, t.Context(), d, facts, r, "dump")
			o := got.Steps[0]
			if err != nil || o.Ending != Complete {
				t.Fatalf("%+v, %v", o, err)
			}
			left := d.dumps(t)
			if told := o.Left != ""; told != (times == 2) || len(left) != times-1 || told &&
				(!strings.HasSuffix(o.Left, left[0]) || !strings.HasPrefix(o.Reasons[0], o.Left)) {
				t.Errorf("%d times: %q, %q, left %q", times, o.Left, o.Reasons, left)
			}
			if swept, err := Sweep(t.Context(), d); err != nil || len(swept) != len(left) {
				t.Errorf("swept %q, %v", swept, err)
			}
		})
	}
}

// puller is a scripted device with one file.
type puller struct {
	shelltest.Device
	file  func() []byte
	pulls int
}

func (d *puller) Pull(_ context.Context, _ string, w io.Writer) (int64, error) {
	d.pulls++
	n, err := w.Write(d.file())
	return int64(n), err
}

// largeDumpDevice is a device with a dump of size bytes.
type largeDumpDevice struct {
	shelltest.Device
	size int64
}

func (d *largeDumpDevice) Pull(_ context.Context, _ string, w io.Writer) (int64, error) {
	return io.Copy(w, largeDump(d.size))
}

// TestLargeHeapDump: half a gigabyte is written to the disk without being held
// in memory.
func TestLargeHeapDump(t *testing.T) {
	if testing.Short() {
		t.Skip("writes half a gigabyte")
	}
	const size = 520 << 20
	d := &largeDumpDevice{
		size: size,
		Device: shelltest.Device{Run: func(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
			return 0, play(stdout, command, map[string]string{
				"cat /proc/7/stat": statLine(7, "a", 5), "cat /proc/uptime": "10.00 9.00\n",
				"stat -c %s":  fmt.Sprintf("%d\n", size),
				"am dumpheap": "File: x\nWaiting for dump to finish...\n",
			})
		}}}
	r := Request{Process: capture.Process{Name: "com.a", UID: 10100, PID: 7, Start: 5}, Dir: t.TempDir(), Run: "r"}
	r.Recipe, _ = RecipeOf("dump")
	var before, behind runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := Diagnose(t.Context(), d, capture.Facts{API: 34, UID: 2000, TimeScale: 1}, r)
	runtime.ReadMemStats(&behind)
	if o := got.Steps[0]; err != nil || o.Bytes != size {
		t.Errorf("%+v, %v", o, err)
	}
	if used := behind.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("taking the dump allocated %d bytes, want at most 8 MB", used)
	}
}

// TestSweep: the caller's own dumps are removed immediately, and dumps of other
// owners once they cannot be in use. No other file of another owner is removed,
// whatever its name.
func TestSweep(t *testing.T) {
	for _, api := range []int{21, 23, 34} {
		t.Run(fmt.Sprint(api), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { sweep(t, api) }) })
	}
}

func sweep(t *testing.T, api int) {
	d, _, _ := debuggable(api).begin(t)
	own := dumpPrefix + owner(d)
	touch := func(names ...string) {
		t.Helper()
		for _, name := range names {
			if exit, err := d.Shell(t.Context(), "cd /data/local/tmp && echo x >"+text.ShellQuote(name), io.Discard,
				io.Discard); exit != 0 || err != nil {
				t.Fatal(name, exit, err)
			}
		}
	}
	touch("leakgate-0a1b2c3d-old-1.hprof", "leakgate-old-1.hprof", "leakgate-b c.hprof",
		"leakgate-$(rm other.hprof)-1.hprof", "leakgate-'; rm other.hprof;'.hprof",
		"leakgate-a\n0 .hprof", "leakgate.hprof", "leakgate-a.txt", "other.hprof")
	if exit, err := d.Shell(t.Context(), "mkdir /data/local/tmp/leakgate-d.hprof /data/local/tmp/"+own+"-d.hprof",
		io.Discard, io.Discard); exit != 0 || err != nil {
		t.Fatal(exit, err)
	}
	stays := strings.Fields("leakgate-d.hprof leakgate.hprof leakgate-a.txt other.hprof " +
		"leakgate-b leakgate-$(rm leakgate-'; leakgate-a leakgate-0a1b2c3d-new-1.hprof")
	check := func(want ...string) {
		t.Helper()
		got, err := Sweep(t.Context(), d)
		for i := range want {
			want[i] = "/data/local/tmp/" + want[i]
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, want) {
			t.Errorf("swept %q, %v, want %q", got, err, want)
		}
	}
	touch(own+"-r-1.hprof", own+"-r 2.hprof")
	// A file, a directory or a link that has the name of one of the caller's
	// own dumps is removed too, but not the target of a link.
	if exit, err := d.Shell(t.Context(), "cd /data/local/tmp && echo x >"+own+
		"-d.hprof/x && mkdir others && echo x >others/x", io.Discard, io.Discard); exit != 0 || err != nil {
		t.Fatal(exit, err)
	}
	check(own+"-d.hprof", own+"-r 2.hprof", own+"-r-1.hprof")
	check()
	time.Sleep(oldDump - 10*time.Minute)
	touch("leakgate-0a1b2c3d-new-1.hprof")
	check()
	time.Sleep(20 * time.Minute)
	requests := len(d.requests)
	check("leakgate-0a1b2c3d-old-1.hprof", "leakgate-old-1.hprof")
	check()
	if n := len(d.requests) - requests; n != 3 {
		t.Errorf("%d requests", n)
	}
	var left strings.Builder
	if _, err := d.Shell(t.Context(), "ls /data/local/tmp", &left, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, name := range stays {
		if !strings.Contains(left.String(), name) {
			t.Errorf("%s was removed: %q", name, left.String())
		}
	}
}

// TestOwner: a different serial, user or host is a different owner.
func TestOwner(t *testing.T) {
	one := owner(named{serial: "a"})
	if one != owner(named{serial: "a"}) || one == owner(named{serial: "192.168.1.5:5555"}) ||
		!regexp.MustCompile("^[0-9a-f]{8}$").MatchString(one) {
		t.Errorf("%s, %s", one, owner(named{serial: "b"}))
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	if another := owner(named{serial: "a"}); another == one {
		t.Errorf("another user has the same owner id %s", another)
	}
}

// named is a device that has only a serial number.
type named struct {
	capture.Device
	serial string
}

func (n named) Serial() string { return n.serial }

func TestParseSize(t *testing.T) {
	const file = "/data/local/tmp/leakgate-a-1.hprof"
	for text, want := range map[string]int64{
		"": 0, "1234\n": 1234, "ls: " + file + ": No such file or directory\n": 0,
		"stat: not found\n-rw-rw-rw- shell    shell     4096 2015-06-01 12:00 leakgate-a-1.hprof\n": 4096,
		"-rw-rw-rw- 1 shell shell 77 2020-06-01 12:00 " + file + "\n":                               77, "-1\n": 0,
		"99999999999999999999\n": 0, "x 2020-06-01 y": 0,
	} {
		if got := parseSize(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestHandles(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "SigBlk:\t0000000080001204\n": true, "SigCgt:\t0000000000000200\n": true,
		"SigBlk:\t0000000000000100\nSigCgt:\t0000000000000400\nSigIgn:\t0000000000000200\n": false,
		"SigBlk:\tx\n": false,
	} {
		if got := handles([]byte(text), sigUSR1); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestHostErrorIsReported writes to a full disk: the error must say that the
// host's disk is full.
func TestHostErrorIsReported(t *testing.T) {
	a, err := newArtifact(t.TempDir(), "x", 100)
	if err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		recorded.Missing(t, "needs a full disk: %v", err)
	}
	_ = a.file.Close() // replaced by full
	a.file = full
	if _, err := a.Write([]byte("text")); err == nil || !strings.Contains(err.Error(), "the host's disk is full") {
		t.Error(err)
	}
	_ = full.Close()
}
