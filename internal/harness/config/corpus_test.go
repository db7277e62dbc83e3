package config

import (
	"bytes"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/harness/gate"
)

var (
	goNames = regexp.MustCompile(
		`main\.|config\.|yaml:|interface|struct|\*[A-Za-z]|map\[|%!|\[\]string|\bint(64)?\b|nil`)
	inQuotes = regexp.MustCompile(`"(\\.|[^"\\])*"`)
)

// checkErrors checks what holds for every error: it has the right type, is not
// empty and is sorted, its positions are inside the text, and it contains no
// terms of the implementation. The user's text is in quotes and may be
// anything.
func checkErrors(t *testing.T, text []byte, err error) {
	t.Helper()
	problems, ok := errors.AsType[Errors](err)
	if !ok || len(problems) == 0 {
		t.Fatalf("got error %T with %d problems, want %T with at least 1", err, len(problems), problems)
	}
	lines := strings.Split(strings.TrimPrefix(string(text), byteOrderMark), "\n")
	for i, p := range problems {
		if unseen(p.Error()) {
			t.Errorf("not printable: %q", p.Error())
		}
		if p.Message == "" || p.File == "" {
			t.Errorf("problem %d lacks a part: %+v", i, p)
		}
		if said := inQuotes.ReplaceAllString(p.Message, `""`); goNames.MatchString(said) {
			t.Errorf("the message contains a Go name: %s", said)
		}
		if i > 0 && (p.Line < problems[i-1].Line || p.Line == problems[i-1].Line && p.Column < problems[i-1].Column) {
			t.Errorf("problem %d is out of order: %v", i, problems)
		}
		if p.Line == 0 {
			checkOutside(t, p)
			continue
		}
		if p.Line < 1 || p.Line > len(lines) {
			t.Fatalf("line %d of %d: %s", p.Line, len(lines), p.Message)
		}
		line := strings.TrimSuffix(lines[p.Line-1], "\r")
		if n := utf8.RuneCountInString(line); p.Column < 1 || p.Column > n+1 {
			t.Errorf("column %d of %d: %s", p.Column, n, p.Message)
		}
		if n := strings.Count(p.Error(), "\n"); n != 2 || p.Excerpt == "" {
			t.Errorf("got %q, want one line and an excerpt of two lines", p.Error())
		}
	}
}

// checkOutside checks a problem that has no line.
func checkOutside(t *testing.T, p Problem) {
	t.Helper()
	if !strings.HasPrefix(p.File, "environment LEAKGATE_") && !strings.HasPrefix(p.File, "--") {
		t.Errorf("the problem names no line, variable or flag: %+v", p)
	}
	if p.Excerpt != "" || p.Column != 0 || strings.Contains(p.Error(), "\n") {
		t.Errorf("problem of a variable or flag has a position in the file: %q", p.Error())
	}
}

// unseen reports whether a string is invalid UTF-8 or contains unprintable
// characters other than newlines.
func unseen(text string) bool {
	return !utf8.ValidString(text) ||
		strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
}

// checkConfig checks what holds for every returned Config.
func checkConfig(t *testing.T, c *Config) {
	t.Helper()
	bad := func(what string) { t.Errorf("%s: %+v", what, c) }
	if len(c.App.Processes) == 0 || c.App.Processes[0] == "" {
		bad("no process")
	}
	if c.App.Package != "" && !packagePattern.MatchString(c.App.Package) {
		bad("package")
	}
	kinds := 0
	for _, set := range []bool{
		c.Workload.Monkey != nil, len(c.Workload.Command) > 0, c.Workload.DeviceCommand != "",
		c.Workload.Instrument != nil, c.Workload.None(),
	} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		bad("workload")
	}
	if m := c.Workload.Monkey; m != nil && (m.Events < 1 || c.App.Package == "" || m.Throttle < 0) {
		bad("monkey")
	}
	checkTests(t, c.Workload)
	if c.Duration < 0 || c.Duration == 0 && c.Workload.None() {
		bad("duration")
	}
	for _, d := range []int64{
		int64(c.Sample.Normal), int64(c.Sample.Suspicious), int64(c.Sample.Leaking), int64(c.Sample.Detail),
	} {
		if d < 1e9 || d > 86400e9 {
			bad("interval")
		}
	}
	if !(c.Sample.MaxSystemServer > 0) || c.Sample.MaxSystemServer > 1000 || !(c.Sample.MaxApp > 0) ||
		c.Sample.MaxApp > 1000 {
		bad("cost")
	}
	checkWritten(t, c)
	if c.Detect.Policy != "article" && c.Detect.Policy != "robust" || c.Detect.Assert != "end" &&
		c.Detect.Assert != "live" {
		bad("words")
	}
	checkDiagnose(t, c)
	checkGate(t, c)
	if c.Devices.MinAPI < 18 || c.Devices.Require < 1 || len(c.Devices.Serials) > 0 &&
		c.Devices.Require > len(c.Devices.Serials) {
		bad("devices")
	}
}

// checkTests checks that the settings for running tests and for finding tests
// are usable.
func checkTests(t *testing.T, w Workload) {
	t.Helper()
	if i := w.Instrument; i != nil {
		if !regexp.MustCompile(`^[A-Za-z][\w.]*(/[\w.$]+)?$`).MatchString(i.Component) || i.DelayAfterTest < 0 ||
			i.DelayAfterTest > 10*time.Minute || i.DelayAfterTest%time.Millisecond != 0 ||
			i.Arguments["delay_msec"] != "" ||
			i.Arguments["class"] != "" || strings.Contains(strings.Join(i.Classes, ""), ",") {
			t.Errorf("instrument: %+v", i)
		}
		for k := range i.Arguments {
			if strings.ContainsAny(k, " '\"$\n") || k == "" {
				t.Errorf("argument %q", k)
			}
		}
	}
	if v := w.Windows; v != nil {
		_, begin := regexp.Compile(v.Begin)
		_, end := regexp.Compile(v.End)
		if begin != nil || end != nil || v.Begin == "" || v.End == "" || len(w.Command) == 0 && w.DeviceCommand == "" {
			t.Errorf("windows: %+v of %+v", v, w)
		}
	}
}

// checkGate checks that every rule of the gate can be applied, that each part
// of a subject is compared only once, and that no string can break a line or an
// HTML comment.
func checkGate(t *testing.T, c *Config) {
	t.Helper()
	last := 0
	for _, r := range c.Gate.Rules {
		at := slices.Index(gate.RulePaths(), r.Path)
		if again, err := gate.ParseRule(r.Path, r.Text); err != nil || again != r || at < last {
			t.Errorf("rule %+v after path %d: %+v, %v", r, last, again, err)
		}
		last = at
	}
	if c.Gate.Confirm < 0 || c.Gate.Confirm > 1 || c.Baseline.Window < 1 || c.Baseline.Window > 100 {
		t.Errorf("%+v, %+v", c.Gate, c.Baseline)
	}
	for i, part := range c.Baseline.Match {
		if !strings.Contains(" variant api abi model ", " "+part+" ") || slices.Contains(c.Baseline.Match[:i], part) {
			t.Errorf("match %q", c.Baseline.Match)
		}
	}
	scheme, rest, _ := strings.Cut(c.Baseline.Store, ":")
	if c.Baseline.Store != "" &&
		(!strings.Contains(" file git artifact command ", " "+scheme+" ") || strings.TrimSpace(rest) == "") {
		t.Errorf("store %q", c.Baseline.Store)
	}
	g := c.GitHub
	if !strings.Contains("/always/changed/failed/changed || failed/never/", "/"+g.CommentWhen+"/") ||
		!regexp.MustCompile(`^[A-Za-z0-9._-]{0,60}$`).MatchString(g.CommentKey) {
		t.Errorf("github: %+v", g)
	}
}

// filledIn returns the command with all placeholders replaced.
func filledIn(command string) string {
	return strings.NewReplacer("{{", "", "{pid}", "1", "{process}", "'a'", "{package}", "'a'", "{user}", "0").
		Replace(command)
}

// checkDiagnose checks that every step can be run and that all files of a
// diagnosis have different names.
func checkDiagnose(t *testing.T, c *Config) {
	t.Helper()
	d := c.Diagnose
	if !strings.Contains(" on_leak at_end at_marks ", " "+d.Dump+" ") ||
		!strings.Contains(" stripped raw none ", " "+d.Keep+" ") ||
		d.Cooldown < 0 || d.Cooldown > 720*time.Hour || d.Steps != nil && len(d.Steps) == 0 {
		t.Errorf("diagnose: %+v", d)
	}
	for kind, steps := range d.Steps {
		files := map[string]int{
			"heap": 1, "showmap": 1, "smaps": 1, "maps": 1, "meminfo": 1, "gfxinfo": 1, "surfaceflinger": 1, "gpu": 1,
			"status":  1,
			"threads": 1, "logcat": 1, "exit_info": 1, "summary": 1, "diagnosis": 1, "analysis": 1}
		if len(steps) == 0 || len(steps) > 20 {
			t.Errorf("%d steps for %s", len(steps), kind)
		}
		if kind != "all" {
			for _, s := range d.Steps["all"] {
				files[s.Name]++
			}
		}
		for _, s := range steps {
			if files[s.Name]++; files[s.Name] > 1 || !regexp.MustCompile("^[a-z0-9_-]{1,40}$").MatchString(s.Name) {
				t.Errorf("%s: invalid or repeated step name %q", kind, s.Name)
			}
			if s.Limit < time.Second || s.Limit > 10*time.Minute || strings.TrimSpace(s.Command) == "" ||
				strings.Contains(filledIn(s.Command), "{") {
				t.Errorf("step for %s: %+v", kind, s)
			}
		}
	}
}

// checkWritten checks that a Config has the same meaning after it is written
// and parsed again.
func checkWritten(t *testing.T, c *Config) {
	t.Helper()
	for _, origins := range []bool{false, true} {
		text := c.YAML(origins)
		if unseen(string(text)) {
			t.Errorf("the output is not printable: %q", text)
		}
		if len(text) > MaxFileBytes {
			continue // escapes are longer than the replaced characters
		}
		again, err := Parse("again.yaml", text, nil)
		if err != nil {
			t.Fatalf("the output is rejected: %v\n%s", err, text)
		}
		if !reflect.DeepEqual(values(again), values(c)) {
			t.Fatalf("the output has a different meaning:\n%s\ngot  %+v\nwant %+v", text, values(again),
				values(c))
		}
		if !origins && !bytes.Equal(again.YAML(false), text) {
			t.Errorf("parsing and writing the output changed it:\n%s\ngot\n%s", text, again.YAML(false))
		}
	}
}
