package leakcanary

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf16"
)

// The tests generate reports with their own code, which prints a model in the
// same way as HeapAnalysis.kt, LeakTrace.kt and LeakTraceWrapper.kt.

type modelStep struct {
	class, kind, field string
	suspect            bool
}

type modelLeak struct {
	library  bool
	pattern  string
	traces   int
	retained int64 // -1 if not computed
	steps    []modelStep
	class    string
}

type modelReport struct {
	made  int
	test  string
	leaks []modelLeak
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }

func (l *modelLeak) signature() string {
	input := l.pattern
	if !l.library {
		for _, s := range l.steps {
			if s.suspect {
				input += s.class + s.name()
			}
		}
	}
	sum := sha1.Sum([]byte(input))
	return hex.EncodeToString(sum[:])
}

func (s *modelStep) name() string {
	if strings.HasPrefix(s.field, "[") {
		return "[x]"
	}
	return s.field
}

func (l *modelLeak) trace() string {
	var out strings.Builder
	out.WriteString("┬───\n│ GC Root: Global variable in native code\n│")
	for _, s := range l.steps {
		status := "NO (a class is never leaking)"
		if s.suspect {
			status = "UNKNOWN"
		}
		prefix := "    ↓ " + s.class[strings.LastIndex(s.class, ".")+1:]
		if s.kind == "class" {
			prefix = strings.Replace(prefix, "↓ ", "↓ static ", 1)
		}
		prefix = strings.TrimSuffix(prefix, "[]")
		if !strings.HasPrefix(s.field, "[") {
			prefix += "."
		}
		fmt.Fprintf(&out, "\n├─ %s %s\n│    Leaking: %s\n│%s%s", s.class, s.kind, status, prefix, s.field)
		if s.suspect {
			fmt.Fprintf(&out, "\n│%s%s", strings.Repeat(" ", units(prefix)), strings.Repeat("~", units(s.field)))
		}
	}
	fmt.Fprintf(&out,
		"\n╰→ %s instance\n\u200b     Leaking: YES (ObjectWatcher was watching this because it was destroyed and "+
			"that is much longer than one line of a logcat)\n\u200b     key = 63dee33b", l.class)
	return out.String()
}

func (l *modelLeak) text() string {
	out := ""
	if l.library {
		out = "Leak pattern: " + l.pattern + "\nDescription: Known for years.\nFixed in the next release.\n"
	}
	if l.retained >= 0 {
		out += fmt.Sprintf("%d bytes retained by leaking objects\n", l.retained)
	}
	if l.traces > 1 {
		out += fmt.Sprintf("Displaying only 1 leak trace out of %d with the same signature\n", l.traces)
	}
	out += "Signature: " + l.signature() + "\n" + l.trace()
	if l.library {
		out += "\n"
	}
	return out
}

func (r *modelReport) text() string {
	const line = "====================================\n"
	of := func(library bool) string {
		var list []string
		for i := range r.leaks {
			if r.leaks[i].library == library {
				list = append(list, r.leaks[i].text())
			}
		}
		what, about := "APPLICATION",
			"References underlined with \"~~~\" are likely causes.\nLearn more at https://squ.re/leaks.\n"
		if library {
			what, about = "LIBRARY",
				"A Library Leak is a leak caused by a known bug in 3rd party code that you do not have control "+
					"over.\nSee "+
					"https://square.github.io/leakcanary/fundamentals-how-leakcanary-works/#4-categorizing-leaks\n"
		}
		out := fmt.Sprintf("%d %s LEAKS\n\n%s", len(list), what, about)
		if len(list) > 0 {
			out += "\n" + strings.Join(list, "\n\n") + "\n"
		}
		return out
	}
	return line + "HEAP ANALYSIS RESULT\n" + line + of(false) + line + of(true) + line +
		"0 UNREACHABLE OBJECTS\n\nAn unreachable object is still in memory.\n" + line +
		fmt.Sprintf("METADATA\n\nPlease include this in bug reports and Stack Overflow "+
			"questions.\n\nBuild.VERSION.SDK_INT: 34\nAnalysis duration: 5 ms\nHeap dump file path: "+
			"/data/%d.hprof\nHeap dump timestamp: %d\nHeap dump duration: Unknown\n", r.made, r.made) +
		strings.TrimSuffix(line, "\n")
}

// wrap wraps lines like LeakTraceWrapper: at the last blank or full stop that
// fits, removing the blank. It keeps the indentation of the line, and an
// underline is placed below the part to which it belongs.
func wrap(report string, width int) string {
	var out []string
	list := strings.Split(report, "\n")
	for i := 0; i < len(list); i++ {
		line := []rune(list[i])
		if len(line) <= width {
			out = append(out, list[i])
			continue
		}
		under := 0
		if i+1 < len(list) && strings.Contains(list[i+1], "~") && strings.Trim(list[i+1], "~ │") == "" {
			under = strings.Count(list[i+1], "~")
			i++
		}
		offset := indentation(string(line))
		start := len(line) - under // the start of the underlined text
		shown := 0                 // number of characters printed so far
		for first := true; len(line) > 0; first = false {
			room := width
			lead := ""
			if !first {
				lead, room = offset, width-len([]rune(offset))
			}
			n := len(line)
			if n > room {
				n = room
				for j := room - 1; j > 0; j-- {
					if line[j] == ' ' || line[j] == '.' {
						n = j + 1
						break
					}
				}
			}
			out = append(out, lead+strings.TrimRight(string(line[:n]), " "))
			if under > 0 && shown+n > start {
				column := max(start-shown, 0)
				if first {
					column -= len([]rune(offset))
				}
				out = append(out, offset+strings.Repeat(" ", max(column, 0))+strings.Repeat("~", under))
				under = 0
			}
			shown += n
			line = line[n:]
		}
	}
	return strings.Join(out, "\n")
}

func indentation(line string) string {
	for _, d := range []struct{ is, as string }{{"│", "│"}, {"├─", "│ "}, {"╰→", "  "}, {"\u200b", "\u200b"}} {
		if rest, ok := strings.CutPrefix(line, d.is); ok {
			return d.as + strings.Repeat(" ", len(rest)-len(strings.TrimLeft(rest, " ")))
		}
	}
	return ""
}

// logcatOf prints reports as a device logs them, interleaved with other lines.
func logcatOf(r *rand.Rand, reports []modelReport, width int) string {
	var out strings.Builder
	at := 0
	entry := func(pid int, tag, message string) {
		at++
		fmt.Fprintf(&out, "11-02 10:00:%02d.%03d %5d %5d D %s: %s\n", at/1000%60, at%1000, pid, pid+3, tag, message)
	}
	queues := make([][]string, len(reports))
	for i := range reports {
		if reports[i].test != "" {
			class, method, _ := strings.Cut(reports[i].test, "#")
			entry(1000+i, "TestRunner", "started: "+method+"("+class+")")
		}
		queues[i] = append([]string{"\u200b"}, strings.Split(wrap(reports[i].text(), width), "\n")...)
	}
	for {
		i := r.IntN(len(queues) + 1)
		if i == len(queues) {
			entry(7, "Other",
				[]string{"", "====================================", "│    ↓ x", "Signature: 0"}[r.IntN(4)])
			i = r.IntN(len(queues))
		}
		left := 0
		for n := min(r.IntN(20), len(queues[i])); n > 0; n-- {
			entry(1000+i, "LeakCanary", queues[i][0])
			queues[i] = queues[i][1:]
		}
		for _, q := range queues {
			left += len(q)
		}
		if left == 0 {
			return out.String()
		}
	}
}

// junitOf prints reports as the failures of tests.
func junitOf(r *rand.Rand, reports []modelReport) string {
	var out strings.Builder
	out.WriteString("<?xml version='1.0' encoding='UTF-8' ?>\n<testsuites>\n<testsuite name='device'>\n<properties/>\n")
	for i := range reports {
		class, method, _ := strings.Cut(reports[i].test, "#")
		content := "leakcanary.NoLeakAssertionFailedError: Application memory leaks were detected:\n" +
			reports[i].text() +
			"\n\tat leakcanary.AndroidDetectLeaksAssert.assertNoLeaks(AndroidDetectLeaksAssert.kt:34)\n"
		var escaped bytes.Buffer
		_ = xml.EscapeText(&escaped, []byte(content)) // writing to a buffer cannot fail
		fmt.Fprintf(&out, "<testcase name='%s' classname='%s' time='1.5'>", method, class)
		switch r.IntN(3) {
		case 0:
			fmt.Fprintf(&out, "<failure>%s</failure>", escaped.String())
		case 1:
			fmt.Fprintf(&out,
				"<failure message=\"%s\" type=\"leakcanary.NoLeakAssertionFailedError\"><![CDATA[%s]]></failure>",
				escaped.String(), content)
		default:
			fmt.Fprintf(&out, "<error message=\"%s\">at x</error><system-out>\x1b[31m&#27; %s</system-out>",
				escaped.String(), escaped.String())
		}
		out.WriteString("</testcase><testcase name='other' classname='a.B'/>\n")
		if r.IntN(3) == 0 {
			out.WriteString("</testsuite><testsuite name='another'>\n")
		}
	}
	out.WriteString("</testsuite></testsuites>\n")
	return out.String()
}

func randomReports(r *rand.Rand) []modelReport {
	word := func(of string) string { return fmt.Sprintf("%s%d", of, r.IntN(30)) }
	class := func() string {
		name := "com.shop"
		for n := r.IntN(8); n > 0; n-- {
			name += "." + []string{"cart", "internal", "checkout", "ü"}[r.IntN(4)]
		}
		return name + "." + word("Class")
	}
	reports := make([]modelReport, 1+r.IntN(3))
	for i := range reports {
		reports[i] = modelReport{made: 5000 + i, test: fmt.Sprintf("com.shop.CartTest#adds%d", i)}
		library := r.IntN(3)
		for n := r.IntN(4) + library; n > 0; n-- {
			l := modelLeak{traces: 1 + r.IntN(3), retained: r.Int64N(1 << 30), class: class(), library: n <= library}
			if l.library {
				l.pattern = fmt.Sprintf("instance field %s#%s%d", class(), "field", n)
			}
			if r.IntN(3) == 0 {
				l.retained = -1
			}
			for k := 1 + r.IntN(5); k > 0; k-- {
				s := modelStep{class: class(), kind: "instance", field: word("field"), suspect: k < 3}
				switch r.IntN(4) {
				case 0:
					s.kind, s.class, s.field = "array", s.class+"[]", fmt.Sprintf("[%d]", r.IntN(1000))
				case 1:
					s.kind = "class"
				case 2:
					s.field = "a" + strings.Repeat("Long", 1+r.IntN(12))
				}
				l.steps = append(l.steps, s)
			}
			reports[i].leaks = append(reports[i].leaks, l)
		}
	}
	return reports
}

// wanted returns the expected contents of reports, computed independently of
// the package: the signature and further properties of each leak, sorted.
func wanted(reports []modelReport) map[string]SignedLeak {
	out := map[string]SignedLeak{}
	for i := range reports {
		here := map[string]bool{}
		for j := range reports[i].leaks {
			l := &reports[i].leaks[j]
			id := fmt.Sprint(l.signature(), l.library)
			s, ok := out[id]
			if !ok {
				bytes := int64(0)
				s = SignedLeak{
					Signature: l.signature(), Library: l.library, Pattern: l.pattern, Class: l.class,
					RetainedBytes: &bytes, Root: "Global variable in native code",
				}
				for _, step := range l.steps {
					if step.suspect && s.HeldBy == "" {
						s.HeldBy = step.class + "." + step.field
						if step.kind == "array" {
							s.HeldBy = strings.TrimSuffix(step.class, "[]") + "[x]"
						}
					}
				}
			}
			s.Traces += l.traces
			switch {
			case s.RetainedBytes == nil || l.retained < 0:
				s.RetainedBytes = nil
			default:
				s.RetainedBytes = new(*s.RetainedBytes + l.retained)
			}
			if !here[id] {
				s.Analyses++
				s.Tests = append(s.Tests[:len(s.Tests):len(s.Tests)], reports[i].test)
			}
			here[id] = true
			out[id] = s
		}
	}
	return out
}
