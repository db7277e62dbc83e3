package procfs

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
)

const limitsText = "Limit                     Soft Limit           Hard Limit           Units     \n" +
	"Max cpu time              unlimited            unlimited            seconds   \n" +
	"Max stack size            8388608              unlimited            bytes     \n" +
	"Max processes             21550                21550                processes \n" +
	"Max open files            32768                32768                files     \n" +
	"Max address space         unlimited            unlimited            bytes     \n" +
	"Max realtime timeout      unlimited            unlimited            us        \n"

func TestLimits(t *testing.T) {
	want := Limits{
		OpenFiles: Limit{Soft: known.Of(32768)}, Processes: Limit{Soft: known.Of(21550)},
		AddressSpace: Limit{Unlimited: true},
	}
	for name, text := range map[string]string{
		"whole": limitsText,
		"CRLF":  strings.ReplaceAll(limitsText, "\n", "\r\n"),
		"lines selected by grep": "Max processes             21550                21550                processes \n" +
			"Max open files            32768                32768                files     \n" +
			"Max address space         unlimited            unlimited            bytes     \n",
	} {
		got, err := ParseLimits([]byte(text))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	got, err := ParseLimits([]byte(strings.Replace(limitsText, "32768 ", "3276x ", 1)))
	if err != nil || got.OpenFiles != (Limit{}) || got.Processes != want.Processes || len(got.Warnings) != 1 ||
		!strings.Contains(got.Warnings[0].Error(), "Max open files") {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]error{
		"": ErrEmpty,
		"cat: /proc/1/limits: No such file or directory\n": ErrFormat,
		statusText: ErrFormat,
	} {
		if _, err := ParseLimits([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Wherever the input is truncated, each value is either the same as in the
// complete input or absent.
func TestTruncatedLimits(t *testing.T) {
	whole, err := ParseLimits([]byte(limitsText))
	if err != nil {
		t.Fatal(err)
	}
	for at := range len(limitsText) {
		part, err := ParseLimits([]byte(limitsText[:at]))
		if err != nil {
			continue
		}
		for i, pair := range [][2]Limit{
			{part.OpenFiles, whole.OpenFiles}, {part.Processes, whole.Processes},
			{part.AddressSpace, whole.AddressSpace},
		} {
			if pair[0] != pair[1] && pair[0] != (Limit{}) {
				t.Errorf("truncated at %d: row %d is %+v, in the whole text %+v", at, i, pair[0], pair[1])
			}
		}
		if cut := limitsText[at-1] != '\n'; part.Truncated != cut {
			t.Errorf("truncated at %d: truncated %t", at, part.Truncated)
		}
	}
}

func FuzzLimits(f *testing.F) {
	f.Add([]byte(limitsText))
	f.Add([]byte("Max open files 5\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := ParseLimits(text)
		if err != nil {
			if fmt.Sprint(l) != fmt.Sprint(Limits{}) {
				t.Fatalf("got an error and a value: %+v", l)
			}
			return
		}
		for _, x := range []Limit{l.OpenFiles, l.Processes, l.AddressSpace} {
			if x.Soft.N < 0 || x.Unlimited && x.Soft.Known || !x.Soft.Known && x.Soft.N != 0 {
				t.Fatalf("%+v", l)
			}
			if x.Soft.Known && !strings.Contains(string(text), fmt.Sprint(x.Soft.N)) {
				t.Fatalf("%d does not occur in %q", x.Soft.N, text)
			}
		}
		if len(l.Warnings) > field.MaxWarnings+1 {
			t.Fatalf("%d warnings", len(l.Warnings))
		}
	})
}
