package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// recordedDump is a recorded heap dump with the values of its manifest.
type recordedDump struct {
	file, format string
	idSize       int
	instances    int64
	objectArrays int64
	primitives   int64
	classes      int64 // 0: unknown
	heaps        map[string]int64
	bytes        int64 // size after decompression, for a compressed dump
}

// recordedDumps are the dumps in the directory hprof, with the numbers of its
// MANIFEST.md.
var recordedDumps = []recordedDump{
	{file: "ahat-O.hprof", format: "JAVA PROFILE 1.0.3", idSize: 4, instances: 51470, objectArrays: 1512,
		primitives: 27335, classes: 2148, heaps: map[string]int64{"app": 20875, "image": 61590}},
	{file: "ahat-RI.hprof", format: "JAVA PROFILE 1.0.2", idSize: 4, instances: 22454, objectArrays: 740,
		primitives: 1348, classes: 476},
	{file: "leak_service_binder.hprof", format: "JAVA PROFILE 1.0.3", idSize: 4, instances: 25183, objectArrays: 1980,
		primitives: 13610, classes: 3645, heaps: map[string]int64{"zygote": 40983, "app": 3435}},
	{file: "hprof-32.bin", format: "JAVA PROFILE 1.0.1", idSize: 4, instances: 1293, objectArrays: 423, primitives: 849,
		classes: 361},
	{file: "hprof-64.bin", format: "JAVA PROFILE 1.0.1", idSize: 8, instances: 4149, objectArrays: 748,
		primitives: 2891, classes: 474},
	{file: "pyhprof-example-java.hprof", format: "JAVA PROFILE 1.0.2", idSize: 8, instances: 14484, objectArrays: 1500,
		primitives: 7977},
	{file: "mat-sun_jdk6_32bit.hprof", format: "JAVA PROFILE 1.0.1", idSize: 4, instances: 8664, objectArrays: 2431,
		primitives: 3822},
	{file: "mat-sun_jdk6_18_x32.hprof", format: "JAVA PROFILE 1.0.1", idSize: 4},
	{file: "mat-sun_jdk6_30_x64_compressedOops.hprof", format: "JAVA PROFILE 1.0.1", idSize: 8},
	{file: "mat-openjdk_jdk11_04_x64.hprof.gz", format: "JAVA PROFILE 1.0.2", idSize: 8, instances: 129433,
		objectArrays: 8566, primitives: 48038, classes: 1912, bytes: 14080024},
}

// fed runs one command line with the given standard input.
func fed(t *testing.T, in io.Reader, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = callWith(in, &o, &e, args...)
	return code, o.String(), e.String()
}

// findings holds the parts of a report that these tests check.
type findings struct {
	Dump       analysis.Dump
	Classes    []analysis.Class
	Dominators []analysis.Dominator
	Warnings   []string
}

// row returns the row of a class, or an empty row if there is none.
func (r *findings) row(class string) analysis.Class {
	for _, c := range r.Classes {
		if c.Class == class {
			return c
		}
	}
	return analysis.Class{}
}

// analyzed returns the report of a dump and requires that the analysis prints
// nothing on stderr.
func analyzed(t *testing.T, args ...string) findings {
	t.Helper()
	var r findings
	answered(t, &r, append([]string{"analyze", "--json"}, args...)...)
	return r
}

// lookedUp returns the output of the `objects` command.
func lookedUp(t *testing.T, args ...string) analysis.Objects {
	t.Helper()
	var list analysis.Objects
	answered(t, &list, append([]string{"objects", "--json"}, args...)...)
	return list
}

// ran runs one command line in the real binary, which reads a large dump faster
// than a test with the race detector.
func ran(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	ctx := minute(t)
	cmd := program(t, ctx, nil, args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	_ = cmd.Run() // the exit code reports the error
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

func answered(t *testing.T, value any, args ...string) {
	t.Helper()
	code, out, errOut := ran(t, args...)
	if code != exitOK || errOut != "" {
		t.Fatalf("%.200q: exit %d, %.300s", args, code, errOut)
	}
	dec := json.NewDecoder(strings.NewReader(out))
	if err := dec.Decode(value); err != nil {
		t.Fatalf("%.200q: %v", args, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		t.Fatalf("%.200q: more than one value on stdout: %v", args, err)
	}
}

// refused checks that a command exits with the given code, prints nothing on
// stdout and prints the given words on stderr.
func refused(t *testing.T, code int, args []string, words ...string) {
	t.Helper()
	got, out, errOut := ran(t, args...)
	if got != code || out != "" {
		t.Errorf("%.200q: exit %d, want %d; stdout %.100q, stderr %s", args, got, code, out, errOut)
	}
	for _, word := range words {
		if !strings.Contains(errOut, word) {
			t.Errorf("%.200q: no %q in %q", args, word, errOut)
		}
	}
	first, _, _ := strings.Cut(errOut, "\n")
	checkLines(t, args[0], first)
}

// path returns the path of a recorded dump.
func (d *recordedDump) path(t *testing.T) string { return recorded.Path(t, "hprof", d.file) }

// dumpFile writes a dump into a new directory and returns its path.
func dumpFile(t testing.TB, dump []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.hprof")
	if err := os.WriteFile(path, dump, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func packed(t *testing.T, data []byte) []byte {
	t.Helper()
	return []byte(gzipped(t, string(data)))
}

// zstandard stores data uncompressed in a zstd frame (RFC 8878, 3.1.1).
func zstandard(data []byte) []byte {
	const single, most = 1<<7 | 1<<5, 128 << 10
	out := binary.LittleEndian.AppendUint32([]byte("\x28\xb5\x2f\xfd\xa0"), uint32(len(data)))
	if out[4] != single {
		panic("frame header")
	}
	for {
		n, last := min(len(data), most), uint32(0)
		if n == len(data) {
			last = 1
		}
		head := uint32(n)<<3 | last
		out = append(out, byte(head), byte(head>>8), byte(head>>16))
		out = append(out, data[:n]...)
		if data = data[n:]; last == 1 {
			return out
		}
	}
}

// keptDump returns the content of a heap dump that a run directory keeps
// compressed.
func keptDump(t *testing.T, path string) []byte {
	t.Helper()
	f, err := spool.Open(t.Context(), path, nil, spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil || f.Format != spool.Zstd || f.Truncated != nil || f.Damage != nil {
		t.Errorf("%s: %v, %v, %v, %v", path, f.Format, err, f.Truncated, f.Damage)
	}
	return data
}

// These constants are the classes of a small dump. Each constant is the ID of
// both the class and its name.
const (
	objectClass hprof.ID = 0x1000 + 16*iota
	classClass
	nodeClass
	arrayClass
	holderClass
	firstName
)

// firstObject is the address of the first object of a small dump.
const firstObject hprof.ID = 0x100000

// small begins a dump of an Android app with 4-byte IDs, with the classes
// Object, Class, Object[], a node with one reference, and a holder with one
// static reference, which is a root.
func small(out io.Writer, node string, held hprof.ID) *hproftest.Writer {
	w := hproftest.NewWriter(out, hprof.Header{Format: hprof.Format103, IDSize: 4})
	names := []string{"java.lang.Object", "java.lang.Class", node, "java.lang.Object[]", "com.shop.Holder", "next"}
	for i, name := range names {
		w.String(objectClass+16*hprof.ID(i), name)
	}
	for id := objectClass; id < firstName; id += 16 {
		w.LoadClass(hprof.LoadedClass{Serial: uint32(id), Class: id, Name: id})
	}
	w.Class(&hprof.Class{ID: objectClass, InstanceSize: 8})
	w.Class(&hprof.Class{ID: classClass, Super: objectClass})
	w.Class(&hprof.Class{
		ID: nodeClass, Super: objectClass, InstanceSize: 12,
		Fields: []hprof.Field{{Name: firstName, Type: hprof.Object}},
	})
	w.Class(&hprof.Class{ID: arrayClass, Super: objectClass})
	w.Class(&hprof.Class{
		ID: holderClass, Super: objectClass,
		Statics: []hprof.Static{{Name: firstName, Type: hprof.Object, Value: uint64(held)}},
	})
	w.Root(hprof.Root{Kind: hprof.SubRootStickyClass, Object: holderClass})
	return w
}

// nodes writes n instances of the node class: if chained is set, each refers to
// the next one; otherwise none refers to another.
func nodes(w *hproftest.Writer, n int, chained bool) {
	var next [4]byte
	for i := range n {
		at := firstObject + 16*hprof.ID(i)
		if chained && i < n-1 {
			binary.BigEndian.PutUint32(next[:], uint32(at)+16)
		} else {
			clear(next[:])
		}
		w.Instance(at, 0, nodeClass, next[:])
	}
}

// chainFile writes a dump of a list of n nodes and returns its path.
func chainFile(t testing.TB, n int) string {
	t.Helper()
	return writtenDump(t, func(out io.Writer) *hproftest.Writer {
		w := small(out, "com.shop.Node", firstObject)
		nodes(w, n, true)
		return w
	})
}

// writtenDump writes a dump to a file and returns its path.
func writtenDump(t testing.TB, write func(io.Writer) *hproftest.Writer) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.hprof")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	b := bufio.NewWriterSize(f, 1<<20)
	w := write(b)
	w.EndHeap()
	for _, end := range []func() error{w.Close, b.Flush, f.Close} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// If a command that reads several dumps is interrupted, it does not start on
// the next dump.
func TestInterruptBeforeNextDump(t *testing.T) {
	path := chainFile(t, 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut bytes.Buffer
	f := growthFlags{loops: 1}
	series := analysis.NewGrowthSeries(1)
	code := f.runIn(ctx, console{out: &out, err: &errOut, verb: "growth"}, path,
		func(ctx context.Context, file *spool.File, o analysis.Options) error {
			return series.Add(ctx, path, file, file.Size(), o)
		})
	if code != 130 || out.Len() > 0 || errOut.String() != "leakgate growth: interrupted; nothing was written\n" {
		t.Errorf("exit %d, %q, %q", code, out.String(), errOut.String())
	}
}
