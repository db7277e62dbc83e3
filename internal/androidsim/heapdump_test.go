package androidsim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

const dumpFile = "/data/local/tmp/d"

// pullDump reads the whole file, as adb pull does.
func pullDump(t *testing.T, p *Phone) []byte {
	t.Helper()
	r, err := p.Open(dumpFile)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	i, err := p.Stat(dumpFile)
	if err != nil {
		t.Fatal(err)
	}
	// The buffer is large enough for a dump of many MB.
	var data bytes.Buffer
	data.Grow(int(i.Size()) + bytes.MinRead)
	if _, err := data.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

// takeDump dumps the heap of com.shop and loads the object graph.
func takeDump(t *testing.T, p *Phone, options string) *hproftest.Graph {
	t.Helper()
	ask(t, p, "am dumpheap "+options+" com.shop "+dumpFile)
	time.Sleep(dumpTakes)
	g, err := hproftest.ReadGraph(pullDump(t, p))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// lean returns a phone with an app whose heap is small, so that its dump can be
// read quickly.
func lean(o Options, models ...Model) *Phone {
	o.Apps = []App{
		{
			Package: "com.shop", Debuggable: true,
			Processes: []ProcessSpec{{Name: "com.shop", Models: append([]Model{Steady(JavaHeap, 0.5)}, models...)}},
		},
	}
	return New(o)
}

// leakedIn returns the Activities in the static list.
func leakedIn(g *hproftest.Graph) (out []hprof.ID) {
	array := g.Nodes[g.Path(g.Class("com.shop.ScreenTracker"), "sScreens.elementData")]
	if array == nil {
		return nil
	}
	for _, id := range array.Elements {
		if id != 0 {
			out = append(out, id)
		}
	}
	return out
}

// activities returns the number of Activities in dumpsys meminfo.
func activities(t *testing.T, p *Phone) int {
	t.Helper()
	_, after, _ := strings.Cut(ask(t, p, "dumpsys meminfo com.shop"), "Activities:")
	n, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestHeapDumpShowsTheLeak checks that destroyed Activities retain the model's
// leaked bytes, and that dumpsys reports the same number of Activities.
func TestHeapDumpShowsTheLeak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := lean(Options{Manufacturer: "LG", Seed: 3}, Noise(0.1, 0.7), Leak(Java, 240, time.Minute))
		began := p.Uptime()
		if g := takeDump(t, p, "-g"); leakedIn(g) != nil {
			t.Error("the dump contains the leak before its onset")
		}
		sizes := map[string]bool{}
		var before []int64
		for _, wait := range []time.Duration{time.Minute + 10*time.Second, time.Minute, time.Minute} {
			time.Sleep(wait)
			at := p.Uptime() - began
			count := activities(t, p) - 1
			at += p.Uptime() - began - at // the duration of dumpsys
			g := takeDump(t, p, "-g")
			leaked := leakedIn(g)
			want := int64(240.0 / 3600 * (1 << 20) * (at - time.Minute).Seconds())
			got := g.Retained(leaked...)
			if d := got - want; d < -100_000 || d > 100_000 {
				t.Errorf("after %v destroyed Activities retain %d bytes, want %d", at, got, want)
			}
			if len(leaked) != max(count, 1) {
				t.Errorf("%d Activities leaked, dumpsys counts %d", len(leaked), count)
			}
			var each []int64
			for _, id := range leaked {
				if destroyed, ok := g.Field(id, "mDestroyed"); !ok || destroyed != 1 ||
					g.Nodes[id].Class != "com.shop.DetailActivity" {
					t.Errorf("%s is retained", g.Nodes[id].Class)
				}
				each = append(each, g.Retained(id))
			}
			for i, size := range each[:max(len(each)-1, 0)] {
				if size != 2<<20 || i < len(before)-1 && before[i] != size {
					t.Errorf("Activity %d retains %d bytes", i, size)
				}
			}
			before = each
			sizes[fmt.Sprint(got)] = true
		}
		if len(sizes) != 3 {
			t.Errorf("the leak does not grow: %v", sizes)
		}
	})
}

func TestHeapDumpIsOfTheProcess(t *testing.T) {
	for _, api := range []int{18, 23, 25, 26, 30, 34, 36} {
		synctest.Test(t, func(t *testing.T) {
			p := lean(Options{API: api, Manufacturer: "samsung"}, Leak(Thread, 3600, 0))
			time.Sleep(time.Second)
			options := ""
			if api >= heapBitmaps {
				options = "-b png"
			}
			g := takeDump(t, p, options)
			thread := g.Path(g.Class("android.app.ActivityThread"), "sCurrentActivityThread")
			if name := g.Text(g.Path(thread, "mBoundApplication.appInfo.processName")); name != "com.shop" {
				t.Errorf("API %d: process %q", api, name)
			}
			sdk, _ := g.Field(g.Class("android.os.Build$VERSION"), "SDK_INT")
			if int(sdk) != max(api, 23) || g.Text(g.Path(g.Class("android.os.Build"), "MANUFACTURER")) != "samsung" {
				t.Errorf("API %d: SDK %d", api, sdk)
			}
			if data := g.Path(g.Class("android.graphics.Bitmap"), "dumpData"); (data != 0) != (api >= heapBitmaps) {
				t.Errorf("API %d: dumpData 0x%x", api, uint64(data))
			}
			threads := 0
			for _, n := range g.Nodes {
				if n.Class == "java.lang.Thread" && n.Kind == hprof.SubInstance &&
					strings.HasPrefix(g.Text(g.Path(n.ID, "name")), "pool-") {
					threads++
				}
			}
			if m, _ := p.Memory("com.shop"); threads < 10 || threads > m.Threads-defaultThreads {
				t.Errorf("API %d: %d pool threads of %d threads", api, threads, m.Threads)
			}
			ends := map[hprof.ID]bool{}
			for id := range g.Reachable() {
				ends[id] = true
			}
			if len(ends) < len(g.Nodes)*9/10 || len(ends) == len(g.Nodes) {
				t.Errorf("API %d: %d of %d objects are reachable", api, len(ends), len(g.Nodes))
			}
		})
	}
}

// TestHeapDumpIsStable checks that every reader gets the same bytes.
func TestHeapDumpIsStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := shop(Options{}, Leak(Java, 3600, 0))
		time.Sleep(5 * time.Second)
		ask(t, p, "am dumpheap -g com.shop "+dumpFile)
		first := pullDump(t, p)
		time.Sleep(time.Hour)
		if second := pullDump(t, p); !bytes.Equal(first, second) {
			t.Error("two pulls of one dump differ")
		}
		i, err := p.Stat(dumpFile)
		if err != nil || i.Size() != int64(len(first)) {
			t.Errorf("%d bytes, but stat says %d, %v", len(first), i.Size(), err)
		}
		for command, want := range map[string]string{
			"stat -c %s " + dumpFile: fmt.Sprint(len(first)), "grep -c . " + dumpFile + " >/dev/null": "",
			"cat " + dumpFile + " >/data/local/tmp/e": "",
		} {
			if got := strings.TrimSpace(ask(t, p, command)); got != want {
				t.Errorf("%s: %q, want %q", command, got, want)
			}
		}
		if r, err := p.Open("/data/local/tmp/e"); err != nil {
			t.Error(err)
		} else if kept, err := io.ReadAll(r); err != nil || !bytes.Equal(kept, first) {
			t.Errorf("the copy of a dump of %d bytes has %d bytes: %v", len(first), len(kept), err)
		}
		if a := sh1(t, p, "echo x >>"+dumpFile); !strings.Contains(a.err, "File too large") {
			t.Errorf("appending: %+v", a)
		}
		if ask(t, p, "echo x >"+dumpFile+"; cat "+dumpFile) != "x\n" || p.files.made != 0 {
			t.Errorf("overwriting: %d bytes are generated", p.files.made)
		}
	})
}

// TestHeapDumpIsLarge checks that the size of generated files is not limited.
func TestHeapDumpIsLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := shop(Options{}, Leak(Java, 1000, 0))
		time.Sleep(30 * time.Minute)
		free := func() int {
			fields := strings.Fields(ask(t, p, "df -k /data | grep ^/"))
			n, _ := strconv.Atoi(fields[3])
			return n
		}
		before := free()
		ask(t, p, "am dumpheap com.shop "+dumpFile)
		i, err := p.Stat(dumpFile)
		if err != nil || i.Size() < 500<<20 || before-free() < 500<<10 {
			t.Errorf("dump of %d bytes, free space decreased by %d kB, %v", i.Size(), before-free(), err)
		}
		r, err := p.Open(dumpFile)
		if err != nil {
			t.Fatal(err)
		}
		beginning := make([]byte, 1<<20)
		if _, err := io.ReadFull(r, beginning); err != nil || !bytes.HasPrefix(beginning, []byte(hprof.Format103)) {
			t.Error(err)
		}
		r.Close()
		// Stored files have a separate limit.
		if err := pushFile(p, "/data/local/tmp/kept", 1<<20); err != nil {
			t.Error(err)
		}
		if ask(t, p, "rm "+dumpFile+" /data/local/tmp/kept"); free() != before || p.files.made != 0 ||
			p.files.used > 1<<20 {
			t.Errorf("%d kB free, %d before; %d bytes generated, %d used", free(), before, p.files.made, p.files.used)
		}
	})
}

func pushFile(p *Phone, name string, n int) error {
	w, err := p.Create(name, 0o666)
	if err != nil {
		return err
	}
	if _, err := w.Write(make([]byte, n)); err != nil {
		return err
	}
	return w.Close()
}

// TestHeapDumpOnAFullPhone checks that writing a generated heap dump to a full
// disk fails as for any other file.
func TestHeapDumpOnAFullPhone(t *testing.T) {
	for api, left := range map[int]int64{34: 0, 23: 0, 19: 100_000} {
		synctest.Test(t, func(t *testing.T) {
			p := pair(Options{API: api})
			end := p.FillDisk(100_000)
			ask(t, p, "am dumpheap com.shop "+dumpFile)
			time.Sleep(dumpTakes)
			if n := len(pullDump(t, p)); int64(n) != left || p.files.used != left || p.files.made != left {
				t.Errorf("API %d: %d bytes, %d used", api, n, p.files.used)
			}
			if err := pushFile(p, "/data/local/tmp/more", 100_001-int(left)); !errorIs(err, syscall.ENOSPC) {
				t.Errorf("API %d: got error %v, want no space left", api, err)
			}
			end()
		})
	}
}

func errorIs(err, target error) bool {
	return err != nil && strings.Contains(err.Error(), target.Error())
}

// TestHeapDumpOfADyingProcess checks that the file is truncated at the point
// where the process died, and that am never returns.
func TestHeapDumpOfADyingProcess(t *testing.T) {
	for name, c := range map[string]struct {
		api  int
		end  func(p *Phone)
		exit int
		says string
	}{
		"killed":                   {34, func(p *Phone) { p.Kill("com.shop") }, 0, ""},
		"restarted":                {34, func(p *Phone) { p.Restart("com.shop") }, 0, ""},
		"killed, am does not wait": {27, func(p *Phone) { p.Kill("com.shop") }, 0, ""},
		"system crash": {
			34, func(p *Phone) { p.CrashSystem(0) }, 224, "cmd: Failure calling service activity: Broken pipe (32)\n",
		},
		"reboot":                {27, func(p *Phone) { p.Reboot() }, 0, ""},
		"killed after the dump": {27, func(p *Phone) { time.Sleep(dumpTakes); p.Kill("com.shop") }, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pair(Options{API: c.api})
				ask(t, p, "am dumpheap com.shop /data/local/tmp/whole")
				time.Sleep(dumpTakes)
				whole, err := p.Stat("/data/local/tmp/whole")
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var errs bytes.Buffer
				exit := make(chan int, 1)
				go func() { exit <- p.Shell(ctx, "am dumpheap com.shop "+dumpFile, nil, nil, &errs) }()
				time.Sleep(dumpTakes / 2)
				c.end(p)
				time.Sleep(time.Minute)
				want := whole.Size() / 2
				if name == "killed after the dump" {
					want = whole.Size()
				}
				data := pullDump(t, p)
				if n := int64(len(data)); n < want-1000 || n > want+1000 || p.files.made != n+whole.Size() {
					t.Errorf("%d bytes of %d, %d generated", n, whole.Size(), p.files.made)
				}
				f, err := hprof.Open(ctx, bytes.NewReader(data), int64(len(data)))
				if err != nil || (f.Truncated >= 0) != (want < whole.Size()) {
					t.Errorf("truncated at %d, %v", f.Truncated, err)
				}
				ended := len(exit) == 1
				if waits := c.api >= heapWaits && c.exit == 0; ended == waits {
					t.Errorf("am ended: %v", ended)
				}
				cancel()
				if got := <-exit; ended && got != c.exit || errs.String() != c.says {
					t.Errorf("exit %d, %q", got, errs.String())
				}
			})
		})
	}
}

func TestHeapDumpOfAFrozenProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pair(Options{})
		p.Freeze("com.shop", true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if exit := p.Shell(ctx, "am dumpheap com.shop "+dumpFile, nil, nil, nil); exit == 0 || ctx.Err() == nil {
			t.Errorf("exit %d", exit)
		}
		if n := len(pullDump(t, p)); n > 1000 {
			t.Errorf("%d bytes were written", n)
		}
	})
}

func TestNativeHeap(t *testing.T) {
	for api, want := range map[int]string{
		34: "# adb shell setprop libc.debug.malloc.options backtrace\n",
		19: "$ adb shell setprop libc.debug.malloc 1\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := pair(Options{API: api})
			ask(t, p, "am dumpheap -n com.shop "+dumpFile)
			time.Sleep(dumpTakes)
			text := string(pullDump(t, p))
			if !strings.HasPrefix(text,
				"Native heap dump not available. To enable, run these commands (requires root):\n") ||
				!strings.Contains(text, want) {
				t.Errorf("API %d: %q", api, text)
			}
		})
	}
}

// TestDemoDump checks that the heap dump of the demo is small enough to
// inspect.
func TestDemoDump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Demo(200, 1)
		time.Sleep(3 * time.Second) // ten minutes of device time
		g := takeDump(t, p, "-g")
		m, _ := p.Memory("com.shop")
		leaked := leakedIn(g)
		if held := g.Retained(leaked...); held < 60<<20 || held > 80<<20 || len(leaked) < 30 || m.JavaHeap<<10 < held {
			t.Errorf("%d leaked Activities retain %d bytes of a heap of %d kB", len(leaked), held, m.JavaHeap)
		}
		if i, _ := p.Stat(dumpFile); i.Size() > 90<<20 {
			t.Errorf("%d bytes", i.Size())
		}
	})
}

// TestLargeDump checks that a dump has the requested size and uses no memory
// until it is read, and that its size can be determined without reading it.
func TestLargeDump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 600 << 20
		p := asked(Options{}, ProcessSpec{DumpBytes: size, Models: []Model{Leak(Java, 120, 0)}})
		time.Sleep(10 * time.Minute)
		ask(t, p, "am dumpheap -g com.shop "+dumpFile)
		for _, command := range []string{
			"stat -c %s " + dumpFile, "ls -l " + dumpFile + " | grep -o '[0-9]* 2000' | grep -o '^[0-9]*'",
		} {
			if n := number(t, p, command); n < size || n > size+8<<20 {
				t.Errorf("%s: %d bytes", command, n)
			}
		}
		if p.files.used-p.files.made > 1<<20 {
			t.Errorf("%d bytes are stored", p.files.used-p.files.made)
		}
	})
}

// TestPaddedDump checks that padding does not change the leak.
func TestPaddedDump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := asked(Options{}, ProcessSpec{DumpBytes: 60 << 20, Models: []Model{Leak(Java, 240, 0)}})
		time.Sleep(2 * time.Minute)
		g := takeDump(t, p, "-g")
		if held := g.Retained(leakedIn(g)...); held < 7<<20 || held > 9<<20 {
			t.Errorf("leaked Activities retain %d bytes", held)
		}
		if i, err := p.Stat(dumpFile); err != nil || i.Size() < 60<<20 {
			t.Errorf("%d bytes, %v", i.Size(), err)
		}
	})
}

// TestCutDump checks that am reports success although the end record is
// missing.
func TestCutDump(t *testing.T) {
	for _, api := range apis {
		synctest.Test(t, func(t *testing.T) {
			p := pair(Options{API: api})
			end := p.TruncateDump(100_000)
			ask(t, p, "am dumpheap com.shop "+dumpFile)
			time.Sleep(dumpTakes)
			data := pullDump(t, p)
			f, err := hprof.Open(t.Context(), bytes.NewReader(data), int64(len(data)))
			if len(data) != 100_000 || err != nil || f.Truncated < 0 {
				t.Errorf("API %d: %d bytes, %v", api, len(data), err)
			}
			end()
			ask(t, p, "am dumpheap com.shop "+dumpFile)
			time.Sleep(dumpTakes)
			if _, err := hproftest.ReadGraph(pullDump(t, p)); err != nil {
				t.Errorf("API %d: afterwards: %v", api, err)
			}
		})
	}
}

// TestDumpRights checks who may request a collection before a dump, and who
// owns the file.
func TestDumpRights(t *testing.T) {
	for _, api := range apis {
		for _, root := range []bool{false, true} {
			for _, debuggable := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					o := Options{API: api, Root: root, BuildType: map[bool]string{true: "userdebug"}[root]}
					o.Apps = []App{
						{
							Package: "com.shop", Debuggable: debuggable,
							Processes: []ProcessSpec{{Name: "com.shop", Models: []Model{Typical()}}},
						},
					}
					p := New(o)
					pid := p.PID("com.shop")
					where := fmt.Sprintf("API %d, root %v, debuggable %v", api, root, debuggable)
					if a := sh1(t, p, fmt.Sprintf("kill -10 %d", pid)); root != (a.exit == 0) || !root &&
						!strings.Contains(a.err, "Operation not permitted") {
						t.Errorf("%s: kill: %+v", where, a)
					}
					if a := sh1(t, p, fmt.Sprintf("run-as com.shop kill -10 %d", pid)); debuggable != (a.exit == 0) ||
						!debuggable && !strings.Contains(a.err, "not debuggable") {
						t.Errorf("%s: run-as kill: %+v", where, a)
					}
					a := sh1(t, p, "am dumpheap com.shop "+dumpFile)
					if allowed := root || debuggable; allowed != (a.exit == 0) || !allowed &&
						!strings.HasPrefix(a.err, "Security exception: Process not debuggable") {
						t.Errorf("%s: dumpheap: %+v", where, a)
					}
					if g := sh1(t, p, "am dumpheap -g com.shop "+dumpFile+"2"); api < heapGC &&
						(g.exit == 0 || !strings.Contains(g.err, "Unknown option: -g")) {
						t.Errorf("%s: dumpheap -g: %+v", where, g)
					}
					time.Sleep(dumpTakes)
					// The file exists even if the dump fails, and it can be
					// removed.
					owner := map[bool]string{false: "shell", true: "root"}[root]
					if line := ask(t, p, "ls -l "+dumpFile); !strings.Contains(line, " "+owner) {
						t.Errorf("%s: %s", where, line)
					}
					ask(t, p, "rm -f "+dumpFile+" "+dumpFile+"2 /data/local/tmp/none")
					if left := ask(t, p, "ls /data/local/tmp"); left != "" {
						t.Errorf("%s: %q is left", where, left)
					}
				})
			}
		}
	}
}
