package gatecalibrate

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/harness/evidence"
	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/jvmtest"
)

//go:embed programs/*.java
var programs embed.FS

// javaProgram is a program for the JVM together with the parts of its source
// that the changed builds replace.
type javaProgram struct {
	// action is a known leak with its number of objects per loop, as in the
	// source.
	action string
	times  int
	// bytes is the size of its objects, as in the source.
	bytes string
	size  int
	// class is the class that leaks in this action.
	class string
}

var javaPrograms = map[string]javaProgram{
	shop:   {"Action(2, () -> new CartScreen()", 2, "CART_BYTES = 37_000", 37_000, "CartScreen"},
	reader: {"Action(2, () -> History", 2, "EDITOR_BYTES = 25_000", 25_000, "EditorScreen"},
	chat:   {"Action(3, Chat::room)", 3, "ROOM_BYTES = 15_000", 15_000, "RoomScreen"},
}

// This is the new leak, as it is added to each program.
const (
	wishAction = "new Player.Action(1, () -> new WishScreen().open()),"
	wishClass  = `static final class Wishes { static final Map<Object, Object> recent = new HashMap<>(); }
    static final class WishScreen extends Activity {
        final byte[] pixels = new byte[60_000];
        void open() { Wishes.recent.put(Wishes.recent.size(), this); finish(); }
    }`
)

// build identifies a compiled variant of a program. Only the build with heavier
// objects depends on the total number of objects.
func (r *trial) build() string {
	if r.change == heavier {
		return fmt.Sprintf("%s %d", builds[r.change], r.objects(1))
	}
	return builds[r.change]
}

// source returns the source of all programs after a change.
func (r *trial) source(t *testing.T) jvmtest.Files {
	t.Helper()
	s := jvmtest.Files{}
	entries, err := programs.ReadDir("programs")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := programs.ReadFile("programs/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		s[e.Name()] = string(text)
	}
	for name, p := range javaPrograms {
		file := name + ".java"
		switch r.change {
		case newLeak:
			s[file] = edit(t, edit(t, s[file], "//@action", wishAction), "//@class", wishClass)
		case oneMore, tripled:
			times := map[change]int{oneMore: p.times + 1, tripled: 3 * p.times}[r.change]
			s[file] = edit(t, s[file], p.action,
				strings.Replace(p.action, strconv.Itoa(p.times), strconv.Itoa(times), 1))
		case heavier:
			each := p.size + moreBytes/r.objects(p.times)
			s[file] = edit(t, s[file], p.bytes, strings.Fields(p.bytes)[0]+" = "+strconv.Itoa(each))
		}
	}
	return s
}

func edit(t *testing.T, text, from, to string) string {
	t.Helper()
	if strings.Count(text, from) != 1 {
		t.Fatalf("%q does not occur exactly once", from)
	}
	return strings.Replace(text, from, to, 1)
}

// program is a build together with the JDK on which it runs.
type program struct {
	jdk *jvmtest.JDK
	jar string
}

// compile compiles every build that the runs need.
func compile(t *testing.T, trials []*trial) map[string]program {
	t.Helper()
	var jdk *jvmtest.JDK
	out := map[string]program{}
	for _, r := range trials {
		if r.program == phone || out[r.build()].jar != "" {
			continue
		}
		if jdk == nil {
			jdk = jvmtest.New(t)
		}
		out[r.build()] = program{jdk, jdk.Compile(t, r.source(t))}
	}
	return out
}

const (
	// monkeyEvents is the number of events that monkey sends between two dumps:
	// the number of steps in four loops of a script.
	monkeyEvents = 24 * monkeyLoops
	// quiet is how long a program is left idle before a settled dump, in ms:
	// three times as long as its longest delayed task.
	quiet = 200
)

// runJVM runs a program on a JVM and reads its dumps as `leakgate gate --dump`
// does.
func runJVM(t *testing.T, p program, r *trial) gate.Observation {
	t.Helper()
	dir := t.TempDir()
	alone := quiet
	if r.inUse {
		alone = 0
	}
	run := p.jdk.Start(t, p.jar, "com.example."+strings.ToLower(r.program)+"."+r.program, strings.ToLower(r.workload()),
		strconv.FormatUint(r.seed, 10), strconv.Itoa(monkeyEvents), strconv.Itoa(alone), dir)
	dumps := r.moments(r.long)
	run.Do(t, dumps)
	run.Stop(t)
	s := evidence.Scenario{Process: "com.shop"}
	for n := range dumps {
		s.Files = append(s.Files, filepath.Join(dir, fmt.Sprintf("%d.hprof", n+1)))
	}
	e, err := evidence.FromDumps(t.Context(), []evidence.Scenario{s},
		evidence.DumpOptions{InUse: r.inUse, App: "com.shop"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil { // hundreds of runs would fill the disk
		t.Fatal(err)
	}
	o := e.Observations[0]
	if r.monkey {
		// The run is recorded like a monkey run: the exposure is the number of
		// events.
		o.Unit = gate.UnitEvent
		for i := range o.Processes[0].Heap.Exposure {
			o.Processes[0].Heap.Exposure[i] *= monkeyEvents
		}
	}
	return o
}
