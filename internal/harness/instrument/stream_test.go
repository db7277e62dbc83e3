package instrument

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// seen is one call that a stream makes to its Events.
type seen struct {
	Begin   bool
	Test    Test
	Outcome Outcome
	Stack   string
}

// collect parses the output in pieces, and the error output as a whole.
func collect(t *testing.T, errs string, pieces ...string) ([]seen, Totals) {
	t.Helper()
	var out []seen
	r := NewStream(Events{
		Begin: func(test Test) { out = append(out, seen{Begin: true, Test: test}) },
		End: func(test Test, outcome Outcome, stack string) {
			out = append(out, seen{Test: test, Outcome: outcome, Stack: stack})
		},
	})
	for _, p := range pieces {
		if n, err := r.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatalf("%d of %d, %v", n, len(p), err)
		}
	}
	if _, err := r.Stderr().Write([]byte(errs)); err != nil {
		t.Fatal(err)
	}
	return out, r.Close()
}

// spell formats each call as one line.
func spell(calls []seen) string {
	var lines []string
	for _, c := range calls {
		if c.Begin {
			lines = append(lines, fmt.Sprintf("%d/%d %s", c.Test.Number, c.Test.Total, c.Test.Name()))
			continue
		}
		stack, _, _ := strings.Cut(c.Stack, "\n")
		lines = append(lines, strings.TrimSpace("  "+string(c.Outcome)+" "+stack))
	}
	return strings.Join(lines, "\n")
}

const twoTests = `INSTRUMENTATION_STATUS: class=a.CartTest
INSTRUMENTATION_STATUS: current=1
INSTRUMENTATION_STATUS: id=AndroidJUnitRunner
INSTRUMENTATION_STATUS: numtests=2
INSTRUMENTATION_STATUS: stream=
a.CartTest:
INSTRUMENTATION_STATUS: test=adds
INSTRUMENTATION_STATUS_CODE: 1
INSTRUMENTATION_STATUS: class=a.CartTest
INSTRUMENTATION_STATUS: current=1
INSTRUMENTATION_STATUS: id=AndroidJUnitRunner
INSTRUMENTATION_STATUS: numtests=2
INSTRUMENTATION_STATUS: stream=.
INSTRUMENTATION_STATUS: test=adds
INSTRUMENTATION_STATUS_CODE: 0
INSTRUMENTATION_STATUS: class=a.CartTest
INSTRUMENTATION_STATUS: current=2
INSTRUMENTATION_STATUS: numtests=2
INSTRUMENTATION_STATUS: test=pays
INSTRUMENTATION_STATUS_CODE: 1
`

func TestStream(t *testing.T) {
	end := func(code, more string) string {
		return "INSTRUMENTATION_STATUS: class=a.CartTest\n" + more +
			"INSTRUMENTATION_STATUS: test=pays\nINSTRUMENTATION_STATUS_CODE: " + code + "\n"
	}
	const first, second = "1/2 a.CartTest#adds\npassed\n2/2 a.CartTest#pays\n", ""
	for name, c := range map[string]struct {
		text, errs, want string
		problem, crash   string
		code             int // 9 if there is no status
		missing          int
	}{
		"passes": {
			text: twoTests + end("0", "") +
				"INSTRUMENTATION_RESULT: stream=\n\nTime: 1,201.5\n\nOK (2 tests)\n\n\nINSTRUMENTATION_CODE: -1\n",
			want: first + "passed", code: -1,
		},
		"fails": {
			text: twoTests + end("-2", "INSTRUMENTATION_STATUS: stack=java.lang.AssertionError: no\n\tat a.B\n") +
				"INSTRUMENTATION_CODE: -1\n", want: first + "failed java.lang.AssertionError: no", code: -1,
		},
		"error":   {text: twoTests + end("-1", ""), want: first + "failed", code: 9},
		"ignored": {text: twoTests + end("-3", ""), want: first + "ignored", code: 9},
		"assumption": {
			text: twoTests + end("-4", "INSTRUMENTATION_STATUS: stack=x\n"), want: first + "assumption_failed x",
			code: 9,
		},
		"in progress": {text: twoTests + end("2", "") + end("0", ""), want: first + "passed", code: 9},
		"metrics": {
			text: twoTests + "INSTRUMENTATION_STATUS: time_ns=7\nINSTRUMENTATION_STATUS_CODE: 0\n" + end("0", ""),
			want: first + "passed", code: 9,
		},
		"process crashed": {
			text: twoTests + "INSTRUMENTATION_RESULT: shortMsg=Process crashed.\nINSTRUMENTATION_CODE: 0\n",
			want: first + "crashed Process crashed.", crash: "Process crashed.", code: 0,
		},
		"java crash": {
			text: twoTests +
				end("-2",
					"INSTRUMENTATION_STATUS: stack=java.lang.Error: x\nINSTRUMENTATION_STATUS: stream=\nProcess "+
						"crashed while executing pays(a.CartTest):\njava.lang.Error: x\n") +
				"INSTRUMENTATION_RESULT: longMsg=java.lang.Error: x\nINSTRUMENTATION_RESULT: " +
				"shortMsg=java.lang.Error\nINSTRUMENTATION_CODE: 0\n", want: first + "crashed java.lang.Error: x",
			crash: "java.lang.Error: x", code: 0,
		},
		"orchestrated crash": {
			text: twoTests +
				end("-2",
					"INSTRUMENTATION_STATUS: stack=Test instrumentation process crashed. Check a.CartTest#pays.txt "+
						"for details\n"),
			want: first + "crashed Test instrumentation process crashed. Check a.CartTest#pays.txt for details",
			code: 9,
		},
		"output ends": {
			text: twoTests, want: first + "unfinished the output of the instrumentation ended", code: 9,
		},
		"last line truncated": {
			text: twoTests + strings.TrimSuffix(end("0", ""), "\n"), want: first + "passed", code: 9,
		},
		"system crash": {
			text: twoTests +
				"onError: commandError=false message=INSTRUMENTATION_ABORTED: System has " +
				"crashed.\nINSTRUMENTATION_ABORTED: System has crashed.\n",
			want:    first + "unfinished INSTRUMENTATION_ABORTED: System has crashed.",
			problem: "INSTRUMENTATION_ABORTED: System has crashed.", code: 9,
		},
		"two tests at the same time": {
			text: twoTests + strings.ReplaceAll(twoTests[:strings.Index(twoTests, "_CODE: 1")+9], "adds", "third"),
			want: first +
				"unfinished the next test began before the end of this test was reported\n1/2 a.CartTest#third\n" +
				"unfinished the output of the instrumentation ended", code: 9,
		},
		"ignored test without a start": {
			text: "INSTRUMENTATION_STATUS: class=a.B\nINSTRUMENTATION_STATUS: test=c\n" +
				"INSTRUMENTATION_STATUS_CODE: -3\n", want: "0/0 a.B#c\nignored", code: 9,
		},
		"class": {
			text: "INSTRUMENTATION_STATUS: class=a.B\nINSTRUMENTATION_STATUS: " +
				"test=null\nINSTRUMENTATION_STATUS_CODE: 1\nINSTRUMENTATION_STATUS: " +
				"class=a.B\nINSTRUMENTATION_STATUS: test=null\nINSTRUMENTATION_STATUS: " +
				"stack=s\nINSTRUMENTATION_STATUS_CODE: -2\n", want: "0/0 a.B\nfailed s", code: 9,
		},
		"fewer": {
			text: strings.ReplaceAll(twoTests, "numtests=2", "numtests=5") + end("0", "") +
				"INSTRUMENTATION_CODE: -1\n", want: strings.ReplaceAll(first, "/2", "/5") + "passed", code: -1,
			missing: 3,
		},
		"no such component": {
			text: "INSTRUMENTATION_STATUS: Error=Unable to find instrumentation info for: " +
				"ComponentInfo{a/b}\nINSTRUMENTATION_STATUS: id=ActivityManagerService\nINSTRUMENTATION_STATUS_CODE: " +
				"-1\nonError: commandError=true message=INSTRUMENTATION_FAILED: a/b\n",
			errs:    "android.util.AndroidException: INSTRUMENTATION_FAILED: a/b\n",
			problem: "Unable to find instrumentation info for: ComponentInfo{a/b}", code: 9},
		"unknown option": {
			errs: "Error: Unknown option: --no-restart\n", problem: "Error: Unknown option: --no-restart", code: 9,
		},
		"help": {
			text: "usage: am [subcommand] [options]\n", errs: "\nError: Bad component name: a\n",
			problem: "usage: am [subcommand] [options]", code: 9,
		},
		"am not found": {
			errs:    "/system/bin/sh: am: inaccessible or not found\n",
			problem: "/system/bin/sh: am: inaccessible or not found", code: 9,
		},
		"fatal": {
			text: "INSTRUMENTATION_RESULT: stream=Fatal exception when running " +
				"tests\njava.lang.IllegalStateException: x\nINSTRUMENTATION_CODE: -1\n",
			problem: "Fatal exception when running tests\njava.lang.IllegalStateException: x", code: -1,
		},
		"crash before the first test": {
			text: "INSTRUMENTATION_STATUS: id=AndroidJUnitRunner\nINSTRUMENTATION_STATUS: stack=java.lang.Error: " +
				"y\n\tat z\nINSTRUMENTATION_STATUS: stream=\nProcess crashed before executing the " +
				"test(s):\nINSTRUMENTATION_STATUS_CODE: -2\nINSTRUMENTATION_RESULT: shortMsg=Process " +
				"crashed.\nINSTRUMENTATION_CODE: 0\n", problem: "java.lang.Error: y", crash: "Process crashed.",
			code: 0,
		},
		"newline in a parameter": {
			text: "INSTRUMENTATION_STATUS: class=a.B\nINSTRUMENTATION_STATUS: test=c[x\n\ny]\nWARNING: linker: " +
				"noise\nINSTRUMENTATION_STATUS_CODE: 1\nINSTRUMENTATION_STATUS: " +
				"test=c[x\n\ny]\nINSTRUMENTATION_STATUS: class=a.B\nINSTRUMENTATION_STATUS_CODE: 0\n",
			want: "0/0 a.B#c[x\n\ny]\npassed", code: 9},
		"nonsense": {
			text: "INSTRUMENTATION_STATUS_CODE: x\nINSTRUMENTATION_STATUS: \nINSTRUMENTATION_STATUS: " +
				"class=\nINSTRUMENTATION_STATUS: test=\nINSTRUMENTATION_STATUS_CODE: 1\nINSTRUMENTATION_STATUS: " +
				"numtests=-4\nINSTRUMENTATION_STATUS: numtests=many\nINSTRUMENTATION_STATUS_CODE: 0\n", code: 9,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{c.text, strings.ReplaceAll(c.text, "\n", "\r\n")} {
				calls, sum := collect(t, c.errs, text)
				code := 9
				if sum.Code != nil {
					code = *sum.Code
				}
				if got := spell(calls); got != c.want+second || code != c.code || sum.Problem != c.problem ||
					sum.Crash != c.crash || sum.Missing() != c.missing {
					t.Errorf("%s\nwant\n%s\ncode %d, problem %q, crash %q, missing %d", got, c.want, code, sum.Problem,
						sum.Crash, sum.Missing())
				}
			}
		})
	}
	_, sum := collect(t, "", "INSTRUMENTATION_RESULT: stream=\n\nTime: 1,201.5\n\nOK\nINSTRUMENTATION_CODE: -1\n")
	if sum.Seconds == nil || *sum.Seconds != 1201.5 {
		t.Errorf("time %v", sum.Seconds)
	}
	if _, sum := collect(t, "",
		"INSTRUMENTATION_RESULT: stream=\n\nTime: 1.201,5\n\nOK\nINSTRUMENTATION_CODE: -1\n"); sum.Seconds != nil ||
		sum.Announced != nil {
		t.Errorf("%+v", sum)
	}
}

// printer writes what `am instrument -w -r` prints for a list of tests. The
// printer was written from Instrument.java, InstrumentationResultPrinter.java
// and JUnit's TextListener, and shares no code with the package.
type printer struct {
	rng    *rand.Rand
	b      strings.Builder
	sorted bool // as in Android 9 and later
	eol    string
	total  int
	class  string
}

func (p *printer) chance(of int) bool { return p.rng.IntN(of) == 0 }

// noise prints what a shell or a linker may print between two lines.
func (p *printer) noise() {
	if p.chance(6) {
		p.b.WriteString([]string{
			"WARNING: linker: libfoo.so: unused DT entry", "", " INSTRUMENTATION_STATUS_CODE: 0",
			"instrumentation_status: class=x", "app says: INSTRUMENTATION_CODE: -1", "\t", "日本語 \x1b[31mred\x1b[0m",
			"INSTRUMENTATION_STATUS", "Time: 9",
		}[p.rng.IntN(9)] + p.eol)
	}
}

func (p *printer) bundle(kind, codeKind string, code int, values map[string]string) {
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if !p.sorted {
		p.rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	}
	for _, k := range keys {
		p.b.WriteString(kind + ": " + k + "=" + strings.ReplaceAll(values[k], "\n", p.eol) + p.eol)
		if k != "stack" { // cannot be distinguished from other output
			p.noise()
		}
	}
	fmt.Fprintf(&p.b, "%s: %d%s", codeKind, code, p.eol)
	p.noise()
}

// status prints one bundle of InstrumentationResultPrinter.
func (p *printer) status(code int, want seen, stream string) {
	values := map[string]string{
		"class": want.Test.Class, "test": want.Test.Method, "current": fmt.Sprint(want.Test.Number),
		"numtests": fmt.Sprint(p.total), "id": "AndroidJUnitRunner", "stream": stream,
	}
	if want.Test.Method == "" {
		values["test"] = "null"
	}
	if want.Stack != "" {
		values["stack"] = want.Stack
	}
	p.bundle("INSTRUMENTATION_STATUS", "INSTRUMENTATION_STATUS_CODE", code, values)
}

func (p *printer) test(want seen) {
	stream := ""
	if p.class != want.Test.Class {
		p.class, stream = want.Test.Class, "\n"+want.Test.Class+":"
	}
	p.status(1, seen{Test: want.Test}, stream)
	codes := map[Outcome]int{Passed: 0, Failed: -2, Ignored: -3, AssumptionFailed: -4}
	if code, ends := codes[want.Outcome]; ends {
		stream = map[int]string{0: ".", -2: "\nError in x:\n" + want.Stack}[code]
		if want.Outcome == Failed && p.chance(3) {
			code = -1
		}
		p.status(code, want, stream)
	}
}

var methods = []string{
	"adds", "pays[0]", "pays[1: a=b]", "name with blanks", "größe_测试", "x[a\nb]", "x[\n]", "x[[a]]", "a=b", "test",
}

// list generates random tests with their outcomes; a crash ends the list.
func (p *printer) list(n int, crashAt int) []seen {
	var out []seen
	for i := range n {
		w := seen{
			Test: Test{
				Class: fmt.Sprintf("com.shop.T%dTest", p.rng.IntN(4)), Method: methods[p.rng.IntN(len(methods))],
				Number: i + 1, Total: n,
			},
		}
		switch p.rng.IntN(8) {
		case 0:
			w.Outcome, w.Stack = Failed, "java.lang.AssertionError: expected\n\tat x.Y(Y.kt:3)\n\n\t... 31 trimmed\n"
		case 1:
			w.Outcome = Ignored
		case 2:
			w.Outcome, w.Stack = AssumptionFailed, "org.junit.AssumptionViolatedException: got: <false>"
		case 3:
			w.Test.Method, w.Outcome, w.Stack = "", Failed, "a class failed"
		default:
			w.Outcome = Passed
		}
		if i == crashAt {
			w.Outcome, w.Stack = Crashed, "Process crashed."
			return append(out, w)
		}
		out = append(out, w)
	}
	return out
}

// want returns the calls that the stream is expected to make.
func want(list []seen) []seen {
	var out []seen
	for _, w := range list {
		out = append(out, seen{Begin: true, Test: w.Test}, w)
	}
	return out
}

// pieces splits a string at random positions.
func (p *printer) pieces(text string) []string {
	var out []string
	for text != "" {
		n := min(len(text), 1+p.rng.IntN(1+p.rng.IntN(200)))
		out, text = append(out, text[:n]), text[n:]
	}
	return out
}

// For any tests, any split of the output and any noise between its lines, each
// test begins and ends as generated.
func TestStreamOracle(t *testing.T) {
	for round := range 400 {
		p := &printer{
			rng: rand.New(rand.NewPCG(9, uint64(round))), eol: []string{"\n", "\r\n"}[round%2], sorted: round%3 > 0,
		}
		n, crashAt := 1+p.rng.IntN(40), -1
		if round%4 == 0 {
			crashAt = p.rng.IntN(n)
		}
		if round == 0 {
			n, crashAt = 100, 50
		}
		p.total = n
		list := p.list(n, crashAt)
		for _, w := range list {
			p.test(w)
		}
		code := -1
		if crashAt >= 0 {
			code = 0
			p.bundle("INSTRUMENTATION_RESULT", "INSTRUMENTATION_CODE", 0,
				map[string]string{"shortMsg": "Process crashed."})
		} else {
			p.bundle("INSTRUMENTATION_RESULT", "INSTRUMENTATION_CODE", -1,
				map[string]string{"stream": "\n\nTime: 12.5\n\nOK (1 test)\n\n"})
		}
		calls, sum := collect(t, "", p.pieces(p.b.String())...)
		// Within a stack, carriage returns come from the shell; noise after a
		// carriage return would become part of the stack.
		for i := range calls {
			calls[i].Stack = strings.TrimSuffix(calls[i].Stack, "\n")
		}
		must := want(list)
		for i := range must {
			must[i].Stack = strings.TrimSuffix(must[i].Stack, "\n")
			if must[i].Outcome == Crashed {
				calls[i].Stack, _, _ = strings.Cut(calls[i].Stack, "\n")
			}
		}
		if !reflect.DeepEqual(calls, must) {
			t.Fatalf("round %d:\n%s\n\nwant\n%s\n\n%s", round, spell(calls), spell(must), p.b.String())
		}
		if sum.Announced == nil || *sum.Announced != n || sum.Seen != len(list) || sum.Code == nil ||
			*sum.Code != code || sum.Missing() != n-len(list) {
			t.Fatalf("round %d: %+v", round, sum)
		}
		if crashAt < 0 && (sum.Seconds == nil || *sum.Seconds != 12.5) || (crashAt >= 0) != (sum.Crash != "") {
			t.Fatalf("round %d: %+v", round, sum)
		}
	}
}

// An event of a test is reported as soon as its line arrives, not when the next
// line does.
func TestStreamReportsAtOnce(t *testing.T) {
	var got []string
	r := NewStream(Events{
		Begin: func(t Test) { got = append(got, "begin "+t.Method) },
		End:   func(t Test, o Outcome, _ string) { got = append(got, string(o)) },
	})
	for line := range strings.Lines(twoTests) {
		before := len(got)
		if _, err := r.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
		if reported := len(got) > before; reported != strings.HasPrefix(line, "INSTRUMENTATION_STATUS_CODE") {
			t.Errorf("after %q: %q", line, got[before:])
		}
	}
	if want := []string{"begin adds", "passed", "begin pays"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Only a bounded part of endless output is kept.
func TestStreamBounds(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	text := "INSTRUMENTATION_STATUS: class=" + long + "\nINSTRUMENTATION_STATUS: test=" + long + "[\n" +
		strings.Repeat(long+"\n", 3) + "INSTRUMENTATION_STATUS: stack=" + strings.Repeat("frame\n", 1<<18) +
		"INSTRUMENTATION_STATUS_CODE: -2\n" + long
	calls, _ := collect(t, long+"\n"+long, text)
	if len(calls) != 2 || len(calls[0].Test.Class) != MaxName || len(calls[0].Test.Method) != MaxName ||
		len(calls[1].Stack) != MaxStack {
		t.Errorf("%d calls", len(calls))
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(twoTests), uint64(1))
	f.Add([]byte("INSTRUMENTATION_STATUS: class=a\nINSTRUMENTATION_STATUS: test=b[\n]\nINSTRUMENTATION_STATUS_CODE: "+
		"-3\r\nINSTRUMENTATION_CODE: 0"), uint64(2))
	f.Add([]byte("onError: commandError=true message=x\nINSTRUMENTATION_ABORTED: y\nError: z"), uint64(3))
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		calls, sum := collect(t, "", string(text))
		p := &printer{rng: rand.New(rand.NewPCG(seed, 0))}
		again, sumAgain := collect(t, "", p.pieces(string(text))...)
		if !reflect.DeepEqual(calls, again) || !reflect.DeepEqual(sum, sumAgain) {
			t.Fatalf("results depend on how the output is split:\n%v\n%v\n%+v\n%+v", calls, again, sum, sumAgain)
		}
		begun, ended := 0, map[Outcome]int{}
		for i, c := range calls {
			if c.Begin != (i%2 == 0) {
				t.Fatalf("call %d is out of order: %v", i, calls)
			}
			if len(c.Test.Class) > 3*MaxName || len(c.Test.Method) > 3*MaxName || len(c.Stack) > 3*MaxStack ||
				!utf8.ValidString(c.Test.Name()+c.Stack) || c.Test.Class == "" {
				t.Fatalf("call %d: %+v", i, c)
			}
			if c.Begin {
				begun++
				continue
			}
			ended[c.Outcome]++
			if c.Test != calls[i-1].Test || c.Outcome == Passed && c.Stack != "" {
				t.Fatalf("call %d ends a test that did not begin: %v", i, calls)
			}
		}
		if len(calls)%2 != 0 || sum.Seen != begun || !reflect.DeepEqual(sum.Ended, ended) {
			t.Fatalf("%+v of %v", sum, calls)
		}
		if codes := strings.Count(string(text), statusCodePrefix); begun > codes {
			t.Fatalf("got %d tests, but only %d status codes", begun, codes)
		}
	})
}
