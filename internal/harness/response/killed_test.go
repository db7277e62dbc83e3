package response

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/hostfile"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/reporters/record"
)

// killed returns a case whose run was killed before the analysis: Resume finds
// it in the line about the collection.
func killed(t *testing.T, keep Keep) (*Responder, *Case, []record.Diagnosis) {
	t.Helper()
	r := New(t.TempDir(), Options{Keep: keep})
	c := given(t, r, "java", nil, map[string][]byte{"heap.hprof": dumpWithSecret(t), "meminfo.txt": []byte("nothing")})
	if err := c.write(); err != nil {
		t.Fatal(err)
	}
	return r, c, []record.Diagnosis{c.Record}
}

// resumed resumes the diagnosis of a line and returns the result.
func resumed(t *testing.T, r *Responder, line []record.Diagnosis) record.Diagnosis {
	t.Helper()
	list := slices.Clone(line)
	if warnings, err := Resume(t.Context(), r.dir, Options{}, list); err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	return list[0]
}

// No line records that a report has analyzed a diagnosis: the next report uses
// the results in the folder, even if the dump was removed.
func TestResumeTwice(t *testing.T) {
	for _, keep := range []Keep{Stripped, Raw, Nothing} {
		r, c, line := killed(t, keep)
		first := resumed(t, r, line)
		if !first.Analyzed || len(first.Findings) == 0 || len(first.Warnings) != 1 {
			t.Fatalf("%s: %+v", keep, first)
		}
		files := contents(t, c.folder.path)
		equal(t, string(keep), resumed(t, r, line), first)
		equal(t, string(keep), contents(t, c.folder.path), files)
		if dump := KeptDump(t, c.folder.path); (dump == nil) != (keep == Nothing) {
			t.Errorf("%s: %d bytes of a dump", keep, len(dump))
		}
	}
}

// If a run is killed after it has written the results of a dump and before it
// has removed the dump, the results are kept and the dump is removed.
func TestResumeBeforeTheDumpIsRemoved(t *testing.T) {
	r, c, line := killed(t, Nothing)
	first := resumed(t, r, line)
	text := contents(t, c.folder.path)["diagnosis.json"]
	if err := os.WriteFile(c.folder.in("heap.hprof"), []byte("incomplete dump"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := first
	done.Steps = line[0].Steps // nothing has been removed yet
	if err := (&Case{Record: done, folder: c.folder}).write(); err != nil {
		t.Fatal(err)
	}
	equal(t, "resumed", resumed(t, r, line), first)
	if files := contents(t, c.folder.path); files["heap.hprof"] != nil || !bytes.Equal(files["diagnosis.json"], text) {
		t.Errorf("%d bytes of a dump\n%s", len(files["heap.hprof"]), files["diagnosis.json"])
	}
}

// diagnosis.json is used only if it belongs to that diagnosis and was analyzed.
func TestResumeRejectsForeignRecords(t *testing.T) {
	forged := []record.Finding{{Type: "leak", Name: "forged"}}
	edits := map[string]func(d *record.Diagnosis){
		"another pid":             func(d *record.Diagnosis) { d.PID++ },
		"another process":         func(d *record.Diagnosis) { d.Process += "x" },
		"another user":            func(d *record.Diagnosis) { d.User = 10 },
		"another device":          func(d *record.Diagnosis) { d.Device = "S2" },
		"another time":            func(d *record.Diagnosis) { d.T += 0.001 },
		"another trigger":         func(d *record.Diagnosis) { d.Trigger = record.TriggerMark },
		"another recipe":          func(d *record.Diagnosis) { d.Recipe = "native" },
		"another folder":          func(d *record.Diagnosis) { d.Folder = "artifacts/x/y" },
		"another schema":          func(d *record.Diagnosis) { d.Schema = "leakgate.run/1" },
		"not analyzed":            func(d *record.Diagnosis) { d.Analyzed = false },
		"fewer steps":             func(d *record.Diagnosis) { d.Steps = d.Steps[1:] },
		"other step":              func(d *record.Diagnosis) { d.Steps[0].Step = "smaps" },
		"file outside the folder": func(d *record.Diagnosis) { d.Steps[0].File = "../../../victim" },
		"too large for a record":  func(d *record.Diagnosis) { d.Summary = []string{strings.Repeat("x", maxRecord)} },
		"too large for a line":    func(d *record.Diagnosis) { d.Summary = []string{strings.Repeat("x", maxWritten)} },
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			r, c, line := killed(t, Stripped)
			done := line[0]
			done.Schema, done.Analyzed, done.Findings, done.Steps = record.DiagnosisSchema, true, forged,
				slices.Clone(done.Steps)
			write := func() {
				text, err := json.Marshal(done)
				if err == nil {
					err = os.WriteFile(c.folder.in("diagnosis.json"), text, 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			write()
			if is := resumed(t, r, line); !is.Analyzed || len(is.Findings) != 1 || is.Findings[0].Name != "forged" {
				t.Fatalf("the unchanged diagnosis.json was not used: %+v", is)
			}
			edit(&done)
			write()
			if is := resumed(t, r, line); !is.Analyzed || len(is.Findings) == 0 || is.Findings[0].Name == "forged" {
				t.Errorf("%+v", is)
			}
		})
	}
	for name, put := range map[string]func(path string) error{
		"invalid JSON": func(path string) error { return os.WriteFile(path, []byte(`{"schema":`), 0o644) },
		"nothing":      func(string) error { return nil },
		"a folder":     func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			r, c, line := killed(t, Stripped)
			path := c.folder.in("diagnosis.json")
			if err := errors.Join(os.Remove(path), put(path)); err != nil {
				t.Fatal(err)
			}
			list := slices.Clone(line)
			_, err := Resume(t.Context(), r.dir, Options{}, list) // a folder cannot be overwritten
			if (err != nil) != (name == "a folder") || !list[0].Analyzed || len(list[0].Findings) == 0 {
				t.Errorf("%v, %+v", err, list[0])
			}
		})
	}
}

// Ctrl-C before the analyses leaves every dump for the next report, whatever
// the keep mode.
func TestResumeInterrupted(t *testing.T) {
	for _, keep := range []Keep{Stripped, Raw, Nothing} {
		r, c, line := killed(t, keep)
		before := contents(t, c.folder.path)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		list := slices.Clone(line)
		if _, err := Resume(ctx, r.dir, Options{}, list); !errors.Is(err, context.Canceled) || list[0].Analyzed {
			t.Errorf("%s: %v, %+v", keep, err, list[0])
		}
		equal(t, string(keep), contents(t, c.folder.path), before)

		// If the analysis of a dump is interrupted, the dump is analyzed later;
		// until then it is kept stripped, or whole if that is requested.
		ctx, cancel = context.WithCancel(t.Context())
		memory := func() int64 { cancel(); return 0 }
		if _, err := Resume(ctx, r.dir, Options{Memory: memory}, list); !errors.Is(err, context.Canceled) ||
			list[0].Analyzed {
			t.Errorf("%s: %v, %+v", keep, err, list[0])
		}
		dump := KeptDump(t, c.folder.path)
		if holds(dump, secret) != (keep == Raw) || dump == nil {
			t.Errorf("%s: %d bytes of a dump", keep, len(dump))
		}
		// This includes a diagnosis of an interrupted run whose line already
		// lists the growth.
		list[0].Findings = append(list[0].Findings, record.Finding{Type: "meminfo", Name: "from the interrupted run"})
		first := resumed(t, r, list)
		if !first.Analyzed || len(found(&Case{Record: first}, "leak")) != 1 ||
			len(found(&Case{Record: first}, "meminfo")) > 0 {
			t.Errorf("%s: %+v", keep, first)
		}
		for i, w := range first.Warnings {
			if slices.Contains(first.Warnings[:i], w) {
				t.Errorf("%s: reported twice: %s", keep, w)
			}
		}
		equal(t, string(keep), resumed(t, r, line), first)
	}
}

// left returns the sets of files of a dump that a killed run may leave behind:
// the dump as pulled, the dump as kept, or both, with the packed file complete
// or truncated.
func left(t *testing.T, dump []byte) map[string]map[string][]byte {
	t.Helper()
	packed := packedDump(t, dump)
	return map[string]map[string][]byte{
		"heap.hprof":                      {"heap.hprof": dump},
		"heap.hprof.zst":                  {"heap.hprof.zst": packed},
		"both":                            {"heap.hprof": dump, "heap.hprof.zst": packed},
		"both, the packed dump truncated": {"heap.hprof": dump, "heap.hprof.zst": packed[:len(packed)/2]},
	}
}

func put(t *testing.T, f folder, files map[string][]byte) {
	t.Helper()
	if err := os.MkdirAll(f.path, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(f.in(name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// If a run is killed after a dump was pulled and before a line about it was
// written, the dump is left in the form that is to be kept, or stripped if that
// form is unknown.
func TestResumeOfADumpWithoutALine(t *testing.T) {
	dump := dumpWithSecret(t)
	leaks := leaksOf(t, dump)
	written := func(keep Keep, analyzed bool, note string) *record.Diagnosis {
		return &record.Diagnosis{
			Keep: string(keep), Analyzed: analyzed, Steps: []record.Collected{{Step: heapStep, Note: note}},
		}
	}
	for name, c := range map[string]struct {
		record *record.Diagnosis
		dump   []byte
		// stays is what is expected to remain: the whole dump, a stripped dump,
		// nothing, or the previous files unchanged.
		stays    string
		warnings string
	}{
		"no record": {
			nil, dump, "stripped", "heap.hprof.zst: " + zeroed + "; leakgate analyze shows its content",
		},
		"stripped": {written(Stripped, false, ""), dump, "stripped", zeroed},
		"raw": {
			written(Raw, false, ""), dump, "all", "heap.hprof.zst: kept as a whole (diagnose.keep: raw)",
		},
		"none":             {written(Nothing, false, ""), dump, "nothing", "removed (diagnose.keep: none)"},
		"none, analyzed":   {written(Nothing, true, ""), dump, "nothing", "removed after its analysis"},
		"analyzed":         {written(Stripped, true, ""), dump, "untouched", ""},
		"raw, analyzed":    {written(Raw, true, ""), dump, "untouched", ""},
		"already stripped": {written(Stripped, false, zeroed), dump, "untouched", ""},
		"no keep mode":     {written("all", false, ""), dump, "stripped", ""},
		"no dump":          {nil, []byte("Error: " + secret), "nothing", "removed: it could not be stripped"},
	} {
		for form, files := range left(t, c.dump) {
			t.Run(name+", "+form, func(t *testing.T) {
				dir := t.TempDir()
				f := folder{name: "artifacts/com.shop/x", path: filepath.Join(dir, "artifacts", "com.shop", "x")}
				put(t, f, files)
				if c.record != nil {
					d := *c.record
					d.Folder, d.Steps = f.name, slices.Clone(d.Steps)
					d.Steps[0].File = slices.Min(slices.Collect(maps.Keys(files)))
					if err := (&Case{Record: d, folder: f}).write(); err != nil {
						t.Fatal(err)
					}
				}
				warnings, err := Resume(t.Context(), dir, Options{},
					[]record.Diagnosis{{Folder: "artifacts/com.shop/y"}})
				if err != nil || (len(warnings) == 0) != (c.stays == "untouched") || c.warnings != "" &&
					!strings.Contains(errors.Join(warnings...).Error(), c.warnings) {
					t.Errorf("%v, %v", warnings, err)
				}
				if c.stays == "untouched" {
					is := contents(t, f.path)
					delete(is, "diagnosis.json")
					equal(t, "files", is, files)
					return
				}
				kept := KeptDump(t, f.path)
				switch {
				case (kept == nil) != (c.stays == "nothing"), holds(kept, secret) != (c.stays == "all"):
					t.Errorf("%d bytes of %d", len(kept), len(c.dump))
				case c.stays == "all":
					equal(t, "kept", kept, dump)
				case c.stays == "stripped":
					equal(t, "analyzed", leaksOf(t, kept), leaks)
				}
				// A diagnosis that is recorded as analyzed stays unchanged.
				put(t, f, files)
				if warnings, err := Resume(t.Context(), dir, Options{},
					[]record.Diagnosis{{Folder: f.name, Analyzed: true}}); err != nil || len(warnings) > 0 {
					t.Error(warnings, err)
				}
				is := contents(t, f.path)
				for name, content := range files {
					equal(t, name, is[name], content)
				}
			})
		}
	}
}

// If the run is killed at any point while it packs a dump, the line of the
// diagnosis names the dump as it was pulled. The next report returns the same
// result as if the run had not been killed, and leaves only one dump.
func TestResumeOfADumpThatWasBeingPacked(t *testing.T) {
	for _, keep := range []Keep{Stripped, Raw, Nothing} {
		r, c, line := killed(t, keep)
		want := resumed(t, r, line)
		dump := KeptDump(t, c.folder.path)
		if len(found(&Case{Record: want}, "leak")) != 1 || (dump == nil) != (keep == Nothing) {
			t.Fatalf("%s: %+v", keep, want)
		}
		for form, files := range left(t, dumpWithSecret(t)) {
			t.Run(string(keep)+", "+form, func(t *testing.T) {
				r, c, line := killed(t, keep)
				if err := os.Remove(c.folder.in("heap.hprof")); err != nil {
					t.Fatal(err)
				}
				put(t, c.folder, files)
				put(t, c.folder, map[string][]byte{".strip-123": []byte(secret)})
				line[0].Folder, line[0].Analysis = c.folder.name, 0
				is := resumed(t, r, line)
				equal(t, "findings", is.Findings, want.Findings)
				equal(t, "steps", is.Steps, want.Steps)
				equal(t, "warnings", is.Warnings, want.Warnings)
				equal(t, "dump", KeptDump(t, c.folder.path), dump)
				if names := contents(t, c.folder.path); names[".strip-123"] != nil || string(keep) != string(Raw) &&
					holds(bytes.Join(slices.Collect(maps.Values(names)), nil), secret) {
					t.Errorf("left: %v", slices.Sorted(maps.Keys(names)))
				}
			})
		}
	}
}

// A truncated packed dump is not mistaken for a complete dump. A packed dump
// that is damaged, or too large when unpacked, is rejected and leaves no
// temporary file.
func TestResumeOfTruncatedPackedDump(t *testing.T) {
	// The file has several blocks of 128 KiB, of which the first can be
	// unpacked.
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	h.Hold("com.shop.Mail", "drafts", h.ArrayList(h.String(secret), h.Chars(strings.Repeat(secret, 10_000))).Ref)
	dump := dumped(t, h, 0)
	whole := packedDump(t, dump)
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-1] ^= 0x55 // of the checksum
	// This is a frame with the beginning of a dump, followed by a frame without
	// a size whose blocks of four bytes each unpack to 128 KiB of zeros (RFC
	// 8878, 3.1.1).
	bomb := append(packedDump(t, dump[:1000]),
		append([]byte("\x28\xb5\x2f\xfd\x00\x38"), bytes.Repeat([]byte{0x02, 0x00, 0x10, 0x00}, 4096)...)...)
	for name, x := range map[string]struct {
		packed []byte
		warned string
		// stays reports whether a part of a dump is kept when dumps are
		// stripped.
		stays bool
	}{
		"truncated": {whole[:len(whole)-100], "its zstd data ends early", true},
		"damaged":   {damaged, "damaged zstd data", false},
		"a bomb":    {bomb, "unpack heap.hprof.zst: refused: more than 8.0 MB", false},
		"declared":  {declaring(t, 5<<30), "unpack heap.hprof.zst: refused: more than 8.0 MB", false},
	} {
		for _, keep := range []Keep{Stripped, Raw} {
			t.Run(name+" "+string(keep), func(t *testing.T) {
				temp := t.TempDir()
				t.Setenv("TMPDIR", temp)
				r, c, line := killed(t, keep)
				if err := os.Remove(c.folder.in("heap.hprof")); err != nil {
					t.Fatal(err)
				}
				put(t, c.folder, map[string][]byte{"heap.hprof.zst": x.packed})
				if _, err := Resume(t.Context(), r.dir, Options{maxDump: 8 << 20}, line); err != nil {
					t.Fatal(err)
				}
				d := line[0]
				says(t, d.Warnings, x.warned)
				is := contents(t, c.folder.path)
				if analyzed := is["analysis.json"] != nil; analyzed != x.stays || analyzed &&
					!bytes.Contains(is["analysis.json"], []byte(`"truncated": true`)) {
					t.Errorf("analyzed: %v, %+v", analyzed, d)
				}
				switch kept := is["heap.hprof.zst"]; {
				case keep == Raw && !bytes.Equal(kept, x.packed):
					t.Errorf("kept %d of the %d bytes of the raw dump", len(kept), len(x.packed))
				case keep == Stripped && (kept != nil) != x.stays, keep == Stripped && x.stays &&
					holds(KeptDump(t, c.folder.path), secret):
					t.Errorf("kept %d bytes of the stripped dump, steps %+v", len(kept), d.Steps)
				}
				if files := contents(t, temp); len(files) > 0 {
					t.Errorf("temporary files: %d", len(files))
				}
			})
		}
	}
}

// declaring returns a zstd frame of a few bytes whose header declares size
// bytes (RFC 8878, 3.1.1.1).
func declaring(t *testing.T, size uint64) []byte {
	t.Helper()
	head := binary.LittleEndian.AppendUint64([]byte("\x28\xb5\x2f\xfd\xc0\x38"), size)
	return append(head, 0x03, 0x00, 0x10, 0x00)
}

// If packing fails, dumps that are to be kept as a whole stay unpacked. Dumps
// that are to be stripped are removed, because they still contain everything.
// No partial file is left.
func TestPackFails(t *testing.T) {
	dump := dumpWithSecret(t)
	for _, keep := range []Keep{Stripped, Raw} {
		r := New(t.TempDir(), Options{Keep: keep})
		c := given(t, r, "java", nil, map[string][]byte{"heap.hprof": dump})
		if err := os.MkdirAll(c.folder.in("heap.hprof.zst/x"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := r.Analyze(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		is, err := os.ReadFile(c.folder.in("heap.hprof"))
		step := c.Record.Steps[0]
		if keep == Raw {
			if !bytes.Equal(is, dump) || step.File != "heap.hprof" || step.Bytes != int64(len(dump)) {
				t.Errorf("%d bytes, %v, %+v", len(is), err, step)
			}
			says(t, c.Record.Warnings, "compress heap.hprof: ", "; it is kept unchanged")
		} else {
			if !errors.Is(err, fs.ErrNotExist) || step.File != "" || step.Bytes != 0 {
				t.Errorf("%d bytes, %v, %+v", len(is), err, step)
			}
			equal(t, "note", step.Note, "removed: it could not be stripped")
			says(t, c.Record.Warnings, "strip heap.hprof: ")
		}
		if hidden, err := filepath.Glob(c.folder.in(".*")); err != nil || len(hidden) > 0 ||
			len(found(c, "leak")) != 1 {
			t.Errorf("%v, %v, %+v", hidden, err, c.Record)
		}
	}
}

// fullDisk is a writer that fails once it has accepted left bytes.
type fullDisk struct{ left int }

func (d *fullDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.left)
	if d.left -= n; n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// If the disk becomes full at any point while a dump is packed, the incomplete
// file is not mistaken for a packed dump.
func TestPackOnAFullDisk(t *testing.T) {
	data := dumpWithSecret(t)
	in := &dump{ReaderAt: bytes.NewReader(data), size: int64(len(data))}
	for _, keep := range []Keep{Stripped, Raw} {
		r := New("", Options{Keep: keep})
		var all bytes.Buffer
		if err := r.packInto(&all, in); err != nil {
			t.Fatal(err)
		}
		for _, room := range []int{0, 1, all.Len() / 2, all.Len() - 1} {
			if err := r.packInto(&fullDisk{room}, in); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s: space for only %d of %d bytes: got error %v, want ENOSPC", keep, room, all.Len(), err)
			}
		}
		if err := r.packInto(&fullDisk{all.Len()}, in); err != nil {
			t.Errorf("%s: %v", keep, err)
		}
	}
}

// A run directory is untrusted: links in it are not followed.
func TestResumeFollowsNoLink(t *testing.T) {
	dump := dumpWithSecret(t)
	told := func(keep Keep, file string) []record.Diagnosis {
		step := []record.Collected{{Step: heapStep, File: file}, {Step: "logcat", File: "logcat.txt"}}
		return []record.Diagnosis{
			{Folder: "artifacts/com.shop/x", Process: "com.shop", Recipe: "java", Keep: string(keep), Steps: step},
		}
	}
	for name, link := range map[string]string{
		"artifacts": "artifacts", "process": "artifacts/com.shop", "folder": "artifacts/com.shop/x",
		"files": "artifacts/com.shop/x/heap.hprof", "packed": "artifacts/com.shop/x/heap.hprof.zst",
	} {
		dump := dump
		if name == "packed" {
			dump = packedDump(t, dump)
		}
		for _, keep := range []Keep{Stripped, Raw, Nothing} {
			t.Run(name+" "+string(keep), func(t *testing.T) {
				outside, dir := filepath.Join(t.TempDir(), "outside"), t.TempDir()
				rest := strings.TrimPrefix(strings.TrimPrefix("artifacts/com.shop/x/heap.hprof", link), "/")
				target := filepath.Join(outside, filepath.FromSlash(rest))
				files := map[string][]byte{target: dump}
				if rest != "" {
					files[filepath.Join(filepath.Dir(target), "logcat.txt")] = []byte("mine")
				} else {
					target = outside
					files = map[string][]byte{outside: dump}
				}
				for path, text := range files {
					if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
						os.WriteFile(path, text, 0o600)); err != nil {
						t.Fatal(err)
					}
				}
				at := filepath.Join(dir, filepath.FromSlash(link))
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(outside, at); err != nil {
					recorded.Missing(t, "needs symbolic links: %v", err)
				}
				// This case is tested both with and without a line in
				// samples.ndjson.
				for _, list := range [][]record.Diagnosis{told(keep, "heap.hprof"), told(keep, "heap.hprof.zst"), nil} {
					if _, err := Resume(t.Context(), dir, Options{}, list); err != nil {
						t.Error(err)
					}
					for path, text := range files {
						if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, text) {
							t.Fatalf("%s has %d bytes of %d, %v", path, len(is), len(text), err)
						}
					}
					var inside []string
					err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
						if err == nil && e.Name() == "analysis.json" {
							inside = append(inside, p)
						}
						return err
					})
					if err != nil || len(inside) > 0 {
						t.Errorf("got analyses %q and error %v, want none", inside, err)
					}
				}
				if n := len(contents(t, filepath.Dir(target))); rest != "" && n != 2 {
					t.Errorf("%d files outside the run directory, want 2", n)
				}
			})
		}
	}
}

// Before each request, the folder already records which process it belongs to
// and what may remain in it, because a killed run leaves no line.
func TestKeepIsWrittenFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, Options{Keep: Raw}, androidsim.Options{Root: true})
		var asked atomic.Int64 // a dump is polled while am writes it
		w.phone.before = func(string) error {
			asked.Add(1)
			names, err := filepath.Glob(filepath.Join(w.responder.dir, Artifacts, "*", "*"))
			if err != nil || len(names) != 1 {
				t.Fatal(names, err)
			}
			name, err := filepath.Rel(w.responder.dir, names[0])
			if err != nil {
				t.Fatal(err)
			}
			d, err := folder{name: filepath.ToSlash(name), path: names[0]}.read()
			if err != nil || d.Keep != string(Raw) || d.Process != "com.shop" || d.PID != w.process.PID || d.Analyzed ||
				d.Outcome != record.DiagnosisInterrupted {
				t.Errorf("%v, %+v", err, d)
			}
			return nil
		}
		if _, err := w.responder.Collect(t.Context(), w.phone, w.facts, w.order("java", nil)); err != nil ||
			asked.Load() < 8 {
			t.Error(asked.Load(), err)
		}
	})
}

// A run writes no absolute path of the host, whatever operation fails.
func TestHostPathsAreRedacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run")
		sep := string(filepath.Separator)
		for text, want := range map[string]string{
			"open " + dir + sep + "a" + sep + "b: no":      "open a" + sep + "b: no",
			"mkdir " + dir + ": no":                        "mkdir .: no",
			"rename " + dir + sep + "a " + dir + sep + "b": "rename a b",
			"no path in this text":                         "no path in this text",
		} {
			equal(t, text, hostfile.NewPaths(dir).Text(text), want)
			equal(t, text, hostfile.NewPaths(dir+sep).Text(text), want)
		}
		for _, dir := range []string{"", ".", "run", sep} {
			equal(t, dir, hostfile.NewPaths(dir).Text("a/run/b . /x"), "a/run/b . /x")
		}

		w := watch(t, Options{}, androidsim.Options{Root: true})
		w.responder.dir = dir
		// The folder disappears while files are written to it.
		w.phone.before = func(string) error { return os.RemoveAll(filepath.Join(dir, Artifacts)) }
		c, err := w.responder.Collect(t.Context(), w.phone, w.facts, w.order("java", nil))
		if c == nil || !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), dir) {
			t.Fatal(c, err)
		}
		checkHostless(t, dir, c)
		w.phone.before = nil
		// The folder disappears before it is read: a dump can be neither
		// analyzed nor stripped.
		c = given(t, w.responder, "java", nil,
			map[string][]byte{"heap.hprof": dumpWithSecret(t), "meminfo.txt": []byte("x"), "logcat.txt": []byte("x")})
		if err := os.RemoveAll(filepath.Join(dir, Artifacts)); err != nil {
			t.Fatal(err)
		}
		if err := w.responder.Analyze(t.Context(), c); !errors.Is(err, fs.ErrNotExist) ||
			strings.Contains(err.Error(), dir) {
			t.Error(err)
		}
		says(t, c.Record.Summary, "cannot analyze the dump: ")
		if len(c.Record.Warnings) < 3 {
			t.Errorf("%q", c.Record.Warnings)
		}
		checkHostless(t, dir, c)
		// The folder cannot be created.
		if err := os.WriteFile(filepath.Join(dir, Artifacts), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := w.responder.Collect(t.Context(), w.phone, w.facts,
			Order{Process: capture.Process{Name: "com.shop"}, Recipe: "java"}); err == nil ||
			strings.Contains(err.Error(), dir) {
			t.Error(err)
		}
	})
}

func checkHostless(t *testing.T, dir string, c *Case) {
	t.Helper()
	text, err := json.Marshal(c.Record)
	if err != nil || bytes.Contains(text, []byte(filepath.Dir(dir))) {
		t.Errorf("%v: %s", err, text)
	}
}
