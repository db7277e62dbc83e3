package procfs

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/recorded"
)

func TestRecordedSmaps(t *testing.T) {
	for _, c := range []struct {
		file string
		want Memory
	}{
		{"api36-memorylab-smaps.txt.gz", Memory{Mappings: known.Of(4068), Usage: Usage{
			Pss: known.Of(282363), Rss: known.Of(366032), Swap: known.Of(24660), SwapPss: known.Of(162),
			PrivateDirty: known.Of(238524), PrivateClean: known.Of(18924)}}},
		{"api29-x86_64-systemserver-smaps.txt.gz", Memory{Mappings: known.Of(2760), Usage: Usage{
			Pss: known.Of(108384), Rss: known.Of(250332), SwapPss: known.Of(0)}}},
		{"api29-x86_64-smaps_short.txt", Memory{Mappings: known.Of(6), Usage: Usage{
			Pss: known.Of(19119), Rss: known.Of(32900), SwapPss: known.Of(0)}}},
	} {
		t.Run(c.file, func(t *testing.T) {
			text := recorded.Read(t, "device", c.file)
			got, err := ParseSmaps(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if got.Truncated || len(got.Warnings) > 0 {
				t.Errorf("warnings about a complete input: truncated %t, %v", got.Truncated, got.Warnings)
			}
			wantKnown(t, c.want, got)
			wantKnown(t, sumByRegexp(text), got)
		})
	}
}

// wantKnown compares only the values that are known in want.
func wantKnown(t *testing.T, want, got any) {
	t.Helper()
	w, g := reflect.ValueOf(want), reflect.ValueOf(got)
	for i := range w.NumField() {
		name := w.Type().Field(i).Name
		switch v := w.Field(i).Interface().(type) {
		case Usage:
			wantKnown(t, v, g.Field(i).Interface())
		case known.Int:
			if v.Known && g.Field(i).Interface() != v {
				t.Errorf("%s is %v, want %d", name, g.Field(i).Interface(), v.N)
			}
		}
	}
}

// sumByRegexp is a second, straightforward parser.
func sumByRegexp(text []byte) Memory {
	sums := map[string]known.Int{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+): +(\d+) kB$`).FindAllSubmatch(text, -1) {
		n, err := strconv.ParseInt(string(m[2]), 10, 64)
		if err != nil {
			panic(err)
		}
		sums[string(m[1])] = known.Of(sums[string(m[1])].N + n)
	}
	sum := func(key string) known.Int { return sums[key] }
	return Memory{
		Mappings: known.Of(int64(len(regexp.MustCompile(`(?m)^[0-9a-f]+-[0-9a-f]+ `).FindAll(text, -1)))),
		Usage: Usage{
			Rss: sum("Rss"), Pss: sum("Pss"), PssAnon: sum("Pss_Anon"), SharedClean: sum("Shared_Clean"),
			SharedDirty:  sum("Shared_Dirty"),
			PrivateClean: sum("Private_Clean"), PrivateDirty: sum("Private_Dirty"), Anonymous: sum("Anonymous"),
			Swap: sum("Swap"), SwapPss: sum("SwapPss"),
		},
	}
}

func TestScanPassesMappings(t *testing.T) {
	text := recorded.Read(t, "device", "api36-memorylab-smaps.txt.gz")
	var n, kgsl, sum int64
	var last uint64
	m, err := ScanSmaps(iotest.HalfReader(bytes.NewReader(text)), func(m *Mapping) error {
		n++
		sum += m.Pss.N
		if string(m.Name) == "/dev/kgsl-3d0" {
			kgsl += m.Pss.N
		}
		if m.Start < last || m.Size.N*1024 != int64(m.End-m.Start) {
			t.Fatalf("mapping %d: %x-%x, size %d kB", n, m.Start, m.End, m.Size.N)
		}
		last = m.End
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The sum for /dev/kgsl-3d0 equals the "Gfx dev" row of dumpsys meminfo
	// from the same minute.
	if n != 4068 || kgsl != 1908 || sum != m.Pss.N {
		t.Errorf("got %d mappings, kgsl %d kB, sum %d kB; want 4068, 1908, %d", n, kgsl, sum, m.Pss.N)
	}
}

func TestMappingFields(t *testing.T) {
	const text = "70a20000-70d0c000 rw-p 00001000 fe:00 3165      /data/app/my file.so (deleted)\r\n" +
		"Name:           [anon:x]\r\nSize:               2992 kB\r\nRss:                2676 kB\r\nPss:              " +
		"  1092 kB\r\n" +
		"Pss_Dirty:           999 kB\r\nPss_Anon:             77 kB\r\nSwapPss:               3 kB\r\nVmFlags: rd wr " +
		"\r\n"
	var got Mapping
	m, err := ScanSmaps(strings.NewReader(text), func(m *Mapping) error {
		got = *m
		got.Name = bytes.Clone(m.Name)
		return nil
	})
	if err != nil || m.Truncated || len(m.Warnings) > 0 {
		t.Fatal(m, err)
	}
	want := Mapping{Start: 0x70a20000, End: 0x70d0c000, Perms: [4]byte{'r', 'w', '-', 'p'}, Offset: 0x1000, Inode: 3165,
		Name: []byte("/data/app/my file.so (deleted)"), Size: known.Of(2992),
		Usage: Usage{Rss: known.Of(2676), Pss: known.Of(1092), PssAnon: known.Of(77), SwapPss: known.Of(3)}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestCallbackEndsTheScan(t *testing.T) {
	stop := errors.New("enough")
	calls := 0
	_, err := ScanSmaps(bytes.NewReader(smapsText(3, "VmFlags")), func(*Mapping) error { calls++; return stop })
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%d calls, error %v", calls, err)
	}
	_, err = ParseSmaps(iotest.TimeoutReader(iotest.HalfReader(bytes.NewReader(smapsText(4000, "VmFlags")))))
	if !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("reader's error is %v", err)
	}
}

// smapsText returns n mappings with 2 kB Pss and 1 kB SwapPss each.
func smapsText(n int, last string) []byte {
	var b strings.Builder
	for i := range n {
		b.WriteString(strconv.FormatInt(int64(0x1000+i*0x1000), 16) + "-" +
			strconv.FormatInt(int64(0x2000+i*0x1000), 16) +
			" rw-p 00000000 00:00 0    [anon:m]\nSize: 4 kB\nPss: 2 kB\nSwapPss: 1 kB\n" + last + ": 0 kB\n")
	}
	return []byte(b.String())
}

func TestOneBadFieldIsAbsent(t *testing.T) {
	good := string(smapsText(3, "VmFlags"))
	for _, c := range []struct{ name, from, to string }{
		{"letters", "Pss: 2 kB", "Pss: x kB"},
		{"no unit", "Pss: 2 kB", "Pss: 2"},
		{"negative", "Pss: 2 kB", "Pss: -2 kB"},
		{"too long", "Pss: 2 kB", "Pss: 9999999999999999999 kB"},
		{"twice", "\nPss: 2 kB\n", "\nPss: 2 kB\nPss: 2 kB\n"},
		{"three times", "\nPss: 2 kB\n", "\nPss: 2 kB\nPss: 2 kB\nPss: 2 kB\n"},
		{"gone", "\nPss: 2 kB\n", "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := ParseSmaps(strings.NewReader(strings.Replace(good, c.from, c.to, 1)))
			if err != nil {
				t.Fatal(err)
			}
			if m.Pss.Known || m.SwapPss != known.Of(3) || m.Mappings != known.Of(3) || m.Truncated {
				t.Errorf("got %+v", m)
			}
			if len(m.Warnings) == 0 || !strings.Contains(m.Warnings[0].Error(), "Pss") {
				t.Errorf("warnings do not name Pss: %v", m.Warnings)
			}
		})
	}
	sum := strings.Replace(good, "Pss: 2 kB", "Pss: 999999999999999999 kB", 1)
	if m, err := ParseSmaps(strings.NewReader(sum)); err != nil || m.Pss != known.Of(999999999999999999+4) {
		t.Error("a number of 18 digits is rejected", m, err)
	}
	overflow := strings.Repeat("Pss: 999999999999999999 kB\n", 10)
	if m, err := ParseSmaps(strings.NewReader(overflow)); err != nil || m.Pss.Known {
		t.Error("a sum beyond int64 is reported as known", m, err)
	}
}

func TestNotSmaps(t *testing.T) {
	for text, want := range map[string]error{
		"":      ErrEmpty,
		"\r\n ": ErrEmpty,
		"cat: /proc/3309/smaps: Permission denied\n": ErrFormat,
		"No such process":           ErrFormat,
		"\x00\x01\x02":              ErrFormat,
		"VmFlags: rd\nLocked: 0 kB": ErrFormat,
	} {
		if m, err := ParseSmaps(strings.NewReader(text)); !errors.Is(err, want) {
			t.Errorf("%q: %+v, %v", text, m, err)
		}
	}
}

func TestInterruptedSmaps(t *testing.T) {
	whole := string(smapsText(3, "VmFlags"))
	for name, text := range map[string]string{
		"error message at the end":    whole + "cat: /proc/1/smaps: No such process\n",
		"half a header":               whole + "4000-50",
		"only a header":               whole + "4000-5000 rw-p 00000000 00:00 0 \n",
		"last line missing":           strings.TrimSuffix(whole, "VmFlags: 0 kB\n"),
		"half a number":               strings.TrimSuffix(whole, " 1 kB\nVmFlags: 0 kB\n") + " 1",
		"beginning missing":           whole[strings.Index(whole, "SwapPss"):],
		"incomplete first mapping":    strings.TrimSuffix(string(smapsText(1, "VmFlags")), "VmFlags: 0 kB\n"),
		"filtered, unequal counts":    "Pss: 1 kB\nSwapPss: 1 kB\nPss: 1 kB\n",
		"newline trimmed":             strings.TrimSuffix(whole, "\n"),
		"incomplete last line":        strings.TrimSuffix(whole, ": 0 kB\n"),
		"filtered, no newline":        "Pss: 1 kB\nSwapPss: 1 kB",
		"filtered, incomplete number": "Pss: 1 kB\nSwapPss: 1 kB\nPss: 1 kB\nSwapPss: 1",
	} {
		m, err := ParseSmaps(strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !m.Truncated || m.Usage != (Usage{}) || m.Mappings.Known || len(m.Warnings) == 0 {
			t.Errorf("%s: %+v", name, m)
		}
	}
	// This input is complete, although it is unusual.
	for name, text := range map[string]string{
		"no VmFlags (3.4)":       string(smapsText(2, "Locked")),
		"an unknown line":        "WARNING: linker: text relocations\n" + whole,
		"grep of complete lines": strings.Repeat("Pss: 2 kB\nSwapPss: 1 kB\n", 3),
		"grep, other order":      strings.Repeat("SwapPss: 1 kB\r\nPss: 2 kB\r\n", 3),
	} {
		m, err := ParseSmaps(strings.NewReader(text))
		if err != nil || m.Truncated || !m.Pss.Known || m.Pss.N != 2*m.SwapPss.N {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func TestLongLinesAreBounded(t *testing.T) {
	long := strings.Repeat("x", 3*maxLine)
	text := "1000-2000 rw-p 00000000 00:00 0    /" + long + "\nPss: 2 kB\nVmFlags: rd\n"
	var name int
	m, err := ScanSmaps(strings.NewReader(text), func(m *Mapping) error { name = len(m.Name); return nil })
	if err != nil || m.Pss != known.Of(2) || name != maxName {
		t.Errorf("%+v, %v, name has %d bytes", m, err, name)
	}
	m, err = ParseSmaps(strings.NewReader(strings.Repeat("1000-2000 nonsense\n", 1000) + "Pss: 2 kB\n"))
	if err != nil || len(m.Warnings) > field.MaxWarnings+2 {
		t.Errorf("%d warnings, %v", len(m.Warnings), err)
	}
}

// cuts returns the offsets of every step-th line boundary and n random offsets.
func cuts(text []byte, step, n int) (at []int) {
	line := 0
	for i, c := range text {
		if c != '\n' {
			continue
		}
		if line%step == 0 {
			at = append(at, i+1)
		}
		line++
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		at = append(at, r.IntN(len(text)))
	}
	return at
}

// thinned returns the positions at which an input is truncated: every step-th
// newline and a number of random offsets. A large input is truncated at each of
// its 88,000 newlines only with LEAKGATE_E2E=long, because this takes several
// minutes.
func thinned(text []byte) (step, random int) {
	if len(text) < 1<<20 || os.Getenv("LEAKGATE_E2E") == "long" {
		return 1, 2000
	}
	return 499, 100
}

// For a truncated smaps, no sums are returned. Truncation between two mappings
// cannot be detected in the input, but the transport's exit status reveals it.
func TestTruncatedSmaps(t *testing.T) {
	for _, file := range []string{
		"api29-x86_64-smaps_short.txt", "api29-x86_64-systemserver-smaps.txt.gz", "api36-memorylab-smaps.txt.gz",
	} {
		text := recorded.Read(t, "device", file)
		whole, err := ParseSmaps(bytes.NewReader(text))
		if err != nil || whole.Truncated {
			t.Fatal(whole, err)
		}
		between := 0
		step, random := thinned(text)
		for _, at := range cuts(text, step, random) {
			next, _, _ := bytes.Cut(text[at:], []byte("\n"))
			if at == len(text) || text[at-min(at, 1)] == '\n' && isHeader(next) {
				between++
				continue
			}
			m, err := ParseSmaps(bytes.NewReader(text[:at]))
			if err != nil {
				if !errors.Is(err, ErrEmpty) && !errors.Is(err, ErrFormat) {
					t.Fatalf("%s truncated at %d: %v", file, at, err)
				}
				continue
			}
			if !m.Truncated || m.Usage != (Usage{}) || m.Mappings.Known {
				t.Fatalf("%s truncated at %d: %+v", file, at, m)
			}
		}
		t.Logf("%s: %d truncations are between two mappings", file, between)
	}
}

func TestTruncatedRollup(t *testing.T) {
	text := recorded.Read(t, "device", "api30-galaxy-a52-smaps_rollup.txt")
	whole, err := ParseRollup(text)
	if err != nil {
		t.Fatal(err)
	}
	for at := range len(text) {
		m, err := ParseRollup(text[:at])
		if err != nil {
			continue
		}
		sameOrAbsent(t, at, whole.Usage, m.Usage)
		if !m.Truncated && !bytes.Contains(text[:at], []byte("Locked:")) {
			t.Errorf("truncation at %d is not reported", at)
		}
	}
}

// sameOrAbsent compares all Values of two structs.
func sameOrAbsent(t *testing.T, at int, whole, part any) {
	t.Helper()
	w, p := reflect.ValueOf(whole), reflect.ValueOf(part)
	for i := range w.NumField() {
		v, ok := p.Field(i).Interface().(known.Int)
		if ok && v != (known.Int{}) && v != w.Field(i).Interface() {
			t.Errorf("truncated at %d: %s is %v, want %v", at, w.Type().Field(i).Name, v, w.Field(i).Interface())
		}
	}
}

func TestRecordedRollups(t *testing.T) {
	a52, err := ParseRollup(recorded.Read(t, "device", "api30-galaxy-a52-smaps_rollup.txt"))
	if err != nil || a52.Truncated || len(a52.Warnings) > 0 || a52.PssAnon.Known {
		t.Errorf("%+v, %v", a52, err)
	}
	wantKnown(t,
		Memory{
			Usage: Usage{
				Rss: known.Of(55656), Pss: known.Of(7071), Swap: known.Of(35232), SwapPss: known.Of(1194),
				PrivateDirty: known.Of(5200), PrivateClean: known.Of(240),
			},
		}, a52)

	head, err := ParseRollup(recorded.Read(t, "device", "api3x-tvbox-smaps_rollup-head.txt"))
	if err != nil || !head.Truncated || head.SwapPss.Known {
		t.Errorf("%+v, %v", head, err)
	}
	wantKnown(t, Memory{Usage: Usage{Rss: known.Of(3892), Pss: known.Of(3892), PssAnon: known.Of(1256)}}, head)
}

func TestRollup(t *testing.T) {
	const header = "12c00000-7fd14f2000 ---p 00000000 00:00 0    [rollup]\r\n"
	for name, c := range map[string]struct {
		text        string
		pss, swap   known.Int
		cut, warned bool
	}{
		"filtered":          {"Pss:  12 kB\nSwapPss:  3 kB\n", known.Of(12), known.Of(3), false, false},
		"filtered, trimmed": {"Pss:  12 kB\r\nSwapPss:  3 kB", known.Of(12), known.Of(3), false, false},
		"half a number":     {"Pss:  12 kB\nSwapPss:  3", known.Of(12), known.Int{}, true, true},
		"bad": {
			header + "Pss:  1x kB\nSwapPss:  3 kB\nLocked: 0 kB\n", known.Int{}, known.Of(3), false, true,
		},
		"twice":        {"Pss:  1 kB\nPss: 2 kB\nSwapPss:  3 kB\n", known.Int{}, known.Of(3), false, true},
		"unknown line": {"linker: x\nPss:  1 kB\nSwapPss:  3 kB\n", known.Of(1), known.Of(3), false, true},
		"no Pss":       {"Pss_Dirty:  1 kB\nSwapPss:  3 kB\n", known.Int{}, known.Of(3), false, false},
	} {
		m, err := ParseRollup([]byte(c.text))
		if err != nil || m.Pss != c.pss || m.SwapPss != c.swap || m.Truncated != c.cut ||
			len(m.Warnings) > 0 != c.warned {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	for text, want := range map[string]error{
		"":     ErrEmpty,
		header: ErrFormat,
		"head: /proc/3309/smaps_rollup: Permission denied\n": ErrFormat,
		string(smapsText(2, "VmFlags")):                      ErrFormat,
	} {
		if _, err := ParseRollup([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzSmaps(f *testing.F) {
	f.Add(smapsText(3, "VmFlags"))
	f.Add([]byte("Pss: 1 kB\nSwapPss: 1 kB\n"))
	f.Add([]byte("12c00000-7fd14f2000 ---p 00000000 00:00 0 [rollup]\r\nPss:  12 kB\r\nLocked: 0 kB\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var handed, sum int64
		m, err := ScanSmaps(bytes.NewReader(text), func(m *Mapping) error {
			handed++
			if m.Pss.Known {
				sum += m.Pss.N
			}
			if len(m.Name) > maxName || m.End < m.Start || !isPerms(m.Perms) {
				t.Fatalf("mapping %+v", m)
			}
			return nil
		})
		if err != nil {
			if !reflect.DeepEqual(m, Memory{}) {
				t.Fatalf("got an error and a value: %+v, %v", m, err)
			}
			return
		}
		if m.Mappings.Known && (m.Mappings.N != handed || m.Pss.Known && m.Pss.N != sum) {
			t.Fatalf("the callback received %d mappings with %d kB, but the result is %+v", handed, sum, m)
		}
		if m.Truncated && m.Usage != (Usage{}) || len(m.Warnings) > field.MaxWarnings+2 {
			t.Fatalf("%+v", m)
		}
		small, err := ParseSmaps(iotest.OneByteReader(bytes.NewReader(text)))
		if err != nil || small.Usage != m.Usage || small.Truncated != m.Truncated {
			t.Fatalf("read byte by byte: %+v, %v, want %+v", small, err, m)
		}
	})
}

func FuzzRollup(f *testing.F) {
	f.Add([]byte("12c00000-7fd14f2000 ---p 00000000 00:00 0 [rollup]\r\n"+
		"Pss:  12 kB\r\nSwapPss: 2 kB\nLocked: 0 kB\r\n"), 40)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		m, err := ParseRollup(text)
		if err != nil {
			return
		}
		if m.Usage == (Usage{}) && len(m.Warnings) == 0 && !bytes.Contains(text, []byte("Size:")) {
			t.Fatalf("neither value nor warning nor error: %+v", m)
		}
		if at < 0 || at > len(text) {
			return
		}
		part, err := ParseRollup(text[:at])
		if err != nil {
			return
		}
		if len(m.Warnings) == 0 {
			sameOrAbsent(t, at, m.Usage, part.Usage)
		}
	})
}

func BenchmarkSmaps(b *testing.B) {
	text := recorded.Read(b, "device", "api36-memorylab-smaps.txt.gz")
	r := bytes.NewReader(text)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r.Reset(text)
		if m, err := ScanSmaps(r, func(*Mapping) error { return nil }); err != nil || m.Mappings.N != 4068 {
			b.Fatal(m, err)
		}
	}
}

func TestScanDoesNotAllocatePerMapping(t *testing.T) {
	allocs := func(n int) float64 {
		text := smapsText(n, "VmFlags")
		r := bytes.NewReader(text)
		return testing.AllocsPerRun(5, func() {
			r.Reset(text)
			if _, err := ScanSmaps(r, func(*Mapping) error { return nil }); err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := allocs(10), allocs(10000)
	if many > few {
		t.Errorf("%v allocations for 10 mappings, but %v for 10,000", few, many)
	}
}

func BenchmarkRollup(b *testing.B) {
	text := recorded.Read(b, "device", "api30-galaxy-a52-smaps_rollup.txt")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseRollup(text); err != nil {
			b.Fatal(err)
		}
	}
}
