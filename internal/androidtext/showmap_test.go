package androidtext_test

import (
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/recorded"
)

func mappings() []androidtext.Mapping {
	page := func(start uint64, name, perms string, dirty, clean int64) androidtext.Mapping {
		return androidtext.Mapping{
			Start: start, End: start + 64<<10, Perms: perms, Name: name,
			Memory: androidtext.Memory{
				Rss: dirty + clean + 30, Pss: dirty + clean + 3, SharedClean: 10, SharedDirty: 20,
				PrivateClean: clean, PrivateDirty: dirty, Swap: dirty + 1, SwapPss: dirty + 2,
			},
		}
	}
	return []androidtext.Mapping{
		page(0x10000, "b.so", "r-xp", 0, 0), page(0x30000, "", "rw-p", 17, 1), page(0x50000, "b.so", "rw-p", 4, 0),
		page(0x7fff0000, "a.so", "r--p", 0, 5),
	}
}

// TestShowmapReadsBack checks that the parser for real phones returns the
// printed values.
func TestShowmapReadsBack(t *testing.T) {
	for api := oldest; api <= newest; api++ {
		for _, args := range []string{"7", "-t 7", "-v 7", "-a 7", "-va 7", "7 -tv"} {
			o, ok := androidtext.ParseShowmap(strings.Fields(args))
			if !ok || o.PID != 7 {
				t.Fatalf("%s: %+v", args, o)
			}
			text := androidtext.Showmap(api, mappings(), o)
			if (o.Verbose || o.Addresses) && (api == 29 || api == 30) {
				// In these releases, the last two titles are not separated if
				// the count column is missing.
				if !strings.Contains(text, "swap  swapPSSobject\n") {
					t.Errorf("API %d, %s:\n%s", api, args, text)
				}
				continue
			}
			s, err := procfs.ParseShowmap([]byte(text))
			if err != nil || s.Truncated || len(s.Warnings) > 0 {
				t.Fatalf("API %d, %s: %v %v\n%s", api, args, err, s.Warnings, text)
			}
			checkShowmap(t, api, o, s)
		}
	}
}

func checkShowmap(t *testing.T, api int, o androidtext.ShowmapOptions, s procfs.Showmap) {
	t.Helper()
	total := s.Total
	if total.Size.N != 256 || total.RSS.N != 147 || total.PSS.N != 39 || total.SharedClean.N != 40 ||
		total.SharedDirty.N != 80 ||
		total.PrivateClean.N != 6 || total.PrivateDirty.N != 21 || total.Swap.N != 25 ||
		total.SwapPss.Known != (api >= 26) || total.SwapPss.Known && total.SwapPss.N != 29 {
		t.Errorf("API %d, %+v: TOTAL %+v", api, o, total)
	}
	names := map[bool]string{false: "[anon] a.so b.so", true: "[anon] a.so b.so b.so"}[o.Verbose]
	switch {
	case o.Terse && api < androidtext.ShowmapEverywhere: // only dirty pages
		names = "[anon] b.so"
	case o.Terse && o.Verbose:
		names = "[anon] a.so b.so"
	case o.Addresses:
		names = "b.so [anon] b.so a.so"
	}
	var got []string
	for _, r := range s.Rows {
		got = append(got, r.Object)
		if (r.Start != 0) != o.Addresses || r.Start != 0 && api >= androidtext.ShowmapEverywhere &&
			r.End-r.Start != 64<<10 {
			t.Errorf("API %d, %+v: %+v", api, o, r)
		}
		if (r.Flags != "") != (o.Verbose && api >= androidtext.ShowmapFlags) || r.Object == "a.so" && r.Flags != "" &&
			r.Flags != "r--" {
			t.Errorf("API %d, %+v: flags %q", api, o, r.Flags)
		}
		if !o.Verbose && !o.Addresses && r.Object == "b.so" &&
			(r.Count.N != 2 || r.PrivateDirty.N != 4 || r.Size.N != 128) {
			t.Errorf("API %d, %+v: %+v", api, o, r)
		}
	}
	if strings.Join(got, " ") != names {
		t.Errorf("API %d, %+v: %q, want %q", api, o, got, names)
	}
}

// TestShowmapIsRecorded prints the values of a recorded table again: all lines
// except the total must be identical.
func TestShowmapIsRecorded(t *testing.T) {
	want := string(recorded.Read(t, "device", "api36-memorylab-showmap.txt"))
	parsed, err := procfs.ParseShowmap([]byte(want))
	if err != nil {
		t.Fatal(err)
	}
	var all []androidtext.Mapping
	for _, r := range parsed.Rows {
		m := androidtext.Mapping{
			Name: r.Object, End: uint64(r.Size.N) << 10,
			Memory: androidtext.Memory{
				Rss: r.RSS.N, Pss: r.PSS.N, SharedClean: r.SharedClean.N, SharedDirty: r.SharedDirty.N,
				PrivateClean: r.PrivateClean.N, PrivateDirty: r.PrivateDirty.N, Swap: r.Swap.N, SwapPss: r.SwapPss.N,
			},
		}
		all = append(all, m)
		for range r.Count.N - 1 {
			all = append(all, androidtext.Mapping{Name: r.Object})
		}
	}
	ours := strings.Split(androidtext.Showmap(36, all, androidtext.ShowmapOptions{}), "\n")
	real := strings.Split(want, "\n")
	if len(ours) != len(real) {
		t.Fatalf("got %d lines, but the recording has %d", len(ours), len(real))
	}
	for i := range real {
		if ours[i] != real[i] && !strings.HasSuffix(real[i], " TOTAL") {
			t.Errorf("line %d:\n%q\nrecorded:\n%q", i, ours[i], real[i])
		}
	}
}

func TestParseShowmap(t *testing.T) {
	for _, args := range []string{"", "x", "-7", "-x 7", "7 8", "0", "-t"} {
		if o, ok := androidtext.ParseShowmap(strings.Fields(args)); ok {
			t.Errorf("%q: %+v", args, o)
		}
	}
	for api := oldest; api <= newest; api++ {
		old := api < 29
		want := "Failed to parse file /proc/7/smaps\n"
		if old {
			want = "cannot open /proc/7/smaps: Permission denied\n"
		}
		if got := androidtext.ShowmapError(api, 7, "Permission denied"); got != want {
			t.Errorf("API %d: %q", api, got)
		}
		if usage := androidtext.ShowmapUsage(api); !strings.Contains(usage, "PID") ||
			strings.Contains(usage, "-o") != (api >= 34) {
			t.Errorf("API %d: %q", api, usage)
		}
	}
}

// FuzzParseShowmap checks that accepted arguments name a process, and that
// their order does not matter.
func FuzzParseShowmap(f *testing.F) {
	for _, seed := range []string{"7", "-a -v 7", "7 -tq", "-", "--", "-\xff 3", "99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		o, ok := androidtext.ParseShowmap(args)
		if ok != (ok && o.PID > 0) {
			t.Fatalf("%q: %+v", args, o)
		}
		var back []string
		for i := len(args) - 1; i >= 0; i-- {
			back = append(back, args[i])
		}
		if again, also := androidtext.ParseShowmap(back); also != ok || ok && again != o {
			t.Errorf("%q: %+v, with the options in reverse order %+v", args, o, again)
		}
	})
}
