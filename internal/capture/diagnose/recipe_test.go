package diagnose

//unit:program a real shell reads the command lines

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/internal/shelltest"
	"github.com/leakgate/leakgate/internal/text"
)

// TestRecipes checks the invariants of the recipes, and that each recipe
// collects the artifacts that its kind of leak requires.
func TestRecipes(t *testing.T) {
	must := map[string][]string{
		"java":     {"heap", "meminfo", "logcat", "exit_info"},
		"native":   {"showmap", "smaps", "maps", "meminfo", "status", "logcat", "exit_info"},
		"gpu":      {"meminfo", "gfxinfo", "surfaceflinger", "gpu", "logcat", "exit_info"},
		"thread":   {"status", "threads", "meminfo", "logcat", "exit_info"},
		"unknown":  {"heap", "showmap", "smaps", "maps", "meminfo", "status", "logcat", "exit_info"},
		"snapshot": {"smaps", "showmap", "maps", "status", "threads", "meminfo", "gfxinfo", "gpu", "surfaceflinger"},
		"dump":     {"heap"},
	}
	if len(must) != len(recipes) {
		t.Errorf("%d recipes", len(recipes))
	}
	for name, want := range must {
		r, ok := RecipeOf(name)
		if !ok || r.Name != name {
			t.Fatalf("%s: %+v", name, r)
		}
		seen := map[string]bool{}
		var have []string
		for _, s := range r.Steps {
			have = append(have, s.Name)
			if s.Proves == "" || len(s.Methods) == 0 || seen[s.File] {
				t.Errorf("%s: %+v", name, s)
			}
			seen[s.File] = true
			for i, w := range s.Methods {
				file := s.File
				if w.File != "" {
					file = w.File
				}
				if w.Limit <= 0 || w.Max <= 0 || w.Heap != (w.Command == "") || i == 0 && w.Note != "" ||
					!regexp.MustCompile(`^[a-z_]+\.(txt|hprof)$`).MatchString(file) {
					t.Errorf("%s: %s: %+v", name, s.Name, w)
				}
				if name == "snapshot" && (w.Max > 5<<20 || w.Heap || w.File != "") {
					t.Errorf("%s is too expensive for a snapshot: %+v", s.Name, w)
				}
				// Each artifact has its own check: an error message of the
				// device is not an artifact.
				if !w.Heap &&
					w.judge(capture.Process{PID: 7}, []byte("/system/bin/sh: x: Permission denied\n"), 1, nil) == nil {
					t.Errorf("%s accepts an error message", s.Name)
				}
			}
		}
		slices.Sort(have)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Errorf("%s has %v, want %v", name, have, want)
		}
	}
	if r, ok := RecipeOf("nothing"); ok || len(r.Steps) > 0 {
		t.Error("found a recipe for an unknown name")
	}
}

func TestWithKeepsTheRecipe(t *testing.T) {
	r, _ := RecipeOf("dump")
	a, b := Step{Name: "a"}, Step{Name: "b"}
	got := r.With(a, b).With(Step{Name: "a", File: "other"})
	if len(r.Steps) != 1 || len(got.Steps) != 3 || got.Steps[1].File != "other" || got.Steps[2].Name != "b" {
		t.Errorf("%+v, %+v", r, got)
	}
}

// recordedTexts returns real outputs, with the check that accepts each of them.
func recordedTexts(t testing.TB) map[string]func([]byte) error {
	of := func(pid int, judge func(capture.Process, []byte) error) func([]byte) error {
		return func(text []byte) error { return judge(capture.Process{PID: pid}, text) }
	}
	return map[string]func([]byte) error{
		"api36-memorylab-smaps.txt.gz": wholeSmaps, "api29-x86_64-systemserver-smaps.txt.gz": wholeSmaps,
		"api36-memorylab-showmap.txt": wholeShowmap,
		"api18-sample-meminfo.txt":    of(29607, wholeMeminfo), "api19-sample-meminfo.txt": of(30125, wholeMeminfo),
		"api30-unity-meminfo.txt":                  of(14978, wholeMeminfo),
		"api36-memorylab-meminfo-d.txt":            of(20602, wholeMeminfo),
		"api36-memorylab-gfxinfo.txt":              of(20602, wholeGfxinfo),
		"api33-anavmode-gfxinfo-two-processes.txt": of(17477, wholeGfxinfo), "api31-angle-gpumem.txt": wholeGPU,
	}
}

// TestJudgesAcceptRealOutputs: each check accepts its own output, and rejects
// those of the other checks and all error messages.
func TestJudgesAcceptRealOutputs(t *testing.T) {
	judges := recordedTexts(t)
	kind := regexp.MustCompile(`smaps|showmap|meminfo|gfxinfo|gpumem`)
	for file, judge := range judges {
		text := recorded.Read(t, "device", file)
		if err := judge(text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for other, wrong := range judges {
			if kind.FindString(file) != kind.FindString(other) && wrong(text) == nil {
				t.Errorf("%s is accepted as %s", file, other)
			}
		}
		for _, said := range []string{
			"error-dumpheap-not-debuggable.txt", "error-dumpsys-timeout.txt", "error-kill-not-permitted.txt",
			"error-meminfo-no-process.txt", "error-smaps_rollup-permission.txt",
		} {
			if judge(recorded.Read(t, "device", said)) == nil {
				t.Errorf("%s is accepted as %s", said, file)
			}
		}
	}
	meminfo := recorded.Read(t, "device", "api30-unity-meminfo.txt")
	if wholeMeminfo(capture.Process{PID: 1}, meminfo) == nil {
		t.Error("meminfo of another process is accepted")
	}
	if wholeMeminfo(capture.Process{PID: 14978},
		append(meminfo[:len(meminfo)/3:len(meminfo)/3],
			recorded.Read(t, "device", "error-dumpsys-timeout.txt")...)) == nil {
		t.Error("interrupted meminfo is accepted")
	}
}

func TestJudgesOfLines(t *testing.T) {
	p := capture.Process{Name: "com.a", PID: 7}
	about := func(f func(capture.Process, []byte) error) func([]byte) error {
		return func(text []byte) error { return f(p, text) }
	}
	const mapLine = "7f00-7f10 r-xp 00001000 fd:00 12 /system/lib64/libc.so\n"
	for name, c := range map[string]struct {
		judge func([]byte) error
		text  string
		good  bool
	}{
		"maps": {
			wholeMaps, mapLine + "12c00000-13440000 rw-p 00000000 00:00 0 [anon:dalvik main]\n", true,
		},
		"maps without a newline":    {wholeMaps, strings.TrimSuffix(mapLine, "\n"), false},
		"maps with an error":        {wholeMaps, mapLine + "cat: read error: No such process\n", false},
		"no maps":                   {wholeMaps, "", false},
		"status":                    {about(wholeStatus), "Name:\ta\nPid:\t7\nThreads:\t3\n", true},
		"status of another process": {about(wholeStatus), "Name:\ta\nPid:\t8\nThreads:\t3\n", false},
		"status without threads":    {about(wholeStatus), "Name:\ta\nPid:\t7\n", false},
		"threads": {
			about(wholeThreads), "/proc/7/task/9/comm:pool-1\n/proc/7/task/7/comm:a\n", true,
		},
		"threads of another process": {about(wholeThreads), "/proc/8/task/8/comm:a\n", false},
		"ids":                        {about(wholeThreadIDs), "7\n9\n", true},
		"no ids":                     {about(wholeThreadIDs), "ls: /proc/7/task: No such file or directory\n", false},
		"log":                        {wholeLogcat, "--------- beginning of main\n", true},
		"log without separators":     {wholeLogcat, "11-22 16:00:00.000  1  1 I a: b\n", true},
		"no log":                     {wholeLogcat, "logcat: invalid option\n", false},
		"exits": {
			wholeExitInfo, "ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)\n  package: com.a\n", true,
		}, "no exits": {wholeExitInfo, "Bad activity command, or no activities match: exit-info\n", false},
		"interrupted exits": {
			wholeExitInfo,
			"ACTIVITY MANAGER PROCESS EXIT INFO\n\n*** SERVICE 'activity' DUMP TIMEOUT (10000ms) EXPIRED ***\n", false,
		},
		"layers without a list": {
			wholeSurfaceFlinger, "Build configuration: [sf HAS_CONTEXT_PRIORITY]\nSurfaceFlinger global state:\n", true,
		},
		"interrupted layers": {
			wholeSurfaceFlinger,
			"SurfaceFlinger global state:\n*** SERVICE 'SurfaceFlinger' DUMP TIMEOUT (10000ms) EXPIRED ***\n", false,
		},
		"no service": {wholeGPU, "Can't find service: gpu\n", false},
	} {
		if err := c.judge([]byte(c.text)); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := wholeGPU([]byte("Can't find service: gpu\n")); !errors.As(err, new(notAllowed)) {
		t.Errorf("missing service: %v", err)
	}
	if err := wholeMeminfo(p, []byte("Can't find service: meminfo\n")); err == nil || errors.As(err, new(notAllowed)) {
		t.Errorf("system_server is down: %v", err)
	}
}

// TestExitStatusOfAWholeText: the output of a killed command, or of a failed
// read, is truncated even if it can be parsed. If a thread ends while all
// threads are listed, the output is still complete.
func TestExitStatusOfAWholeText(t *testing.T) {
	const log, killed = "--------- beginning of main\n", 128 + 9
	p := capture.Process{Name: "com.a", PID: 7}
	texts := map[string]string{
		"cat /proc/{pid}/smaps":               oneMapping,
		"cat /proc/{pid}/maps":                "7f00-7f10 r-xp 00001000 fd:00 12 /system/lib64/libc.so\n",
		"cat /proc/{pid}/status":              "Name:\ta\nPid:\t7\nThreads:\t3\n",
		"grep -H '^' /proc/{pid}/task/*/comm": "/proc/7/task/7/comm:a\n", "ls /proc/{pid}/task": "7\n9\n",
		"logcat -d -v threadtime -t 2000 -b main -b system -b crash": log, "logcat -d -v threadtime -t 2000": log,
		"dumpsys {-t}activity exit-info {package}": "ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)\n",
	}
	most := map[string]int{"grep": 2, "ls": 2, "dumpsys": 128}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		for _, w := range steps[name]().Methods {
			program, _, _ := strings.Cut(w.Command, " ")
			if w.exits != most[program] {
				t.Errorf("%s may exit with status %d, want %d", w.Command, w.exits, most[program])
			}
			text, ok := texts[w.Command]
			if !ok {
				continue
			}
			seen[w.Command] = true
			for _, exit := range []int{0, 1, 2, 128, 255, killed} {
				err := w.judge(p, []byte(text), exit, nil)
				if fine := exit <= most[program]; (err == nil) != fine || err != nil &&
					!strings.HasSuffix(err.Error(), fmt.Sprintf("exit status %d", exit)) {
					t.Errorf("%s with exit status %d: %v", w.Command, exit, err)
				}
			}
		}
	}
	if len(seen) != len(texts) {
		t.Errorf("the recipes contain only the commands %v, want %d commands", seen, len(texts))
	}
}

// goodLines are command lines, each with the words that a shell must print for
// a process.
var goodLines = map[string]string{
	`printf '%s\000' {pid} {user} {process} {package}`:              "7|10|N|P",
	`printf '%s\000' x{process}y a{{pid}b {{{{`:                     "xNy|a{pid}b|{{",
	`x={process}; printf '%s\000' "$x" "{pid}" '{user}'`:            "N|7|10",
	`for x in {process}; do printf '%s\000' "$x"; done`:             "N",
	`printf '%s\000' $(echo {pid} | tr 7 8) {process}`:              "8|N",
	`printf '%s\000' it\'s {process} "a\"b" 'c"d' "e'f"`:            `it's|N|a"b|c"d|e'f`,
	`set -- {process} && printf '%s\000' "$@" a#b`:                  "N|a#b",
	`printf '%s\000' "{{}" ${{y:-{pid}} {package}`:                  "{}|7|P",
	`case {process} in {process}) printf '%s\000' yes {pid};; esac`: "yes|7",
}

// badLines are lines that are rejected, each with a part of the reason.
var badLines = map[string]string{
	"": "empty", "  \t": "empty", strings.Repeat("x", maxCommand+1): "more than", "echo {name}": "a brace",
	"awk '{print $1}'": "a brace", "echo {": "a brace", "echo {}": "a brace", "echo {-t}": "a brace",
	"echo '{process}'": "outside of quotes", `echo "{process}"`: "outside of quotes",
	"echo `echo {package}`": "outside of quotes", `echo "$(echo "{process}")"`: "inside double quotes",
	`echo "${{x:-"{process}"}"`: "inside double quotes",
	"echo a\nb":                 "control character", "echo \x00": "control character",
	"echo \x1b[2J": "control character", "echo ${pid}": "variable", `echo $'\'{process}`: "$'...'",
	`echo $'\'' {process}`: "outside of quotes", `x={process}; echo "${{x}"`: "inside double quotes",
	"echo # {process}": "comment", "# x": "comment", "echo;# {process}": "comment",
	"cat <<X {process}": "here-document", `echo \{process}`: `\{`, "echo 'x": "missing closing '",
	`echo "x`: `missing closing "`, "echo `x": "missing closing", `echo \`: "backslash",
	"echo `date` {process}": "backquotes", "echo $(( {process} ))": "arithmetic", "(( {process} ))": "arithmetic",
}

func TestCustomStep(t *testing.T) {
	for line := range goodLines {
		s, err := CustomStep("a_1", line, time.Second)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if s.File != "custom_a_1.txt" || len(s.Methods) != 1 || s.Methods[0].Limit != time.Second || s.Proves == "" {
			t.Errorf("%+v", s)
		}
	}
	for line, words := range badLines {
		if _, err := CustomStep("a", line, time.Second); err == nil || !strings.Contains(err.Error(), words) ||
			strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v, want %q", line, err, words)
		}
	}
	for _, name := range []string{"", "A", "a b", "../a", "a.b", "a/b", "heap", "smaps", strings.Repeat("a", 41), "ä"} {
		if _, err := CustomStep(name, "true", time.Second); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
	for _, limit := range []time.Duration{0, -1, 2 * time.Hour} {
		if _, err := CustomStep("a", "true", limit); err == nil {
			t.Errorf("the limit %v is accepted", limit)
		}
	}
}

// FuzzFill substitutes any name into all good lines, in a real shell; one shell
// runs them all.
func FuzzFill(f *testing.F) {
	for _, name := range shelltest.HostileNames {
		f.Add(name)
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		recorded.Missing(f, "needs a POSIX shell")
	}
	f.Fuzz(func(t *testing.T, name string) {
		if strings.ContainsRune(name, 0) {
			return // NUL ends a command line, so no name contains it
		}
		p := capture.Process{Name: name, User: 10, PID: 7}
		var script, want strings.Builder
		for _, line := range slices.Sorted(maps.Keys(goodLines)) {
			script.WriteString(fill(line, p, capture.Facts{}) + "\n")
			want.WriteString(strings.NewReplacer("N", p.Name, "P", p.Package(), "|", "\x00").Replace(goodLines[line]) +
				"\x00")
		}
		cmd := exec.Command(sh)
		cmd.Stdin = strings.NewReader(script.String())
		out, err := cmd.Output()
		if err != nil || string(out) != want.String() {
			t.Errorf("%q: prints %q, want %q, %v", name, out, want.String(), err)
		}
	})
}

// FuzzCustomStep: in an accepted line only placeholders are replaced;
// everything else is unchanged.
func FuzzCustomStep(f *testing.F) {
	for line := range goodLines {
		f.Add(line)
	}
	for line := range badLines {
		f.Add(line)
	}
	p := capture.Process{Name: "com.x'y", User: 10, PID: 7}
	f.Fuzz(func(t *testing.T, line string) {
		s, err := CustomStep("a", line, time.Second)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\x1b\n") {
				t.Errorf("terminal escapes in %q", err)
			}
			return
		}
		got := fill(s.Methods[0].Command, p, capture.Facts{API: 34})
		// This separate implementation replaces one placeholder after another.
		var want strings.Builder
		for rest := line; rest != ""; {
			switch {
			case strings.HasPrefix(rest, "{{"):
				want.WriteString("{")
				rest = rest[2:]
			case rest[0] == '{':
				word, after, _ := strings.Cut(rest[1:], "}")
				want.WriteString(
					map[string]string{
						"pid": "7", "user": "10", "process": text.ShellQuote(p.Name),
						"package": text.ShellQuote(p.Name),
					}[word])
				rest = after
			default:
				want.WriteByte(rest[0])
				rest = rest[1:]
			}
		}
		if got != want.String() || strings.ContainsAny(got, "\n\x00") {
			t.Errorf("%q is %q, want %q", line, got, want.String())
		}
	})
}
