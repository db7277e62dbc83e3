package response

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
)

// For each kind of leak, a phone is observed twice, an hour apart, and the
// response names what leaks.
func TestEachKind(t *testing.T) {
	rooted := androidsim.Options{API: 34, Root: true, BuildType: "userdebug"}
	for _, c := range []struct {
		recipe string
		phone  androidsim.Options
		leak   androidsim.Model
		check  func(t *testing.T, c *Case)
	}{
		{"java", rooted, androidsim.Leak(androidsim.Java, 40, 0), func(t *testing.T, c *Case) {
			leaks := found(c, "leak")
			if len(leaks) != 1 || !strings.Contains(leaks[0].Name, "Activity") || *leaks[0].Bytes < 30<<20 ||
				*leaks[0].Count < 2 || leaks[0].Fingerprint == "" || leaks[0].Key == "" {
				t.Fatalf("%+v", leaks)
			}
			trace := strings.Join(leaks[0].Trace, "\n")
			if !strings.Contains(trace, "GC Root") || !strings.Contains(trace, "~~~") ||
				!strings.Contains(trace, "retained") ||
				!strings.HasSuffix(strings.Join(c.Record.Summary, "\n"), strings.Join(leaks[0].Trace[1:], "\n")) {
				t.Errorf("%s\n\n%s", trace, strings.Join(c.Record.Summary, "\n"))
			}
			if !strings.HasPrefix(c.Headline(), "heap dump: ") || !strings.Contains(c.Headline(), "retained") {
				t.Error(c.Headline())
			}
		}},
		{"native", rooted, androidsim.Leak(androidsim.Native, 40, 0), func(t *testing.T, c *Case) {
			kinds, rows := found(c, "native_kind"), found(c, "mapping")
			if len(kinds) == 0 || kinds[0].Name != "heap" || mb(kinds[0].BytesDelta) != 40 || *kinds[0].Share < 0.9 {
				t.Errorf("%+v", kinds)
			}
			if len(rows) != 2 || mb(rows[0].BytesDelta) != 20 || rows[0].Name != "[anon:scudo:primary]" ||
				!strings.Contains(c.Headline(), rows[0].Name) {
				t.Errorf("%+v; %s", rows, c.Headline())
			}
			says(t, c.Record.Summary, "native memory: Pss + SwapPss ", rows[0].Name)
		}},
		{"thread", rooted, androidsim.Leak(androidsim.Thread, 4, 0), func(t *testing.T, c *Case) {
			groups := found(c, "threads")
			if len(groups) != 1 || *groups[0].CountDelta != 40 || *groups[0].Count < 40 ||
				groups[0].BytesDelta == nil || mb(groups[0].BytesDelta) != 4 {
				t.Fatalf("%+v\n%s", groups, strings.Join(c.Record.Summary, "\n"))
			}
			says(t, c.Record.Summary, "threads: 2", "(+40): 40 new, 0 ended", groups[0].Name, "of stack each")
			if !strings.Contains(c.Headline(), groups[0].Name) {
				t.Error(c.Headline())
			}
		}},
		{"gpu", rooted, androidsim.Leak(androidsim.GPU, 40, 0), func(t *testing.T, c *Case) {
			rows := found(c, "graphics")
			if len(rows) < 2 {
				t.Fatalf("%+v", rows)
			}
			seen := ""
			for _, f := range rows {
				if f.BytesDelta != nil && mb(f.BytesDelta) == 40 {
					seen += f.Name + "; "
				}
			}
			if !strings.Contains(seen, "EGL mtrack (dumpsys meminfo); ") ||
				!strings.Contains(seen, "(dumpsys gpu); ") || !strings.Contains(seen, "(dumpsys gfxinfo); ") {
				t.Errorf("40 MB of growth: got only the sources %s", seen)
			}
			says(t, c.Record.Summary, "graphics: ", "EGL mtrack")
		}},
		{"unknown", rooted, androidsim.Leak(androidsim.Native, 40, 0), func(t *testing.T, c *Case) {
			if kinds := found(c, "native_kind"); len(kinds) == 0 || mb(kinds[0].BytesDelta) != 40 {
				t.Errorf("%+v", kinds)
			}
			says(t, c.Record.Summary, "native memory: ", "heap dump: ")
			for _, line := range c.Record.Summary {
				if strings.HasPrefix(line, "threads:") {
					t.Errorf("got %q, although threads were not requested", line)
				}
			}
		}},
		// The memory maps of a released app are unreadable, so the rows of
		// meminfo are used.
		{"native", androidsim.Options{API: 34}, androidsim.Leak(androidsim.Native, 40, 0), func(t *testing.T, c *Case) {
			says(t, c.Record.Summary, "memory maps: not read before, not read now",
				"smaps: only the rows of meminfo; the library is unknown", "meminfo, by row:\n  Native Heap ",
				"(+40.1 MB)")
			rows := found(c, "meminfo")
			if len(rows) == 0 || rows[0].Name != "Native Heap" || mb(rows[0].BytesDelta) != 40 ||
				c.Record.Outcome != record.DiagnosisDegraded {
				t.Errorf("%s, %+v", c.Record.Outcome, rows)
			}
		}},
	} {
		t.Run(fmt.Sprint(c.recipe, c.phone.Root), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watch(t, Options{}, c.phone, c.leak)
				if !c.phone.Root {
					w = release(t, c.phone, c.leak)
				}
				snapshot := w.order(Snapshot, nil)
				snapshot.Trigger = record.TriggerSuspicious
				first := w.diagnose(snapshot)
				if len(first.Record.Findings) > 0 ||
					!strings.HasSuffix(first.Headline(), " artifacts, for later comparison") || first.Unread {
					t.Errorf("%s: %+v", first.Headline(), first.Record.Findings)
				}
				if files := strings.Count(strings.Join(w.files(first), " "),
					".txt"); !strings.HasPrefix(first.Headline(), fmt.Sprintf("snapshot of %d artifacts,", files)) {
					t.Errorf("%s, want %d files", first.Headline(), files)
				}
				time.Sleep(time.Hour)
				second := w.diagnose(w.order(c.recipe, first.Now))
				d := second.Record
				if d.Device == "" || d.Process != "com.shop" || d.PID != w.process.PID || d.T != 60 ||
					d.Duration <= 0 || d.Trigger != "leak" || d.Kind != kinds[c.recipe] || d.Recipe != c.recipe ||
					!d.Analyzed {
					t.Errorf("%+v", d)
				}
				if want := fmt.Sprintf("artifacts/com.shop/%s-%s", "[0-9]{8}T[0-9]{6}Z",
					kinds[c.recipe]); !regexp.MustCompile("^" + want + "$").MatchString(d.Folder) {
					t.Errorf("folder %s", d.Folder)
				}
				for _, s := range d.Steps {
					if s.File == "" {
						continue
					}
					if _, err := os.Stat(second.folder.in(beside(s.File))); err != nil {
						t.Errorf("%s has no summary: %v", s.Step, err)
					}
				}
				if second.Ended <= first.Ended || second.Ended == 0 {
					t.Errorf("ended at %v and %v", first.Ended, second.Ended)
				}
				for _, f := range d.Findings {
					if whole := f.Type != "mapping" ||
						!strings.HasSuffix(f.Name, " others)"); (len(f.Key) == 40) != whole {
						t.Errorf("%s %s: key %q", f.Type, f.Name, f.Key)
					}
				}
				c.check(t, second)
			})
		})
	}
}

// release is like watch, but for a released app on a user build.
func release(t *testing.T, phone androidsim.Options, leak androidsim.Model) *watched {
	t.Helper()
	phone.Apps = []androidsim.App{{Package: "com.shop", Processes: []androidsim.ProcessSpec{
		{Name: "com.shop", Models: []androidsim.Model{androidsim.Typical(), leak}},
	}}}
	w := &watched{t: t, phone: &localPhone{Phone: androidsim.New(phone)}, responder: New(t.TempDir(), Options{})}
	time.Sleep(time.Minute)
	var err error
	if w.facts, err = capture.ReadFacts(t.Context(), w.phone); err != nil {
		t.Fatal(err)
	}
	w.find()
	return w
}

func (w *watched) files(c *Case) (list []string) {
	for _, s := range c.Record.Steps {
		if s.File != "" {
			list = append(list, s.File)
		}
	}
	return list
}

// mb returns an amount of memory in whole MB.
func mb(n *int64) int64 {
	if n == nil {
		return -1
	}
	return (*n + 1<<19) >> 20
}

// Without an earlier snapshot, the response describes the current state and
// says that this is not growth.
func TestNoEarlierSnapshot(t *testing.T) {
	for recipe, words := range map[string][]string{
		"native":  {"Pss + SwapPss ", "the largest:"},
		"thread":  {"threads: 28", "  "},
		"gpu":     {"TOTAL PSS", "Graphics"},
		"unknown": {"Pss + SwapPss ", "heap dump: memory accumulates: 14 x Chunk, held by Registry.first"},
	} {
		t.Run(recipe, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := watch(t, Options{}, androidsim.Options{API: 34, Root: true, BuildType: "userdebug"})
				c := w.diagnose(w.order(recipe, nil))
				says(t, c.Record.Summary, append(words, "no earlier snapshot to compare with")...)
				for _, f := range c.Record.Findings {
					if f.BytesDelta != nil || f.CountDelta != nil {
						t.Errorf("growth reported without an earlier snapshot: %+v", f)
					}
				}
				if c.Record.Outcome != record.DiagnosisComplete || len(c.Record.Warnings) > 0 {
					t.Errorf("%s, %q", c.Record.Outcome, c.Record.Warnings)
				}
			})
		})
	}
}

// Two diagnoses of one process in the same second have different folders.
func TestSameSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(t.TempDir(), Options{})
		seen := map[string]bool{}
		for i := range 5 {
			c := given(t, r, "thread", nil, nil)
			if seen[c.Record.Folder] || i > 0 && !strings.HasSuffix(c.Record.Folder, fmt.Sprintf("-thread-%d", i+1)) {
				t.Error(c.Record.Folder)
			}
			seen[c.Record.Folder] = true
		}
	})
}

// The folder of a process is directly below artifacts and has a name that every
// file system accepts, whatever the name of the process is.
func TestFolderOfHostileName(t *testing.T) {
	plain := regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	for name, want := range map[string]string{
		"com.shop:push": "com.shop_push-", "../../x": "_.._x-", "..": "_-", ".": "_-", "": "_-", "...": "_-", "/": "_-",
		`C:\x`: "C__x-", ".hidden": "hidden-", "x.": "x-",
		"com.shöp": "com.sh_p-", "a b\n\x1b[2J": "a_b___2J-", strings.Repeat("x", 255): strings.Repeat("x", 71) + "-",
		strings.Repeat("x", 70) + "..y" + strings.Repeat("x", 9): strings.Repeat("x", 70) + "-", "\xff\xfe": "__-",
		"com.shop": "com.shop", "com.shop_2": "com.shop_2", strings.Repeat("x", 80): strings.Repeat("x", 80),
		"com.Shop": "com.Shop-", "a-user10": "a-user10-",
		"con": "_con-", "com1.shop": "_com1.shop-", "com0": "com0", "console": "console", "LPT9.x": "_LPT9.x-",
	} {
		if strings.HasSuffix(want, "-") { // a hash distinguishes names that had to be changed
			want += fmt.Sprintf("%.4x", sha256.Sum256([]byte(name)))
		}
		for _, user := range []int{0, 10} {
			dir := t.TempDir()
			o := Order{Process: capture.Process{Name: name, User: user}, Recipe: "native", Kind: detector.Native}
			f, err := New(dir, Options{}).newFolder(o)
			if err != nil {
				t.Errorf("%q: %v", name, err)
				continue
			}
			parts := strings.Split(f.name, "/")
			whole := want
			if user != 0 {
				whole += "-user10"
			}
			if len(parts) != 3 || parts[0] != Artifacts || parts[1] != whole || !plain.MatchString(parts[2]) ||
				!strings.HasSuffix(parts[2], "Z-native_leak") {
				t.Errorf("%q: %s, want %s", name, f.name, whole)
			}
			if rel, err := filepath.Rel(dir, f.path); err != nil || !filepath.IsLocal(rel) || !inside(f.name) {
				t.Errorf("%q: %s %v", name, f.path, err)
			}
		}
	}
}

// Each process has its own folder, even on a file system that is
// case-insensitive or that removes dots at the end of a name.
func TestFoldersOfSimilarNames(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{
		"com.shop", "com.shop.", "com.shop..", ".com.shop", "com.Shop", "COM.SHOP", "a/b", "a_b", "a:b", "a b", "con",
		"CON", "_con", "nul.x", "com1", "com1.", "", ".", "..", "_", "__",
		strings.Repeat("x", 80), strings.Repeat("x", 81), strings.Repeat("x", 82), "com.shop-user10",
		"a_b-" + fmt.Sprintf("%.4x", sha256.Sum256([]byte("a:b"))), "com.sh\u00f6p", "com.sh\u00fcp"} {
		for _, user := range []int{0, 10} {
			f, err := New(t.TempDir(), Options{}).
				newFolder(Order{Process: capture.Process{Name: name, User: user}, Recipe: "native"})
			if err != nil {
				t.Fatal(err)
			}
			of := strings.ToLower(strings.Split(f.name, "/")[1])
			if other, ok := seen[of]; ok || strings.HasSuffix(of, ".") || len(of) > 90 {
				t.Errorf("%q of user %d has the folder %s, which is invalid or belongs to %q", name, user, of, other)
			}
			seen[of] = fmt.Sprint(name, " of user ", user)
		}
	}
}

// If the device disappears or the run ends during the collection, the artifacts
// collected until then are reported and kept in the requested form.
func TestInterruptedDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, Options{}, androidsim.Options{API: 34, Root: true, BuildType: "userdebug"})
		ctx, cancel := context.WithCancel(t.Context())
		w.phone.before = func(command string) error {
			if strings.Contains(command, "showmap") {
				cancel()
			}
			return ctx.Err()
		}
		c, err := w.responder.Collect(ctx, w.phone, w.facts, w.order("native", nil))
		if err == nil || c == nil || c.Record.Outcome != record.DiagnosisInterrupted || len(c.Record.Warnings) > 0 ||
			!slices.ContainsFunc(c.Record.Steps,
				func(s record.Collected) bool { return slices.Equal(s.Reasons, []string{"interrupted"}) }) {
			t.Fatalf("%v, %+v", err, c)
		}
		equal(t, "files", w.files(c), []string{"status.txt", "smaps.txt"})
		if err := w.responder.Analyze(ctx, c); err != nil {
			t.Fatal(err)
		}
		checkCase(t, w.responder, c)
		says(t, c.Record.Summary, "Pss + SwapPss ")
	})
}

func TestUnknownRecipe(t *testing.T) {
	r := New(t.TempDir(), Options{})
	if c, err := r.Collect(t.Context(), nil, capture.Facts{}, Order{Recipe: "nonsense"}); c != nil || err == nil {
		t.Errorf("%v %v", c, err)
	}
	if entries, err := os.ReadDir(r.dir); err != nil || len(entries) > 0 {
		t.Error(entries, err)
	}
}
