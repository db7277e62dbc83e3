package config

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/harness/gate"
)

// writer turns random values into a file and determines the meaning of the file
// independently: the only type that it shares with the reader is Config.
type writer struct {
	rng *rand.Rand
	b   strings.Builder
}

func (w *writer) maybe() bool { return w.rng.IntN(2) == 0 }

func pick[T any](w *writer, from ...T) T { return from[w.rng.IntN(len(from))] }

// scalar writes text in one of the YAML notations for a scalar.
func (w *writer) scalar(text string) string {
	safe := text != "" && !strings.ContainsAny(text, " \"'{}[],#&*!|>%@`:$?-~\\\n") && text != "null"
	switch {
	case safe && w.maybe():
		return text
	case !strings.ContainsAny(text, "\n") && w.maybe():
		return "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return strconv.Quote(text)
}

// escaped escapes text so that nothing in it is substituted.
func escaped(text string) string { return strings.ReplaceAll(text, "$", "$$") }

func (w *writer) duration(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0 && w.maybe():
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d > 24*time.Hour && w.maybe():
		return fmt.Sprintf("%dd%s", d/(24*time.Hour), (d % (24 * time.Hour)).String())
	case d%time.Minute == 0 && w.maybe():
		return fmt.Sprintf("%dm", d/time.Minute)
	case w.maybe():
		return fmt.Sprintf("%dms", d/time.Millisecond)
	}
	return d.String()
}

func (w *writer) list(texts []string) string {
	var out []string
	for _, t := range texts {
		out = append(out, w.scalar(escaped(t)))
	}
	return "[" + strings.Join(out, pick(w, ",", ", ", " ,  ")) + "]"
}

// entry is a key with either a string or further entries.
type entry struct {
	name  string
	text  string
	below []entry
}

// mapping writes entries in random order, in block or flow style.
func (w *writer) mapping(entries []entry, indent string, flow bool) {
	w.rng.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	for i, e := range entries {
		if flow {
			w.b.WriteString(map[bool]string{true: "", false: ", "}[i == 0] + e.name + ": ")
		} else {
			if w.rng.IntN(6) == 0 {
				w.b.WriteString(indent + "# a remark: {\n\n")
			}
			w.b.WriteString(indent + e.name + ":")
		}
		switch {
		case e.below == nil && flow:
			w.b.WriteString(e.text)
		case e.below == nil:
			w.b.WriteString(" " + e.text + pick(w, "", " # remark") + "\n")
		case flow || w.maybe():
			w.b.WriteString(map[bool]string{true: "{ ", false: " {"}[flow])
			w.mapping(e.below, "", true)
			w.b.WriteString("}" + map[bool]string{true: "", false: "\n"}[flow])
		default:
			w.b.WriteString("\n")
			w.mapping(e.below, indent+pick(w, "  ", "   ", "\x20"), false)
		}
	}
}

func (w *writer) word() string {
	n := 1 + w.rng.IntN(8)
	b := []byte{"abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"[w.rng.IntN(36)]}
	for range n {
		b = append(b, "abcdefghijklmnopqrstuvwxyz0123456789_"[w.rng.IntN(37)])
	}
	return string(b)
}

// random returns a Config and a file with the same meaning.
func (w *writer) random() (Config, string) {
	c, top := w.content()
	return c, w.text(top)
}

// text returns the content of a file with the given entries.
func (w *writer) text(top []entry) string {
	w.b.Reset()
	w.mapping(top, "", false)
	return w.b.String()
}

// content returns a Config and the entries of a file with the same meaning.
func (w *writer) content() (Config, []entry) {
	c := *defaults()
	seconds := func(most int) time.Duration { return time.Duration(1+w.rng.IntN(most)) * time.Second }
	c.App.Package = w.word() + "." + w.word()
	app := []entry{{name: "package", text: w.scalar(c.App.Package)}}
	c.App.Processes = []string{c.App.Package, c.App.Package + ":*"}
	if w.maybe() {
		c.App.Processes = nil
		for i := range 1 + w.rng.IntN(4) {
			c.App.Processes = append(c.App.Processes,
				fmt.Sprintf("%s%d%s", w.word(), i, pick(w, "", ":push", ".x*", "$x", "@2.0-service", "/bin/y")))
		}
		app = append(app, entry{name: "processes", text: w.list(c.App.Processes)})
	}
	if w.maybe() {
		c.App.Mapping = pick(w, "mapping.txt", "../a b/mapping.txt", `C:\out\mapping.txt`, "$HOME/${X}", "7")
		app = append(app, entry{name: "mapping", text: w.scalar(escaped(c.App.Mapping))})
	}
	if w.maybe() {
		c.App.Variant = pick(w, "debug", "freeDebug", "7", "a-b_c.d")
		app = append(app, entry{name: "variant", text: w.scalar(c.App.Variant)})
	}
	top := []entry{{name: "version", text: pick(w, "1", `"1"`)}, {name: "app", below: app}}

	var devices []entry
	if w.maybe() {
		for i := range 1 + w.rng.IntN(3) {
			c.Devices.Serials = append(c.Devices.Serials,
				fmt.Sprintf("%s%d", pick(w, "emulator-555", "10.0.0.1:555", "0123", "1e", "R (2)._adb-tls"), i))
		}
		c.Devices.Require = 1 + w.rng.IntN(len(c.Devices.Serials))
		c.Devices.MinAPI = 18 + w.rng.IntN(83)
		devices = []entry{
			{name: "serials", text: w.list(c.Devices.Serials)},
			{name: "require", text: strconv.Itoa(c.Devices.Require)},
			{name: "min_api", text: w.scalar(strconv.Itoa(c.Devices.MinAPI))},
		}
		top = append(top, entry{name: "devices", below: devices})
	}

	var stress entry
	switch w.rng.IntN(5) {
	case 0:
		m := Monkey{Events: 1 + w.rng.IntN(1<<31-1), Throttle: time.Duration(w.rng.IntN(3_600_001)) * time.Millisecond}
		e := []entry{
			{name: "events", text: strconv.Itoa(m.Events)}, {name: "throttle", text: w.scalar(w.duration(m.Throttle))},
		}
		if w.maybe() {
			n := w.rng.Int64()
			m.Seed = &n
			e = append(e, entry{name: "seed", text: strconv.FormatInt(n, 10)})
		}
		c.Workload.Monkey = &m
		stress = entry{below: []entry{{name: "monkey", below: e}}}
	case 1:
		c.Workload.Command = []string{"./" + w.word()}
		for range w.rng.IntN(5) {
			c.Workload.Command = append(c.Workload.Command,
				pick(w, "", "a b", "$HOME", "${X}", "$$", "it's", `"q"`, "日本", "x\ny", "#", "null", "-1", "a: b", "*"))
		}
		stress = entry{below: []entry{{name: "command", text: w.list(c.Workload.Command)}}}
	case 2:
		c.Workload.DeviceCommand = pick(w, "input tap 1 1", "for i in $(seq 3); do echo $i; done", "echo '${X}' $$",
			"a\n b\n")
		stress = entry{below: []entry{{name: "device_command", text: w.scalar(escaped(c.Workload.DeviceCommand))}}}
	case 3:
		stress = entry{below: []entry{w.instrument(&c.Workload)}}
	default:
		stress = entry{text: "none"}
	}
	stress.name = "workload"
	if len(c.Workload.Command) > 0 || c.Workload.DeviceCommand != "" {
		stress.below = append(stress.below, w.windows(&c.Workload)...)
	}
	top = append(top, stress)
	if c.Workload.None() || w.maybe() {
		c.Duration = seconds(1_000_000)
		top = append(top, entry{name: "duration", text: w.scalar(w.duration(c.Duration))})
	}

	var sample []entry
	for _, s := range []struct {
		name string
		into *time.Duration
	}{{"normal", &c.Sample.Normal}, {"suspicious", &c.Sample.Suspicious}, {"leaking", &c.Sample.Leaking},
		{"detail", &c.Sample.Detail}} {
		if w.maybe() {
			*s.into = seconds(86400)
			sample = append(sample, entry{name: s.name, text: w.scalar(w.duration(*s.into))})
		}
	}
	for _, s := range []struct {
		name string
		into *float64
	}{{"max_system_server", &c.Sample.MaxSystemServer}, {"max_app", &c.Sample.MaxApp}} {
		if w.maybe() {
			*s.into = float64(1+w.rng.IntN(10_000)) / 10
			sample = append(sample,
				entry{name: s.name, text: w.scalar(strconv.FormatFloat(*s.into, 'f', -1, 64) + pick(w, "", "%"))})
		}
	}
	if sample != nil {
		top = append(top, entry{name: "sample", below: sample})
	}

	if w.maybe() {
		c.Detect.Policy, c.Detect.Assert = pick(w, "robust", "article"), pick(w, "end", "live")
		top = append(top,
			entry{
				name: "detect",
				below: []entry{
					{name: "assert", text: c.Detect.Assert}, {name: "policy", text: w.scalar(c.Detect.Policy)},
				},
			})
	}
	if w.maybe() {
		c.Strict, c.AllowUnjudged = w.maybe(), w.maybe()
		top = append(top, entry{name: "strict", text: strconv.FormatBool(c.Strict)},
			entry{name: "allow_unjudged", text: w.scalar(strconv.FormatBool(c.AllowUnjudged))})
	}
	if w.maybe() {
		top = append(top, entry{name: "diagnose", below: w.diagnose(&c.Diagnose)})
	}
	if w.maybe() {
		text := pick(w, "auto", "true", "false")
		if text != "auto" {
			c.Report.JUnit = new(text == "true")
		}
		top = append(top, entry{name: "report", below: []entry{{name: "junit", text: w.scalar(text)}}})
	}
	if w.maybe() {
		top = append(top, entry{name: "gate", below: w.gate(&c)})
	}
	if w.maybe() {
		top = append(top, entry{name: "baseline", below: w.baseline(&c)})
	}
	if w.maybe() {
		top = append(top, w.github(&c.GitHub))
	}
	return c, top
}

// instrument returns the entry of a run of instrumented tests, in its short or
// its long form.
func (w *writer) instrument(into *Workload) entry {
	i := &Instrument{
		Component: pick(w, "com.shop.test", "com.shop.test/androidx.test.runner.AndroidJUnitRunner", "a.b/.Runner"),
	}
	into.Instrument = i
	if w.maybe() {
		return entry{name: "instrument", text: w.scalar(escaped(i.Component))}
	}
	below := []entry{{name: "component", text: w.scalar(escaped(i.Component))}}
	if w.maybe() {
		for n := range 1 + w.rng.IntN(3) {
			i.Classes = append(i.Classes, fmt.Sprintf("a.B%d%s", n, pick(w, "", "#c", "#adds an item", "#c[${X}]")))
		}
		below = append(below, entry{name: "class", text: w.list(i.Classes)})
	}
	if w.maybe() {
		i.DelayAfterTest = time.Duration(1+w.rng.IntN(600_000)) * time.Millisecond
		below = append(below, entry{name: "delay_after_test", text: w.scalar(w.duration(i.DelayAfterTest))})
	}
	if w.maybe() {
		var pairs []entry
		for n := range w.rng.IntN(3) {
			name, value := fmt.Sprintf("%s%d", pick(w, "size", "androidx.benchmark.x", "a-b"), n),
				pick(w, "small", "", "true", "$x ${y}", "a, b", "it's")
			if i.Arguments == nil {
				i.Arguments = map[string]string{}
			}
			i.Arguments[name] = value
			pairs = append(pairs, entry{name: name, text: w.scalar(escaped(value))})
		}
		if pairs == nil {
			below = append(below, entry{name: "arguments", text: "{}"})
		} else {
			below = append(below, entry{name: "arguments", below: pairs})
		}
	}
	return entry{name: "instrument", below: below}
}

// windows returns the entry of the rule that finds tests in the output of a
// command, or nil.
func (w *writer) windows(into *Workload) []entry {
	if w.maybe() {
		return nil
	}
	v := &Windows{
		Begin: pick(w, `begin: (?P<name>.+)`, `^\[RUN\] (.*)$`, `x`, `a|b{2}`),
		End:   pick(w, `end (?P<outcome>ok|not ok) (?P<name>\S+)`, `\$x`, `.`),
	}
	into.Windows = v
	return []entry{
		{
			name: "windows",
			below: []entry{
				{name: "end", text: w.scalar(escaped(v.End))}, {name: "begin", text: w.scalar(escaped(v.Begin))},
			},
		},
	}
}

// someRules lists rules of each path with their normalized form, and the
// default of the path.
var someRules = []struct {
	path    string
	written []string
	or      []string
}{
	{"process.gate", []string{"!= leak", "== pass", "!=pass", " !=  settled "}, []string{"!= leak"}},
	{"process.deaths", []string{"memory == 0", "any <= 3", "native_crash<1"}, nil},
	{"process.slope_mb_h", []string{"rate < 2.5", "lower95 <= 20 MB/h", "upper95 > .5"}, nil},
	{"leak.per_loop",
		[]string{"new == 0", "grown == 0", "moved < 2", "objects <= 1e3", "bytes < 512KB", "bytes < 0.5 MB"},
		[]string{"new == 0", "grown == 0"}},
	{"leak.heavier", []string{"== 0", "<= 2", "!= 1"}, []string{"== 0"}},
	{"leak.wider", []string{"== 0", ">=0"}, []string{"== 0"}},
	{"native.per_loop", []string{"grown == 0", "grown < 3"}, nil},
	{"leak.creep", []string{"== 0", "< 10"}, []string{"== 0"}},
}

// gate returns the entry of the gate section.
func (w *writer) gate(c *Config) []entry {
	c.gated = true
	c.Gate.Informational, c.Gate.Confirm = w.maybe(), w.rng.IntN(2)
	out := []entry{
		{name: "informational", text: strconv.FormatBool(c.Gate.Informational)},
		{name: "confirm", text: w.scalar(strconv.Itoa(c.Gate.Confirm))},
	}
	if w.maybe() {
		c.Gate.Accepted = pick(w, "accepted.yaml", "../a b/leaks.yaml", "7", "$${X}")
		out = append(out, entry{name: "accepted", text: w.scalar(escaped(c.Gate.Accepted))})
	}
	c.Gate.Rules = nil
	for _, of := range someRules {
		texts := of.or
		if w.maybe() {
			texts = append([]string{}, of.written...)
			w.rng.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
			texts = texts[:w.rng.IntN(len(texts)+1)]
			e := entry{name: of.path, text: w.list(texts)}
			if len(texts) == 1 && w.maybe() {
				e.text = w.scalar(texts[0])
			}
			out = append(out, e)
		}
		for _, text := range texts {
			r, err := gate.ParseRule(of.path, text)
			if err != nil {
				panic(err) // all rules above are valid
			}
			c.Gate.Rules = append(c.Gate.Rules, r)
		}
	}
	return out
}

// baseline returns the entry of the baseline section.
func (w *writer) baseline(c *Config) []entry {
	c.gated = true
	c.Baseline.Window = 1 + w.rng.IntN(100)
	out := []entry{{name: "window", text: strconv.Itoa(c.Baseline.Window)}}
	if w.maybe() {
		c.Baseline.Store = pick(w, "file:leak-baseline.json", "file:C:\\leaks\\b.json", "git:leaks#b.json",
			"git:origin/leaks#a/b.json", "artifact:leakgate-baseline", "command:sh -c 'x $Y ${Z}'")
		out = append(out, entry{name: "store", text: w.scalar(escaped(c.Baseline.Store))})
	}
	if w.maybe() {
		c.Baseline.Match = nil
		for _, part := range []string{"model", "abi", "variant", "api"} {
			if w.maybe() {
				c.Baseline.Match = append(c.Baseline.Match, part)
			}
		}
		out = append(out, entry{name: "match", text: w.list(c.Baseline.Match)})
	}
	return out
}

// github returns the entry of the github section.
func (w *writer) github(g *GitHub) entry {
	g.Check, g.SARIF, g.Summary = w.maybe(), w.maybe(), w.maybe()
	g.CommentWhen = pick(w, "always", "changed", "failed", "changed || failed", "never")
	comment := []entry{{name: "when", text: w.scalar(g.CommentWhen)}}
	if w.maybe() {
		g.CommentKey = pick(w, "shop", "7", "shop.debug_1-a", "true")
		comment = append(comment, entry{name: "key", text: w.scalar(g.CommentKey)})
	}
	return entry{name: "github", below: []entry{
		{name: "comment", below: comment}, {name: "check", text: strconv.FormatBool(g.Check)},
		{name: "sarif", text: w.scalar(strconv.FormatBool(g.SARIF))},
		{name: "summary", text: strconv.FormatBool(g.Summary)},
	}}
}

// diagnose returns the entry of the diagnose section.
func (w *writer) diagnose(d *Diagnose) []entry {
	d.Dump, d.Keep = pick(w, "on_leak", "at_end", "at_marks"), pick(w, "stripped", "raw", "none")
	d.Logcat = pick(w, DefaultLogcat, "all", "none")
	d.Texts = pick(w, DefaultTexts, TextsShown)
	d.Cooldown = time.Duration(w.rng.IntN(2_592_001)) * time.Second
	out := []entry{
		{name: "dump", text: w.scalar(d.Dump)}, {name: "cooldown", text: w.scalar(w.duration(d.Cooldown))},
		{name: "keep", text: w.scalar(d.Keep)},
		{name: "logcat", text: w.scalar(d.Logcat)}, {name: "texts", text: w.scalar(d.Texts)}}
	if w.maybe() {
		return out
	}
	var kinds []entry
	for _, kind := range []string{"java", "native", "gpu", "thread", "unknown", "all"} {
		if w.rng.IntN(3) > 0 {
			continue
		}
		var texts []string
		for i := range w.rng.IntN(4) {
			s := Step{
				Name: fmt.Sprintf("%s_%d%s", kind, i, pick(w, "", "-x", "9")),
				Command: pick(w, "dumpsys battery", "cat /proc/{pid}/limits", "awk '{{print $1}' {{{pid}}",
					"run-as {package} ls; echo {user} {process}", "echo $$ ${{X}", "a\nb", "true", "}"),
				Limit: time.Duration(1+w.rng.IntN(600)) * time.Second,
			}
			below := []entry{
				{name: "name", text: w.scalar(s.Name)}, {name: "command", text: w.scalar(escaped(s.Command))},
			}
			if w.maybe() {
				below = append(below, entry{name: "limit", text: w.scalar(w.duration(s.Limit))})
			} else {
				s.Limit = DefaultLimit
			}
			if d.Steps == nil {
				d.Steps = map[string][]Step{}
			}
			d.Steps[kind] = append(d.Steps[kind], s)
			part := writer{rng: w.rng}
			part.mapping(below, "", true)
			texts = append(texts, "{ "+part.b.String()+" }")
		}
		kinds = append(kinds, entry{name: kind, text: "[" + strings.Join(texts, ", ") + "]"})
	}
	if kinds == nil {
		return append(out, entry{name: "steps", text: "{}"})
	}
	return append(out, entry{name: "steps", below: kinds})
}

func TestRoundTrip(t *testing.T) {
	w := &writer{rng: rand.New(rand.NewPCG(3, 4))}
	kinds := map[string]int{}
	for i := range 300 {
		want, text := w.random()
		c, err := Parse("run.yaml", []byte(text), environment)
		if err != nil {
			t.Fatalf("file %d:\n%s\n%v", i, text, err)
		}
		checkConfig(t, c)
		if got := values(c); !reflect.DeepEqual(got, want) {
			t.Fatalf("file %d:\n%s\ngot  %+v\nwant %+v", i, text, got, want)
		}
		if err := strictly(text); err != nil {
			t.Fatalf("file %d:\n%s\nthe library rejects it: %v", i, text, err)
		}
		kinds[fmt.Sprint(want.Workload.Monkey != nil, want.Workload.None(), want.Workload.Instrument != nil,
			want.Workload.Windows != nil)]++
	}
	if len(kinds) != 5 {
		t.Errorf("too little variation among the files: %v", kinds)
	}
}
