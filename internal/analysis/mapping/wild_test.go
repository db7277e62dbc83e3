package mapping

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// wild writes mappings that no compiler writes. Their names and line numbers
// are few and therefore collide. They contain overloads, ranges that overlap,
// are reversed or have no end, and misplaced comments. Their meaning was
// recorded from R8's retrace; see TestRecorded.
func wild(seed uint64) string {
	w := &wildWriter{Rand: rand.New(rand.NewPCG(seed, 1))}
	w.line(`# {"id":"com.android.tools.r8.mapping","version":"%s"}`, w.one("2.2", "2.2", "2.2", "1.0", "2.0"))
	for i := range 1 + w.IntN(4) {
		w.class(i)
	}
	return w.String()
}

type wildWriter struct {
	*rand.Rand
	strings.Builder
}

func (w *wildWriter) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (w *wildWriter) one(words ...string) string { return words[w.IntN(len(words))] }

// wildClasses lists the source names of the classes, in the order of their
// names in the build.
var wildClasses = []string{"app.Main", "app.Main$Inner", "app.UtilKt", "lib.Odd$", "lib.deep.Thing"}

func (w *wildWriter) class(i int) {
	w.line("%s -> %c:", wildClasses[i], 'a'+rune(i))
	if w.IntN(3) == 0 {
		w.line(`# {"id":"sourceFile","fileName":"%s"}`, w.one("Main.kt", "R8$$SyntheticClass", "Util.java"))
	}
	if w.IntN(5) == 0 {
		w.line("# {'id':'com.android.tools.r8.synthesized'}")
	}
	for i, original := range []string{"left", "right", "lib.deep.Thing.moved"}[:w.IntN(4)] {
		w.line("    %s %s -> %c", w.one("int", "app.Main", "java.lang.String[]"), original, 'c'-rune(i))
	}
	for range w.IntN(7) {
		w.methods()
	}
}

// wildMethods lists methods and their names in the build.
var wildMethods = [][2]string{
	{"x()", "a"}, {"x(int)", "a"}, {"y(int,java.lang.String[])", "a"}, {"<init>(long)", "b"},
	{"lib.deep.Thing.x(char)", "a"}, {"gone.Away.y(short)", "b"},
}

// methods writes the lines of one range: the outermost method and the methods
// inlined into it.
func (w *wildWriter) methods() {
	outermost := wildMethods[w.IntN(len(wildMethods))]
	span := ""
	if w.IntN(4) > 0 {
		span = w.span()
		for range w.IntN(2) * w.IntN(4) {
			w.line("    %svoid %s%s -> %s", span, wildMethods[w.IntN(len(wildMethods))][0], w.original(), outermost[1])
		}
	}
	w.line("    %svoid %s%s -> %s", span, outermost[0], w.original(), outermost[1])
	if w.IntN(12) == 0 {
		w.line("      # {'id':'com.android.tools.r8.%s'}", w.one("synthesized", "outline"))
	}
}

func (w *wildWriter) original() string {
	return strings.TrimSuffix(w.one("", "", ":"+w.number(), ":"+w.span(), ":"+w.span(), ":0", ":0:0"), ":")
}

func (w *wildWriter) number() string { return fmt.Sprint(w.IntN(30)) }

func (w *wildWriter) span() string {
	from := w.IntN(6)
	return fmt.Sprintf("%d:%d:", from, from+w.least(0, 0, 1, 2, 3, -1, 7))
}

func (w *wildWriter) least(numbers ...int) int { return max(numbers[w.IntN(len(numbers))], 0) }

// wildQuestions returns all requests for a wild mapping.
func wildQuestions() (all []string) {
	for class := range len(wildClasses) {
		for _, member := range []string{"a", "b", "c"} {
			all = append(all, fmt.Sprintf("field %c %s", 'a'+rune(class), member))
			for _, line := range []int{0, 1, 2, 3, 5, 9, 65535} {
				all = append(all, fmt.Sprintf("frame %c %s %d", 'a'+rune(class), member, line))
			}
		}
	}
	return all
}
