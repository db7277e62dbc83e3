package harness

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"
)

// parsed parses the flags of a test binary.
func parsed(t *testing.T, args ...string) error {
	t.Helper()
	before := flags
	t.Cleanup(func() { flags = before })
	f := flag.NewFlagSet("suite", flag.ContinueOnError)
	f.SetOutput(new(strings.Builder))
	declareFlags(f)
	declareFlags(f) // the flags of a second Watch
	return f.Parse(args)
}

// Flags override other settings, but only if they are given.
func TestFlags(t *testing.T) {
	s := settings{}
	s.Config, s.Artifacts, s.Observe, s.Wait = "code.yaml", "code", true, false
	t.Run("none", func(t *testing.T) {
		if err := parsed(t); err != nil {
			t.Fatal(err)
		}
		s := s
		s.addFlags()
		if s.Config != "code.yaml" || s.Artifacts != "code" || !s.Observe || s.Wait || len(s.Flags) != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("all", func(t *testing.T) {
		err := parsed(t, "-leakgate.config=flag.yaml", "-leakgate.devices", "a,b", "--leakgate.artifacts=flag",
			"-leakgate.accepted=list.yaml", "-leakgate.strict", "-leakgate.observe=false", "-leakgate.wait=1")
		if err != nil {
			t.Fatal(err)
		}
		s := s
		s.addFlags()
		want := map[string][]string{"devices.serials": {"a", "b"}, "strict": {"true"}}
		if s.Config != "flag.yaml" || s.Artifacts != "flag" || s.Accepted != "list.yaml" || s.Observe || !s.Wait ||
			!maps.EqualFunc(s.Flags, want, slices.Equal[[]string]) {
			t.Errorf("%+v", s)
		}
	})
	t.Run("off", func(t *testing.T) {
		if err := parsed(t, "-leakgate.strict=false"); err != nil {
			t.Fatal(err)
		}
		s := s
		if s.addFlags(); s.Flags["strict"][0] != "false" {
			t.Errorf("%+v", s.Flags)
		}
	})
	t.Run("invalid", func(t *testing.T) {
		if err := parsed(t, "-leakgate.strict=perhaps"); err == nil ||
			!strings.Contains(err.Error(), "want true or false") {
			t.Errorf("%v", err)
		}
	})
}

// A test binary may already have a flag with the same name.
func TestFlagsBesideOthers(t *testing.T) {
	f := flag.NewFlagSet("suite", flag.ContinueOnError)
	own := f.String("leakgate.config", "own", "")
	declareFlags(f)
	if err := f.Parse([]string{"-leakgate.config=x"}); err != nil || *own != "x" {
		t.Errorf("%q, %v", *own, err)
	}
}

func TestOptions(t *testing.T) {
	l := newLeaks("com.shop",
		[]Option{
			Processes("com.shop:*"), Devices("a"), Devices("b"), Config("x.yaml"), Artifacts("runs"), Accepted("list"),
			EverySpec(Heap(), Trend(), Live()), Strict(), Observe(), Wait(),
		})
	s := l.settings
	if !slices.Equal(s.Options.Processes, []string{"com.shop", "com.shop:*"}) ||
		!slices.Equal(s.Options.Devices, []string{"a", "b"}) || s.Config != "x.yaml" || s.Artifacts != "runs" ||
		s.Accepted != "list" ||
		!s.Strict || !s.Observe || !s.Wait || s.every == nil || !s.every.heap || !s.every.trend || !s.every.live {
		t.Errorf("%+v", s)
	}
	if other := newLeaks("com.shop", nil); other.number == l.number ||
		other.name("127.0.0.1:1") == l.name("127.0.0.1:1") {
		t.Error("two watches have the same name")
	}
}

// fatal records the failure of a test.
type fatal struct {
	testing.TB
	text string
}

func (f *fatal) Helper() {}
func (f *fatal) Fatalf(format string, args ...any) {
	f.text = format
}

func TestSplitOptions(t *testing.T) {
	f := &fatal{TB: t}
	watch, check := splitOptions(f, []any{Strict(), Heap(), Devices("a"), Of("com.shop")})
	if len(watch) != 2 || len(check) != 2 || f.text != "" {
		t.Errorf("%d, %d, %q", len(watch), len(check), f.text)
	}
	splitOptions(f, []any{"com.shop:push"})
	if !strings.Contains(f.text, "invalid option") {
		t.Errorf("%q", f.text)
	}
}
