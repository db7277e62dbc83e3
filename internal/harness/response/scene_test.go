package response

//unit:sleep runs in the bubble of its caller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// localPhone is a simulated phone that is called directly, not through adb.
type localPhone struct {
	*androidsim.Phone
	// before, if not nil, is called before each command and may return its
	// error.
	before func(command string) error
	// missing is the name of a program that is missing on the phone.
	missing string
}

func (d *localPhone) Serial() string { return d.Identity().Serial }

func (d *localPhone) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	if d.before != nil {
		if err := d.before(command); err != nil {
			return -1, err
		}
	}
	if d.missing != "" && strings.HasPrefix(command, d.missing+" ") {
		_, err := fmt.Fprintf(stderr, "/system/bin/sh: %s: inaccessible or not found\n", d.missing)
		return 127, err
	}
	exit := d.Phone.Shell(ctx, command, strings.NewReader(""), stdout, stderr)
	switch {
	case ctx.Err() != nil:
		return -1, ctx.Err()
	case exit == adbd.NoExit:
		return -1, errors.New("connection ended before the exit status")
	}
	return exit, nil
}

func (d *localPhone) Pull(ctx context.Context, remote string, w io.Writer) (int64, error) {
	f, err := d.Open(remote)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n, err := io.Copy(w, f)
	return n, errors.Join(err, ctx.Err())
}

func (d *localPhone) Push(context.Context, io.Reader, string, fs.FileMode) error {
	return errors.ErrUnsupported
}

// watched is a process of a phone as a run observes it, with the responder of
// that run.
type watched struct {
	t         *testing.T
	phone     *localPhone
	facts     capture.Facts
	process   capture.Process
	level     capture.Level
	responder *Responder
}

// watch creates a phone with the app com.shop, one of whose processes behaves
// according to models.
func watch(t *testing.T, o Options, phone androidsim.Options, models ...androidsim.Model) *watched {
	t.Helper()
	phone.Apps = []androidsim.App{{Package: "com.shop", Debuggable: true, Processes: []androidsim.ProcessSpec{
		{
			Name: "com.shop", RestartAfter: 5 * time.Second,
			Models: append([]androidsim.Model{androidsim.Typical()}, models...),
		},
	}}}
	w := &watched{t: t, phone: &localPhone{Phone: androidsim.New(phone)}, responder: New(t.TempDir(), o)}
	time.Sleep(time.Minute)
	var err error
	if w.facts, err = capture.ReadFacts(t.Context(), w.phone); err != nil {
		t.Fatal(err)
	}
	w.find()
	return w
}

// find returns the process that is running now.
func (w *watched) find() {
	w.t.Helper()
	found, err := capture.FindProcesses(w.t.Context(), w.phone, []capture.Pattern{"com.shop"})
	if err != nil || len(found.Processes) != 1 {
		w.t.Fatal(found, err)
	}
	probe, err := capture.NewLevels(w.phone, w.facts).Probe(w.t.Context(), found.Processes[0])
	if err != nil {
		w.t.Fatal(err)
	}
	w.process, w.level = found.Processes[0], probe.Level
}

// kinds maps each recipe to its kind of leak.
var kinds = map[string]detector.LeakKind{
	"java": detector.Java, "native": detector.Native, "gpu": detector.GPU, "thread": detector.Thread,
	"unknown": detector.Unknown,
}

// order returns the Order to diagnose the process with a recipe.
func (w *watched) order(recipe string, before *MemorySnapshot) Order {
	return Order{
		Process: w.process, Level: w.level, Recipe: recipe, Kind: kinds[recipe], Trigger: record.TriggerLeak, T: 60,
		Before: before,
	}
}

// diagnose collects and analyzes the artifacts, and checks the invariants that
// hold for every case.
func (w *watched) diagnose(o Order) *Case {
	w.t.Helper()
	c, err := w.responder.Collect(w.t.Context(), w.phone, w.facts, o)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.responder.Analyze(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
	checkCase(w.t, w.responder, c)
	return c
}

// checkCase checks an analyzed case: the content of the folder, the permissions
// that other users have, and the size of the record.
func checkCase(t testing.TB, r *Responder, c *Case) {
	t.Helper()
	want, artifacts := map[string]bool{"diagnosis.json": true, "summary.txt": true}, map[string]bool{"heap.hprof": true}
	for _, s := range c.Record.Steps {
		if s.File != "" {
			want[s.File], artifacts[s.File] = true, true
		}
	}
	for name, text := range contents(t, c.folder.path) {
		if artifact, ok := strings.CutSuffix(name, ".summary.txt"); ok && artifacts[artifact] {
			checkText(t, name, text)
			continue
		}
		if told := c.Record.Heap != nil && name == c.Record.Heap.Summary; !want[name] && name != "analysis.json" &&
			!told {
			t.Errorf("unexpected file %s in the folder", name)
		}
		delete(want, name)
		info, err := os.Stat(c.folder.in(name))
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s is %v", name, mode)
		}
	}
	for _, s := range c.Record.Steps {
		if info, err := os.Stat(c.folder.in(s.File)); s.File != "" && (err != nil || info.Size() != s.Bytes) {
			t.Errorf("%s: %d bytes reported, %v, %v", s.File, s.Bytes, info, err)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	checkText(t, "summary.txt", contents(t, c.folder.path)["summary.txt"])
	checkRecord(t, c.Record)
	checkWritten(t, c)
}

// checkText checks that each line of a string is printable.
func checkText(t testing.TB, name string, content []byte) {
	t.Helper()
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSuffix(line, "\n"); line != text.Printable(line) {
			t.Errorf("%s: %q", name, line)
		}
	}
}

// checkRecord checks that a record fits into a line of samples.ndjson and that
// each of its strings fits into one line, whatever a device has sent.
func checkRecord(t testing.TB, d record.Diagnosis) {
	t.Helper()
	encoded, err := json.Marshal(d)
	if err != nil || len(encoded) > 900_000 {
		t.Errorf("a record of %d bytes, %v", len(encoded), err)
	}
	texts := slices.Concat(d.Summary, d.Warnings)
	for _, s := range d.Steps {
		texts = append(append(texts, s.Note, s.Purpose), s.Reasons...)
	}
	for _, f := range d.Findings {
		texts = append(append(texts, f.Name), f.Trace...)
	}
	for _, line := range texts {
		// A line of a trace may contain up to four texts: the names of a class
		// and its owner, and a string for each.
		if line != text.Printable(line) || utf8.RuneCountInString(line) > 4*maxText {
			t.Errorf("%d characters: %.100q", utf8.RuneCountInString(line), line)
		}
	}
	if len(d.Summary) > maxLines || len(d.Warnings) > maxWarnings || d.Findings == nil || d.Summary == nil ||
		d.Warnings == nil {
		t.Errorf("%d lines, %d warnings, findings %v", len(d.Summary), len(d.Warnings), d.Findings)
	}
}

// checkWritten checks that diagnosis.json contains the record.
func checkWritten(t testing.TB, c *Case) {
	t.Helper()
	text, err := os.ReadFile(c.folder.in("diagnosis.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got record.Diagnosis
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := c.Record
	want.Schema = record.DiagnosisSchema
	a, aerr := json.Marshal(got)
	b, berr := json.Marshal(want)
	if aerr != nil || berr != nil || !bytes.Equal(a, b) {
		t.Errorf("diagnosis.json is\n%s\nwant\n%s", a, b)
	}
	if summary := contents(t,
		c.folder.path)["summary.txt"]; string(summary) != strings.Join(append(slices.Clone(want.Summary), ""), "\n") &&
		len(want.Summary) > 0 && want.Recipe != "growth" {
		t.Errorf("summary.txt is\n%s\nwant\n%v", summary, want.Summary)
	}
}

// contents returns the files of a folder, including hidden ones.
func contents(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, e := range entries {
		if out[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// KeptDump returns the unpacked content of the heap dump that a folder keeps,
// or nil if there is none. It fails the test if the dump is kept unpacked.
func KeptDump(t testing.TB, dir string) []byte {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(dir, "heap.hprof")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an unpacked dump: %v", err)
	}
	path := filepath.Join(dir, "heap.hprof.zst")
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	f, err := spool.Open(t.Context(), path, nil, spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dump, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil || f.Format != spool.Zstd || f.Truncated != nil || f.Damage != nil {
		t.Errorf("%v, %v, %v, %v", f.Format, err, f.Truncated, f.Damage)
	}
	return dump
}

// packedDump returns the dump that a folder keeps, in packed form.
func packedDump(t testing.TB, dump []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := spool.Pack(&b, int64(len(dump)))
	if err == nil {
		_, err = w.Write(dump)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// given returns a case with arbitrary artifacts, for the process com.shop with
// pid 4321.
func given(t testing.TB, r *Responder, recipe string, before *MemorySnapshot, files map[string][]byte) *Case {
	t.Helper()
	o := Order{
		Process: capture.Process{Name: "com.shop", PID: 4321, Start: 77}, Recipe: recipe, Trigger: record.TriggerLeak,
		Before: before,
	}
	dir, err := r.newFolder(o)
	if err != nil {
		t.Fatal(err)
	}
	c := &Case{Order: o, folder: dir, Record: record.Diagnosis{
		Device: "S1", Process: o.Process.Name, PID: o.Process.PID, Trigger: o.Trigger, Recipe: recipe, Folder: dir.name,
		Keep:    string(r.options.Keep),
		Outcome: record.DiagnosisComplete, Steps: []record.Collected{}, Findings: []record.Finding{},
		Summary: []string{}, Warnings: []string{},
	}}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		step, _, _ := strings.Cut(file, ".")
		if err := os.WriteFile(dir.in(file), files[file], 0o600); err != nil {
			t.Fatal(err)
		}
		c.Record.Steps = append(c.Record.Steps,
			record.Collected{Step: step, Outcome: "complete", File: file, Bytes: int64(len(files[file]))})
	}
	return c
}

// analyzed is like given, but also analyzes and checks the case.
func analyzed(t testing.TB, r *Responder, recipe string, before *MemorySnapshot, files map[string][]byte) *Case {
	t.Helper()
	c := given(t, r, recipe, before, files)
	if err := r.Analyze(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	checkCase(t, r, c)
	return c
}

// found returns the findings of one type.
func found(c *Case, what string) (list []record.Finding) {
	for _, f := range c.Record.Findings {
		if f.Type == what {
			list = append(list, f)
		}
	}
	return list
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// says checks that the lines contain all the given words.
func says(t testing.TB, lines []string, words ...string) {
	t.Helper()
	text := strings.Join(lines, "\n")
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}
