package checkout

//unit:program javac is the second implementation; git makes the checkouts

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// TestKotlin looks up every field that Kotlin's compiler 1.9.24 generated for a
// file, except those that have no name in the sources. Each line must contain
// the name, and every field found must be one that the compiler generated.
func TestKotlin(t *testing.T) {
	source, err := os.ReadFile("testdata/shop-views2.kt")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	x := indexOf(map[string]string{"app/shop-views2.kt": string(source)})
	want := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		class, field, _ := strings.Cut(strings.TrimSpace(line), " ")
		want[class+" "+strings.TrimSuffix(field, "$delegate")] = true
		d, ok := x.declaration(class, field)
		if !ok || !d.OfField {
			t.Errorf("%s.%s: %+v", class, field, d)
			continue
		}
		text := strings.Split(string(source), "\n")[d.Line-1]
		switch name := strings.TrimSuffix(field, "$delegate"); {
		case field == "Companion":
			name = "companion object"
			fallthrough
		case field != "INSTANCE":
			if !strings.Contains(text, name) {
				t.Errorf("%s.%s: line %d is %q", class, field, d.Line, text)
			}
		case !strings.Contains(text, "object "+class[strings.LastIndexAny(class, ".$")+1:]):
			t.Errorf("%s.%s: line %d is %q", class, field, d.Line, text)
		}
	}
	// These are properties without a field, and one whose field is only in the
	// companion of the interface.
	for _, more := range []string{
		"com.shop.Source abstractOne", "com.shop.Source shared", "com.shop.T6 x", "com.shop.Named value",
	} {
		want[more] = true
	}
	for class, c := range x.classes {
		companion := strings.HasSuffix(class, "$Companion") || strings.HasSuffix(class, "$Factory")
		for _, f := range c.fields {
			if !companion && !want[class+" "+f.name] {
				t.Errorf("%s.%s does not exist, but was found on line %d", class, f.name, f.line)
			}
		}
	}
}

// javaSample contains code that is difficult for a parser of Java. Each line
// that declares fields ends with a comment that lists the names of these
// fields.
const javaSample = `package com.shop; // class Fake { int fake; }
/* class Fake2 { int fake2; } */
import java.util.*;
import java.util.function.*;
@SuppressWarnings({"unchecked", "class Fake3 { int fake3; }"})
public abstract class Sample<T extends Comparable<T> & java.io.Serializable, U> implements Comparator<Map<T, List<U>>> {
  static final String QUOTED = "int fake4; \" {", //: QUOTED
    BLOCK = """
      int fake5; \""" { class Fake6 {
      """, //: -
    LAST = "}"; //: LAST
  private final Map<String, Map<Integer, List<? extends T>>> nested = new HashMap<String, Map<Integer, List<? extends T>>>(); //: nested
  int[] array = {1, 2, 3}, other[] = {{1}, {2}}, plain; //: array other plain
  char brace = '{', quote = '\'', backslash = '\\'; //: brace quote backslash
  boolean less = 1 < 2, more = 3 > 2; //: less more
  Function<T, Integer> lambda = (a) -> { int local = 1; return local; }; //: lambda
  BiFunction<T, U, Integer> two = (a, b) -> 1 < 2 ? 3 : 4; //: two
  Runnable anonymous = new Runnable() { int captured = 1; public void run() { int local2; } }; //: anonymous
  Class<?> type = Sample.class; //: type
  List<String> list = new ArrayList<String>(3), empty = Collections.<String>emptyList(); //: list empty
  @Deprecated(since = "int fake7;") volatile transient int annotated; //: annotated
  static { int local3 = 1; class Local { int inLocal; } }
  { int local4; }
  Sample(int parameter) throws IllegalStateException { int local5 = parameter; }
  <A, B extends List<A>> Map<A, B> generic(A a, final B... b) { for (int i = 0; i < 3; i++) { } return null; }
  abstract int bodyless(int parameter2);
  int old()[] { return null; }
  public int compare(Map<T, List<U>> a, Map<T, List<U>> b) { return 0; }
  record Point(@Deprecated int x, List<Map<T2, int[]>> y, String... rest) { //: x y rest
    static int origin; //: origin
    Point { int local6; }
    interface T2 { }
  }
  enum Color implements Runnable { RED, @Deprecated GREEN(1) { int inGreen; public void run() { } }, //: RED GREEN
    BLUE(new int[]{1, 2}) { }; //: BLUE
    int code; //: code
    Color(int... codes) { }
    public void run() { }
  }
  enum Small { A, B } //: A B
  enum None { ; static int none; } //: none
  @interface Marker { int CONSTANT = 1; String[] value() default {"x"}; int number() default 3; } //: CONSTANT
  interface Constants<X> { int FIRST = 1, SECOND = 2; default void m() { int local7; } class Inside { Object held; } } //: FIRST SECOND held
  sealed interface Shape permits Circle, Square { }
  static final class Circle implements Shape { double radius; } //: radius
  static non-sealed class Square implements Shape { class Inner { class Deeper { int deep; } int record; } } //: deep record
  java.util.List<java.util.Map.Entry<T, U>> qualified; //: qualified
  int after; //: after
}
class Second extends Sample<String, Integer> { Second() { super(1); } int bodyless(int p) { return 1; } int second; } //: second
`

// TestJava compiles the sample and checks that exactly the fields in the class
// files are found.
func TestJava(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "Sample.java")
	if err := os.WriteFile(file, []byte(javaSample), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "javac", "-nowarn", "-d", dir, file)
	classes, err := filepath.Glob(filepath.Join(dir, "com/shop/*.class"))
	if err != nil {
		t.Fatal(err)
	}
	compiled := fieldsOf(run(t, "javap", append([]string{"-p"}, classes...)...))

	x := indexOf(map[string]string{"src/Sample.java": javaSample})
	found := map[string]bool{}
	lines := strings.Split(javaSample, "\n")
	for class, c := range x.classes {
		for _, f := range c.fields {
			found[class+" "+f.name] = true
			_, names, _ := strings.Cut(lines[f.line-1], "//: ")
			if f.name != "BLOCK" && !slices.Contains(strings.Fields(names), f.name) {
				t.Errorf("%s.%s is not on line %d: %q", class, f.name, f.line, lines[f.line-1])
			}
		}
	}
	if len(compiled) < 40 || !maps.Equal(found, compiled) {
		for name := range compiled {
			if !found[name] {
				t.Errorf("%s was not found", name)
			}
		}
		for name := range found {
			if !compiled[name] {
				t.Errorf("%s does not exist", name)
			}
		}
		t.Errorf("%d compiled fields, but %d found", len(compiled), len(found))
	}
}

// fieldsOf parses the output of javap and returns "class field" for every field
// that has a name in the sources.
func fieldsOf(listing string) map[string]bool {
	class := ""
	head := regexp.MustCompile(`^(?:[\w-]+ )*(?:class|interface) ([\w.$]+)`)
	field := regexp.MustCompile(`^  [^(]*?([\w$]+);\s*$`)
	unnamed := regexp.MustCompile(`\$[0-9]`)
	out := map[string]bool{}
	for line := range strings.Lines(listing) {
		if m := head.FindStringSubmatch(line); m != nil {
			class = m[1]
		} else if m := field.FindStringSubmatch(line); m != nil && !strings.Contains(m[1], "$") &&
			!unnamed.MatchString(class) {
			out[class+" "+m[1]] = true
		}
	}
	return out
}

func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		recorded.Missing(t, "%s is needed: %v", program, err)
	}
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", program, err, out)
	}
	return string(out)
}

func indexOf(files map[string]string) *index {
	x := &index{classes: map[string]indexedClass{}}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		for _, class := range declarations(file, files[file]) {
			x.add(file, class)
		}
	}
	return x
}

func TestDeclaration(t *testing.T) {
	x := indexOf(map[string]string{
		"app/Cart.kt": "package com.shop\n\nclass Cart {\n  val items by lazy { 1 }\n  companion " +
			"object {\n    val all = 1\n  }\n  class Line { val price = 1 }\n}\n",
		"app/util.kt":                 "package com.shop\nval counter = 1\n",
		"app/only.kt":                 "package com.shop\nclass Only\n",
		"app/main.kt":                 "@file:JvmName(\"Start\")\npackage com.shop\nfun main() {}\n",
		"app/parts.kt":                "@file:[JvmName(\"All\") JvmMultifileClass]\npackage com.shop\nvar part = 1\n",
		"lib/Bare.java":               "class Bare { int a,\n b; }",
		"src/debug/java/Variant.java": "package com.shop;\nclass Variant { int a; }",
		"src/prod/java/Variant.java":  "package com.shop;\nclass Variant { int a; }",
		"moved/Elsewhere.java": "/* package com.fake; */ package /* x */ com . shop . other ;\nclass " +
			"Elsewhere { int a; }",
		"broken/Broken.java": "package com.shop; class Broken { int a; void m( { int b; } int c",
		"broken/Same.java":   "package com.shop; class Same { int a; }\nclass Same { int b; }",
	})
	for name, want := range map[string]string{
		"com.shop.Cart items":                               "app/Cart.kt:4 field",
		"com.shop.Cart items$delegate":                      "app/Cart.kt:4 field",
		"com.shop.Cart Companion":                           "app/Cart.kt:5 field",
		"com.shop.Cart all":                                 "app/Cart.kt:6 field",
		"com.shop.Cart$Companion all":                       "app/Cart.kt:6 field",
		"com.shop.Cart$Line price":                          "app/Cart.kt:8 field",
		"com.shop.Cart$Line this$0":                         "app/Cart.kt:8",
		"com.shop.Cart$1 items":                             "app/Cart.kt:3",
		"com.shop.Cart$Line$show$1$2 L$0":                   "app/Cart.kt:8",
		"com.shop.Cart$$Lambda$23+0x00007f84bc004aa0 arg$1": "app/Cart.kt:3",
		"com.shop.Cart$$Lambda/0x00007f84bc004aa0.1 arg$1":  "app/Cart.kt:3",
		"com.shop.-$$Lambda$Cart$qZ1_x f$0":                 "app/Cart.kt:3",
		"com.shop.Cart$$ExternalSyntheticLambda0 f$0":       "app/Cart.kt:3",
		"com.shop.Cart$special$$inlined$map$1 $this":        "app/Cart.kt:3",
		"com.shop.Cart$sam$i$java_lang_Runnable$0 function": "app/Cart.kt:3",
		"com.shop.UtilKt counter":                           "app/util.kt:2 field",
		"com.shop.UtilKt$lambda$1 x":                        "app/util.kt:1",
		"com.shop.Start x":                                  "app/main.kt:1",
		"com.shop.All__PartsKt part":                        "app/parts.kt:3 field",
		"com.shop.Same a":                                   "broken/Same.java:1 field",
		"Bare b":                                            "lib/Bare.java:2 field",
		"com.shop.other.Elsewhere a":                        "moved/Elsewhere.java:2 field",
		"com.shop.Broken a":                                 "broken/Broken.java:1 field",
		"com.shop.OnlyKt x":                                 "no source declares com.shop.OnlyKt",
		"com.shop.Elsewhere a":                              "no source declares com.shop.Elsewhere",
		"com.shop.Variant a": "several files declare com.shop.Variant: " +
			"src/debug/java/Variant.java, src/prod/java/Variant.java",
		"com.shop.Variant$1 a": "several files declare com.shop.Variant: src/debug/java/Variant.java, " +
			"src/prod/java/Variant.java",
		"\x1b[31m a": "no source declares ?[31m",
		"$ a":        "no source declares $",
		" a":         "no source declares ",
		"com.shop." + strings.Repeat("$", 100) + " a": "no source declares com.shop." +
			strings.Repeat("$", 100),
		strings.Repeat("com.shop.Cart$", 10_000) + "Cart all": "no source declares " +
			strings.Repeat("com.shop.Cart$", 15)[:maxName-1] + "…",
	} {
		class, field, _ := strings.Cut(name, " ")
		d, ok := x.declaration(class, field)
		got := d.Reason
		if ok {
			got = fmt.Sprintf("%s:%d", d.File, d.Line)
			if d.OfField {
				got += " field"
			}
		}
		if got != want && !strings.HasPrefix(name, "com.shop.Cart$com") {
			t.Errorf("%.80q: %q, want %q", name, got, want)
		}
	}
}

// TestSources checks which files are read, with git and without.
func TestSources(t *testing.T) {
	fill := func(r repository) {
		r.write("app/src/main/A.java", "class A { int a; }")
		r.write("app/build/generated/A.java", "class A { int a; }")
		r.write("app/src/com/build/B.kt", "package com.build\nclass B(val b: Int)")
		r.write("node_modules/x/A.java", "class A { int a; }")
		r.write(".gradle/A.java", "class A { int a; }")
		r.write("Big.java", "class Big { int a; }"+strings.Repeat(" ", maxSource))
		r.write("odd\n\"name\".java", "class Odd { int a; }")
		outside := filepath.Join(r.TempDir(), "C.java")
		if err := os.WriteFile(outside, []byte("class C { int c; }"), 0o600); err != nil {
			r.Fatal(err)
		}
		for link, target := range map[string]string{
			"C.java": outside, "linked": filepath.Dir(outside), "D.java": "/dev/zero",
		} {
			if err := os.Symlink(target, filepath.Join(r.dir, link)); err != nil {
				r.Skip(err)
			}
		}
	}
	check := func(t *testing.T, c *Checkout) {
		t.Helper()
		for class, want := range map[string]string{
			"A": "app/src/main/A.java", "com.build.B": "app/src/com/build/B.kt", "C": "", "D": "", "Big": "",
			"Odd": "odd\n\"name\".java",
		} {
			if d, ok := c.Declaration(t.Context(), class, ""); ok != (want != "") || d.File != want {
				t.Errorf("%s: %+v, want %q", class, d, want)
			}
		}
	}
	t.Run("git", func(t *testing.T) {
		r := newRepository(t)
		r.write(".gitignore", "build/\n!app/src/com/build/\nnode_modules/\n.gradle/\n")
		fill(r)
		r.commit()
		r.write("Untracked.java", "class A { int a; }")
		check(t, r.open())
		check(t, open(t, filepath.Join(r.dir, "app", "src")))
	})
	t.Run("no git", func(t *testing.T) {
		r := repository{t, t.TempDir()}
		fill(r)
		c := r.open()
		check(t, c)
		if _, err := c.Changed(t.Context(), "main", "HEAD"); err == nil {
			t.Error("no error for changes without git")
		}
		if _, _, err := c.Ancestors(t.Context(), "HEAD", []string{"0000000"}); err == nil {
			t.Error("no error for ancestors without git")
		}
	})
}

// FuzzDeclarations checks that every declaration is on a line that contains its
// name as a word.
func FuzzDeclarations(f *testing.F) {
	kotlin, err := os.ReadFile("testdata/shop-views2.kt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(kotlin), true)
	f.Add(javaSample, false)
	f.Add("class A { val `x y` = \"${\"${1}\"}\" }", true)
	f.Add("enum class E { A, B { val c = 1 }; companion object }", true)
	f.Fuzz(func(t *testing.T, source string, isKotlin bool) {
		file := "a.java"
		if isKotlin {
			file = "a.kt"
		}
		lines := strings.Split(source, "\n")
		for _, class := range declarations(file, source) {
			if class.line < 1 || class.line > len(lines) {
				t.Fatalf("class %q is on line %d of %d", class.name, class.line, len(lines))
			}
			for _, field := range class.fields {
				if field.line < 1 || field.line > len(lines) {
					t.Fatalf("%s.%s is on line %d of %d", class.name, field.name, field.line, len(lines))
				}
				line := lines[field.line-1]
				if !isKotlin {
					line = uncommented(source)[field.line-1]
				}
				ofObject := isKotlin && (field.name == "INSTANCE" || field.name == "Companion") &&
					strings.Contains(source, "object")
				if !hasWord(line, field.name) && !ofObject {
					t.Fatalf("%s.%s is not on line %d: %q", class.name, field.name, field.line, line)
				}
			}
		}
	})
}

// comments matches Java comments, strings and characters, whichever begins
// first.
var comments = regexp.MustCompile(
	`(?s)//[^\n]*|/\*.*?(?:\*/|\z)|"""(?:\\.|[^\\])*?(?:"""|\\?\z)|"(?:\\[^\n]|[^"\\\n])*["\\]?|'(?:\\[^\n]|[^'\\\n])*['\\]?`)

// uncommented returns the lines of a Java file with comments and literals
// removed.
func uncommented(source string) []string {
	return strings.Split(comments.ReplaceAllStringFunc(source,
		func(s string) string { return " " + strings.Repeat("\n", strings.Count(s, "\n")) }), "\n")
}

func hasWord(line, word string) bool {
	for i := 0; i+len(word) <= len(line); i++ {
		if line[i:i+len(word)] == word && (i == 0 || !isNameByte(line[i-1])) &&
			(i+len(word) == len(line) || !isNameByte(line[i+len(word)])) {
			return true
		}
	}
	return false
}
