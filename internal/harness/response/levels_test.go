package response_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/capture/detail"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/reporters/record"
)

// levels lists the columns of the table: the levels of access to a phone and
// its app.
var levels = []struct {
	title      string
	build      string
	root       bool
	debuggable bool
}{
	{"userdebug build as root, by `adb root` or su", "userdebug", true, false},
	{"user build, debuggable app", "user", false, true},
	{"user build, released app", "user", false, false},
}

// TestLevels checks the table of docs/response.md: each cell is compared with
// the result on a simulated phone of that kind.
func TestLevels(t *testing.T) {
	table := levelTable(t)
	for i, level := range levels {
		if table[0][i+1] != level.title {
			t.Fatalf("column %d is %q, want %q", i+1, table[0][i+1], level.title)
		}
		synctest.Test(t, func(t *testing.T) {
			seen := map[string]string{}
			old, young := onPhone(t, i, 31), onPhone(t, i, 36)
			for _, kind := range []string{"java", "native", "gpu", "thread"} {
				seen[kind] = young.shows(t, kind)
				if other := old.shows(t, kind); other != seen[kind] {
					t.Errorf("%s: got %s on API 31 and %s on API 36, want no difference", kind, other, seen[kind])
				}
			}
			for what, known := range map[string]func(*phone) bool{
				"file descriptors": func(p *phone) bool {
					return p.room.Files.Known && p.room.FileLimit.Known
				},
				"threads against their limit": func(p *phone) bool {
					return p.room.Threads.Known && p.room.ThreadLimit.Known
				},
				"Java heap against its limit": func(p *phone) bool {
					limit, _ := p.room.HeapLimit(p.javaHeap)
					return p.javaHeap.Known && limit.Known
				},
				"address space of a 32-bit process": func(p *phone) bool {
					return p.room.Virtual.Known && p.room.VirtualLimit.Known
				},
			} {
				seen[what] = word(known(old), known(young))
			}
			for _, row := range table[1:] {
				if got := seen[row[0]]; got != row[i+1] {
					t.Errorf("%s, %s: the page says %q, the phone shows %q", level.title, row[0], row[i+1], got)
				}
				delete(seen, row[0])
			}
			if len(seen) > 0 {
				t.Errorf("the page has no row for %v", seen)
			}
		})
	}
}

// word returns the text of a cell, derived from the results on an old and a new
// phone.
func word(old, young bool) string {
	switch {
	case old && young:
		return "exact"
	case old || young:
		return "partly"
	}
	return "not observable"
}

// levelTable parses the table on the page, including its heading.
func levelTable(t *testing.T) [][]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/response.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "<!-- levels:")
	text, _, ended := strings.Cut(text, "<!-- end of levels -->")
	if !ok || !ended {
		t.Fatal("docs/response.md has no table of levels")
	}
	var table [][]string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		var row []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		table = append(table, row)
	}
	if len(table) != 9 || len(table[0]) != len(levels)+1 {
		t.Fatalf("the table has %d rows, want 9 of %d cells", len(table), len(levels)+1)
	}
	return table
}

// phone is a simulated phone with one leaking process for each kind of leak.
type phone struct {
	dev      capture.Device
	facts    capture.Facts
	room     capture.Headroom
	javaHeap known.Int
}

// leaks maps the name of each kind of leak to the kind in the simulator.
var leaks = map[string]androidsim.Kind{
	"java": androidsim.Java, "native": androidsim.Native, "gpu": androidsim.GPU, "thread": androidsim.Thread,
}

func onPhone(t *testing.T, level, api int) *phone {
	t.Helper()
	l := levels[level]
	app := androidsim.App{Package: "com.shop", Debuggable: l.debuggable}
	for kind, leak := range leaks {
		app.Processes = append(app.Processes, androidsim.ProcessSpec{
			Name: "com.shop:" + kind, Bits32: kind == "java",
			Models: []androidsim.Model{androidsim.Typical(), androidsim.Leak(leak, 900, 0)},
		})
	}
	sim := androidsim.New(androidsim.Options{
		Serial: "phone", API: api, BuildType: l.build, Root: l.root, Apps: []androidsim.App{app},
	})
	server := adbd.NewServer(sim)
	t.Cleanup(func() { server.Close() })
	client, err := adb.NewClient(adb.Options{Dial: server.Dial})
	if err != nil {
		t.Fatal(err)
	}
	p := &phone{}
	if p.dev, err = client.Select(t.Context(), "phone"); err != nil {
		t.Fatal(err)
	}
	if p.facts, err = capture.ReadFacts(t.Context(), p.dev); err != nil {
		t.Fatal(err)
	}
	target := p.target(t, "java")
	rooms, err := capture.NewHeadrooms(p.dev, p.facts).Read(t.Context(), []capture.Target{target})
	if err != nil || len(rooms) != 1 || rooms[0].Err != nil {
		t.Fatalf("%+v, %v", rooms, err)
	}
	p.room = rooms[0]
	meminfo, err := detail.Read(t.Context(), p.dev, p.facts, target.Process, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.javaHeap = detail.JavaHeapUse(meminfo.Block)
	return p
}

func (p *phone) target(t *testing.T, kind string) capture.Target {
	t.Helper()
	found, err := capture.FindProcesses(t.Context(), p.dev, []capture.Pattern{capture.Pattern("com.shop:" + kind)})
	if err != nil || len(found.Processes) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	probe, err := capture.NewLevels(p.dev, p.facts).Probe(t.Context(), found.Processes[0])
	if err != nil {
		t.Fatal(err)
	}
	return capture.Target{Process: found.Processes[0], Level: probe.Level}
}

// shows returns how much of a leak of the given kind the response finds,
// according to the findings and not to the artifacts.
func (p *phone) shows(t *testing.T, kind string) string {
	t.Helper()
	r, target := response.New(t.TempDir(), response.Options{Keep: response.Nothing}), p.target(t, kind)
	order := response.Order{
		Process: target.Process, Level: target.Level, Recipe: response.Snapshot, Trigger: record.TriggerSuspicious,
	}
	first := answered(t, r, p, order)
	time.Sleep(40 * time.Second) // 10 MB
	order.Recipe, order.Trigger, order.Before = kind, record.TriggerLeak, first.Now
	if err := order.Kind.UnmarshalText([]byte(kind + "_leak")); err != nil {
		t.Fatal(err)
	}
	c := answered(t, r, p, order)
	has := func(whats ...string) bool {
		return slices.ContainsFunc(c.Record.Findings, func(f record.Finding) bool {
			grew := f.BytesDelta == nil || *f.BytesDelta > 0
			return slices.Contains(whats, f.Type) && grew && (f.Type != "threads" || strings.Contains(f.Name, "*"))
		})
	}
	switch {
	case has("leak", "suspect", "mapping", "threads", "graphics"):
		return "exact"
	case has("meminfo"):
		return "partly"
	}
	for _, s := range c.Record.Steps {
		if s.File == "" && len(s.Reasons) == 0 {
			t.Errorf("%s: %s is missing without a reason", kind, s.Step)
		}
	}
	return "not observable"
}

func answered(t *testing.T, r *response.Responder, p *phone, o response.Order) *response.Case {
	t.Helper()
	c, err := r.Collect(t.Context(), p.dev, p.facts, o)
	if err == nil {
		err = r.Analyze(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}
