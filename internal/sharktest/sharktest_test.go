package sharktest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// ending is a test that records how it ended.
type ending struct {
	testing.TB
	how string
}

func (e *ending) Helper()                           {}
func (e *ending) Fatalf(format string, args ...any) { e.end("failed: ", format, args) }
func (e *ending) Skipf(format string, args ...any)  { e.end("skipped: ", format, args) }

func (e *ending) end(how, format string, args []any) {
	e.how = how + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// endOf runs a test and returns how it ended, or "" if it returned.
func endOf(t *testing.T, do func(testing.TB)) string {
	e := &ending{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(e)
	}()
	<-done
	return e.how
}

// TestMissing checks that, without Java, a test is skipped, or fails if
// LEAKGATE_REQUIRE requires everything.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for require, want := range map[string]string{"": "skipped: Shark needs java", "all": "failed: Shark needs java"} {
		t.Setenv("LEAKGATE_REQUIRE", require)
		if got := endOf(t, func(tb testing.TB) { New(tb) }); !strings.HasPrefix(got, want) {
			t.Errorf("LEAKGATE_REQUIRE=%s: %q, want %q", require, got, want)
		}
	}
}

// TestPrograms checks that the output of a program is returned, and that a
// compile error fails the test.
func TestPrograms(t *testing.T) {
	s := New(t)
	good := fmt.Sprintf(echo, "shark.HprofVersion.ANDROID")
	if out := s.Compile(t, "Echo", good).Run(t, "a b", "c"); string(out) != "ANDROID ä[a b, c]" {
		t.Errorf("%q", out)
	}
	if got := endOf(t,
		func(tb testing.TB) { s.Compile(tb, "Echo", fmt.Sprintf(echo, "shark.Nothing")) }); !strings.Contains(got,
		"Nothing") || !strings.HasPrefix(got, "failed") {
		t.Errorf("program with a compile error: %q", got)
	}
	if got := endOf(t, func(tb testing.TB) { s.Compile(tb, "Echo", good).Run(tb) }); !strings.Contains(got,
		"no arguments") || !strings.HasPrefix(got, "failed") {
		t.Errorf("failing program: %q", got)
	}
}

// echo prints a value of Shark and its arguments.
const echo = `public final class Echo {
  public static void main(String[] args) throws Exception {
    if (args.length == 0) {
      throw new IllegalStateException("no arguments");
    }
    new java.io.PrintStream(System.out, true, "UTF-8").print(%s + " ä" + java.util.Arrays.toString(args));
  }
}
`
