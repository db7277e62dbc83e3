package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
)

// canned is a device that generates its output from a few templates. It
// replaces a simulated phone, which would use more CPU time than the program
// under test.
type canned struct {
	processes int
	started   time.Time

	mu    sync.Mutex
	noise *rand.Rand
	out   []byte
}

func (c *canned) Serial() string { return "canned" }

func (c *canned) up() time.Duration { return time.Hour + time.Since(c.started) }

const firstCannedPID = 3000

// labeled matches the labeled parts of a joined command line.
var labeled = regexp.MustCompile(`echo; echo (@[0-9a-f]+) '(\w+)'`)

func (c *canned) Shell(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = c.out[:0]
	switch {
	case strings.HasPrefix(command, "cat /proc/uptime; cd /proc"):
		c.round()
	case isLook(command):
		c.list(command)
	default:
		c.parts(command)
	}
	_, err := stdout.Write(c.out)
	return 0, err
}

func (c *canned) print(format string, args ...any) { c.out = fmt.Appendf(c.out, format, args...) }

func (c *canned) clock() { c.print("%.2f 1.00\n", c.up().Seconds()) }

func (c *canned) round() {
	c.clock()
	c.print("1000/stat:1000 (system_server) S%s 500 0\n", strings.Repeat(" 1", 18))
	for i := range c.processes {
		pid := firstCannedPID + i
		c.print("%d/stat:%d (com.shop) S 1%s 360000 0\n", pid, pid, strings.Repeat(" 1", 17))
		c.print("%d/status:Threads:\t%d\n%d/status:RssAnon:\t%d kB\n%d/status:VmSwap:\t0 kB\n", pid, 30, pid, 90000,
			pid)
		c.print("%d/smaps_rollup:Pss: %d kB\n%d/smaps_rollup:SwapPss: 0 kB\n", pid, 200000+c.noise.IntN(6000), pid)
	}
	c.print("uptime:%.2f 1.00\n", c.up().Seconds())
}

func (c *canned) list(command string) {
	m := regexp.MustCompile(`echo (@[0-9a-f]+) 'files'`).FindStringSubmatch(command)[1]
	const end = "00000000-0000-4000-8000-000000000000\n"
	process := func(pid int, name string, uid, start int) {
		c.print("%[1]d (x) S 1%[2]s %[3]d "+
			"0\n%[4]sName:\tx\nPid:\t%[1]d\nUid:\t%[5]d\t%[5]d\t%[5]d\t%[5]d\n%[4]s%[6]s\x00%[4]s", pid,
			strings.Repeat(" 1", 17), start, end, uid, name)
	}
	c.print("\n%s files\n", m)
	process(1000, "system_server", 1000, 500)
	for i := range c.processes {
		process(firstCannedPID+i, fmt.Sprintf("com.shop:p%d", i), 10123, 360000)
	}
	c.print("\n%s total\n%d\n\n%s end\n", m, c.processes+1, m)
}

// parts prints the response to each part of a joined command line, in order.
func (c *canned) parts(command string) {
	at := labeled.FindAllStringSubmatchIndex(command, -1)
	for i, m := range at {
		end := len(command)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		c.print("\n%s %s\n", command[m[2]:m[3]], command[m[4]:m[5]])
		c.one(strings.Trim(command[m[1]:end], "; "))
	}
}

var meminfoPID = regexp.MustCompile(`meminfo (\d+)`)

func (c *canned) one(command string) {
	switch {
	case command == "cat /proc/uptime":
		c.clock()
	case strings.HasPrefix(command, "grep -E") && strings.Contains(command, "smaps_rollup"):
		c.print("Pss: 200000 kB\n")
	case strings.HasPrefix(command, "cat /proc/") && strings.Contains(command, "/stat"):
		pid, _ := strconv.Atoi(strings.Split(command, "/")[2])
		c.print("%d (com.shop) S 1%s 360000 0\n", pid, strings.Repeat(" 1", 17))
	case command == "id":
		c.print("uid=0(root) gid=0(root)\n")
	case strings.HasSuffix(command, "sdk"):
		c.print("34\n")
	case strings.HasPrefix(command, "dumpsys"):
		c.meminfo(meminfoPID.FindStringSubmatch(command)[1])
	}
}

func (c *canned) meminfo(pid string) {
	java, native := 60000+c.noise.IntN(3000), 50000+c.noise.IntN(2000)
	c.print("Applications Memory Usage (in Kilobytes):\nUptime: 1 Realtime: 1\n\n** MEMINFO in pid %s [com.shop] "+
		"**\n\n App Summary\n", pid)
	c.print("                       Pss(KB)                        Rss(KB)\n                        ------           " +
		"              ------\n")
	rows := []struct {
		name string
		kb   int
	}{{"Java Heap", java}, {"Native Heap", native}, {"Code", 40000}, {"Stack", 2000}, {"Graphics", 20000},
		{"Private Other", 15000}, {"System", 15000}}
	sum := 0
	for _, r := range rows {
		c.print("%18s:%9d%31d\n", r.name, r.kb, r.kb+500)
		sum += r.kb
	}
	c.print("           TOTAL PSS:%9d            TOTAL RSS:%9d      TOTAL SWAP (KB):        0\n", sum, sum+4000)
}

func (c *canned) Pull(context.Context, string, io.Writer) (int64, error) {
	return 0, errors.ErrUnsupported
}

func (c *canned) Push(context.Context, io.Reader, string, fs.FileMode) error {
	return errors.ErrUnsupported
}

// heapMeter measures the live heap at the end of each day of a run.
type heapMeter struct{ daily []uint64 }

func (h *heapMeter) day() {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the contents of a sync.Pool survive one collection
	runtime.ReadMemStats(&m)
	h.daily = append(h.daily, m.HeapAlloc)
}

// Over a week with 10 processes at an interval of 30 s, the program's heap
// grows by less than 64 kB per process, and hardly at all after the first day.
// By default, two days are simulated; with LEAKGATE_E2E=long, a week; under the
// race detector, each day has only three hours.
func TestWeek(t *testing.T) {
	days, day := 2, 24*time.Hour
	if racing {
		day = 3 * time.Hour
	}
	if os.Getenv("LEAKGATE_E2E") == "long" {
		days = 7
	}
	const processes = 10
	var heap heapMeter
	heap.day() // before the first day
	cpu := cpuTime()
	synctest.Test(t, func(t *testing.T) {
		dev := &canned{processes: processes, started: time.Now(), noise: rand.New(rand.NewPCG(1, 2))}
		facts, err := capture.ReadFacts(t.Context(), dev)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{
			Devices: []Device{{dev, facts}}, Patterns: []capture.Pattern{"com.shop*"}, Policy: detector.DefaultPolicy(),
			Dir: filepath.Join(t.TempDir(), "run"), Duration: time.Duration(days) * day, Sampling: defaultBudget,
		}
		go func() {
			for range days {
				time.Sleep(day - time.Second)
				heap.day()
				time.Sleep(time.Second)
			}
		}()
		run, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range run.Processes {
			want := days * int(day/(30*time.Second))
			if p.Samples < want-20 || p.Details < want*280/2880 || p.Gaps > 0 {
				t.Errorf("%s: %d samples, %d breakdowns, %d gaps", p.Process, p.Samples, p.Details, p.Gaps)
			}
		}
		if len(run.Processes) != processes {
			t.Errorf("%d processes, %+v", len(run.Processes), run)
		}
	})
	perDay := time.Duration(float64(cpuTime()-cpu) * float64(24*time.Hour) / float64(time.Duration(days)*day))
	t.Logf("live heap before the run and at the end of each day: %v kB; CPU time per day for %[3]d processes: %[2]v, "+
		"%.4[4]f %% of a core",
		kilobytes(heap.daily), perDay.Round(time.Millisecond), processes, perDay.Hours()/24*100)
	// Eight bytes per sample would add up to 230 kB a day.
	before, first, last := heap.daily[0], heap.daily[1], heap.daily[len(heap.daily)-1]
	if last > first+100<<10 {
		t.Errorf("the heap grows: %v kB", kilobytes(heap.daily))
	}
	if last > before+processes*64<<10 {
		t.Errorf("the heap grew by more than 64 kB per process: %v kB", kilobytes(heap.daily))
	}
}

func kilobytes(bytes []uint64) []uint64 {
	out := make([]uint64, len(bytes))
	for i, b := range bytes {
		out[i] = b >> 10
	}
	return out
}
