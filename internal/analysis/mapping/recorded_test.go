package mapping

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// printed formats a result as in testdata/retrace.txt.
func printed(frames []Frame) string {
	var answers []string
	for i, f := range frames {
		text := fmt.Sprintf("%s,%s,%s,%d", f.Class, f.Method, f.Source, f.Line)
		if i > 0 && f.Alternative == frames[i-1].Alternative {
			answers[len(answers)-1] += " " + text
			continue
		}
		answers = append(answers, text)
	}
	return strings.Join(answers, " | ")
}

func mustRead(t testing.TB, text string) *Mapping {
	t.Helper()
	m, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRecorded compares the results with recorded results of R8's retrace.
func TestRecorded(t *testing.T) {
	data, err := os.ReadFile("testdata/retrace.txt")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, part := range strings.Split(string(data), "== ")[1:] {
		head, questions, _ := strings.Cut(part, "\n--\n")
		seed, text, _ := strings.Cut(head, "\n")
		m := mustRead(t, text)
		for _, line := range strings.Split(strings.TrimSpace(questions), "\n") {
			question, want, _ := strings.Cut(line, " =>")
			if got := ask(t, m, question); got != strings.TrimPrefix(want, " ") {
				t.Errorf("%s, %s:\n got %s\nwant %s", seed, question, got, want)
			}
			count++
		}
	}
	if count < 1000 {
		t.Errorf("%d questions", count)
	}
}

// ask returns the results for requests of the forms "field class name" and
// "frame class method line".
func ask(t testing.TB, m *Mapping, question string) string {
	t.Helper()
	words := strings.Fields(question)
	if words[0] == "field" {
		return m.Field(m.Class(words[1]), words[2])
	}
	var line int32
	if _, err := fmt.Sscan(words[3], &line); err != nil {
		t.Errorf("question %q: %v", question, err)
	}
	return printed(m.Frame(words[1], words[2], line))
}

// TestDocumented checks the examples of R8's doc/retrace.md and of the tests of
// its retrace (src/test/java/com/android/tools/r8/retrace/stacktraces), with
// their documented results; for reversed ranges, the result is that of retrace
// 8.5.35.
func TestDocumented(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want map[string]string
	}{
		"compiler-generated class": {
			"# {'id':'com.android.tools.r8.mapping','version':'1.0'}\nsome.package.SomeSynthesizedClass -> x.y.z:\n# " +
				"{'id':'com.android.tools.r8.synthesized'}\n  void someMethod() -> a\n  # " +
				"{'id':'com.android.tools.r8.synthesized'}\n",
			map[string]string{
				"frame x.y.z a 0": "",
				"frame x.y.z b 0": "some.package.SomeSynthesizedClass,b,SomeSynthesizedClass.java,0",
			},
		},
		"compiler-generated method with an inlined one": {
			"# {'id':'com.android.tools.r8.mapping','version':'1.0'}\nsome.package.Class -> foo.a:\n    4:4:void " +
				"example.Foo.lambda$main$0():225 -> a\n    4:4:void run(example.Foo):2 -> a\n    # " +
				"{'id':'com.android.tools.r8.synthesized'}\n" +
				"    5:5:void example.Foo.lambda$main$1():228 -> a\n    5:5:void run(example.Foo):4 -> a\n    # " +
				"{'id':'com.android.tools.r8.synthesized'} <-- redundant\n",
			map[string]string{
				"frame foo.a a 4": "example.Foo,lambda$main$0,Foo.java,225",
				"frame foo.a a 5": "example.Foo,lambda$main$1,Foo.java,228",
			},
		},
		"rewriteFrame only for thrown exceptions": {
			"# { id: 'com.android.tools.r8.mapping', version: '2.0' }\nsome.Class -> a:\n  4:4:void " +
				"other.Class.inlinee():23:23 -> a\n  4:4:void caller(other.Class):7 -> a\n  # { id: " +
				"'com.android.tools.r8.rewriteFrame', conditions: ['throws(Ljava/lang/NullPointerException;)'], " +
				"actions: ['removeInnerFrames(1)'] }\n",
			map[string]string{"frame a a 4": "other.Class,inlinee,Class.java,23 some.Class,caller,Class.java,7"},
		},
		"outline": {
			"# { id: 'com.android.tools.r8.mapping', version: '2.0' }\noutline.Class -> a:\n  1:2:int outline() -> " +
				"a\n# { 'id':'com.android.tools.r8.outline' }\nsome.Class -> b:\n  1:1:void foo.bar.Baz.qux():42:42 " +
				"-> s\n  4:4:int outlineCaller(int):98:98 -> s\n" +
				"  5:5:int outlineCaller(int):100:100 -> s\n  27:27:int outlineCaller(int):0:0 -> s\n# { " +
				"'id':'com.android.tools.r8.outlineCallsite', 'positions': { '1': 4, '2': 5 } }\n",
			map[string]string{
				"frame a a 1": "", "frame b s 27": "some.Class,outlineCaller,Class.java,0",
				"frame b s 5": "some.Class,outlineCaller,Class.java,100",
			},
		},
		"one range for all lines": {
			"some.Class -> a:\n0:65535:void foo():33:33 -> a\n",
			map[string]string{
				"frame a a 5": "some.Class,foo,Class.java,33", "frame a a 0": "some.Class,foo,Class.java,33",
			},
		},
		"inlining": {
			"com.android.tools.r8.naming.retrace.Main -> com.android.tools.r8.naming.retrace.Main:\n    1:1:void " +
				"main(java.lang.String[]):101:101 -> main\n    2:4:void method1(java.lang.String):94:96 -> main\n    " +
				"2:4:void main(java.lang.String[]):102 -> main\n" +
				"    6:7:void method3(long):80:81 -> main\n    6:7:void method2(int):88 -> main\n    6:7:void " +
				"method1(java.lang.String):96 -> main\n    6:7:void main(java.lang.String[]):102 -> main\n",
			map[string]string{
				"frame com.android.tools.r8.naming.retrace.Main main 1": "com.android.tools.r8.naming.retrace.Main,main,Main.java,101",
				"frame com.android.tools.r8.naming.retrace.Main main 3": "com.android.tools.r8.naming.retrace.Main,method1,Main.java,95 " +
					"com.android.tools.r8.naming.retrace.Main,main,Main.java,102",
				"frame com.android.tools.r8.naming.retrace.Main main 7": "com.android.tools.r8.naming.retrace.Main,method3,Main.java,81 " +
					"com.android.tools.r8.naming.retrace.Main,method2,Main.java,88 " +
					"com.android.tools.r8.naming.retrace.Main,method1,Main.java,96 " +
					"com.android.tools.r8.naming.retrace.Main,main,Main.java,102",
			},
		},
		"two methods with one name": {
			"com.android.tools.r8.R8 -> a.a:\n    void foo(int) -> a\n    void bar(int, int) -> a\n",
			map[string]string{
				"frame a.a a 7": "com.android.tools.r8.R8,foo,R8.java,7 | com.android.tools.r8.R8,bar,R8.java,7",
			},
		},
		"lines outside all ranges": {
			"some.other.Class -> a:\n    void method1():42:42 -> a\nsome.Class -> b:\n    1:3:void method2():11:13 " +
				"-> a\n    4:4:void method2():10:10 -> a\n",
			map[string]string{
				"frame a a 2": "some.other.Class,method1,Class.java,42", "frame b a 27": "some.Class,a,Class.java,27",
				"frame b a 0": "some.Class,method2,Class.java,0", "frame b a 2": "some.Class,method2,Class.java,12",
			},
		},
		"reversed ranges": {
			"a.Main -> a:\n    5:3:void main() -> b\n    2:5:void other():5:2 -> c\n",
			map[string]string{
				"frame a b 4": "a.Main,main,Main.java,4", "frame a b 0": "a.Main,main,Main.java,0",
				"frame a c 3": "a.Main,other,Main.java,3",
			},
		},
		"range for one line": {
			"a.Main -> a:\n    void method1(java.lang.String):42:44 -> a\n",
			map[string]string{
				"frame a a 1": "a.Main,method1,Main.java,42 | " +
					"a.Main,method1,Main.java,43 | a.Main,method1,Main.java,44",
			},
		},
		"source files": {
			"some.Class -> a:\n# {\"id\":\"sourceFile\",\"fileName\":\"Class.kt\"}\n    1:3:int " +
				"strawberry(int):99:101 -> s\n    4:5:int some.MainKt.mango(float):121:122 -> s\n",
			map[string]string{
				"frame a s 1": "some.Class,strawberry,Class.kt,99", "frame a s 5": "some.MainKt,mango,Main.kt,122",
			},
		},
	} {
		m := mustRead(t, c.text)
		for question, want := range c.want {
			if got := ask(t, m, question); got != want {
				t.Errorf("%s, %s:\n got %s\nwant %s", name, question, got, want)
			}
		}
		if len(m.Warnings) > 0 {
			t.Errorf("%s: %v", name, m.Warnings)
		}
	}
}
