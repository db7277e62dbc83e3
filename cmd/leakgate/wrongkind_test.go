package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/reporters/record"
)

// kinds returns the path of a file of each kind that leakgate recognizes, with
// the error message of a command that expects another kind.
func kinds(t *testing.T) map[string]struct{ path, says string } {
	t.Helper()
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	dump, _, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	var packed, archive bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(dump)
	_ = z.Close()
	a := zip.NewWriter(&archive)
	w, _ := a.Create("shop.hprof")
	_, _ = w.Write(dump)
	_ = a.Close()
	// These are packets of a trace: messages with a timestamp.
	trace := bytes.Repeat([]byte{0x0a, 6, 0x40, 1, 0x48, 2, 0x50, 3}, 100)
	return map[string]struct{ path, says string }{
		"dump":            {file("shop.hprof", dump), "a heap dump: analyze it with `leakgate analyze`"},
		"compressed dump": {file("shop.hprof.gz", packed.Bytes()), "a heap dump: analyze it"},
		"zstd":            {file("shop.hprof.zst", []byte("\x28\xb5\x2f\xfd\x00\x00")), "packed with zstd"},
		"trace":           {file("shop.pftrace", trace), "Perfetto trace"},
		"samples": {
			file("samples.ndjson", []byte(`{"schema":"leakgate.samples/1","started":"2026-01-02T03:04:05Z"}`+"\n")),
			"samples.ndjson, the samples of a run: judge them with `leakgate replay`",
		},
		"run": {
			file("run.json", []byte("{\n  \"schema\": \"leakgate.run/1\"\n}\n")),
			"run.json, the record of a run: pass its directory",
		},
		"analysis": {
			file("analysis.json", []byte(`{"schema":"leakgate.analysis/1"}`)),
			"a file that leakgate wrote (leakgate.analysis)",
		},
		"table": {
			file("memory.csv", []byte("t_s,pss_kb\n0,1024\n")),
			"a table of memory readings: judge it with `leakgate replay`",
		},
		"elf": {
			file("libshop.so", append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 100)...)), "an ELF file",
		},
		"zip":            {file("shop.apk", archive.Bytes()), "a zip archive"},
		"binary":         {file("shop.bin", bytes.Repeat([]byte{7, 1, 0, 0xc8, 3}, 1000)), "binary data"},
		"zeros":          {file("zeros", make([]byte, 100_000)), "binary data"},
		"UTF-16":         {file("utf16.txt", []byte("\xff\xfet\x00_\x00s\x00,\x00p\x00s\x00s\x00")), "UTF-16"},
		"empty":          {file("empty", nil), "empty"},
		"directory":      {dir, ""},
		"missing file":   {filepath.Join(dir, "nowhere"), ""},
		"plain text":     {file("notes.txt", []byte("the app became slow after lunch\n")), ""},
		"truncated dump": {file("half.hprof", []byte("JAVA PROFILE 1.0.3\x00\x00\x00")), "a heap dump: analyze it"},
		"samples with a byte order mark": {
			file("marked.ndjson",
				[]byte("\xef\xbb\xbf"+`{"schema":"leakgate.samples/1","started":"2026-01-02T03:04:05Z"}`+"\n")),
			"samples.ndjson",
		},
	}
}

// A file of the wrong kind causes an error that identifies the kind and names
// the command that reads it. This is checked for each command that takes a file
// and each kind that the command does not read.
func TestWrongKindsOfFiles(t *testing.T) {
	all := kinds(t)
	dumps := []string{"dump", "compressed dump", "zstd", "truncated dump"}
	recordings := []string{"samples", "samples with a byte order mark", "table"}
	for _, c := range []struct {
		name string
		args func(path string) []string
		own  []string
		// vague holds the messages of the dump reader for file types without a
		// signature.
		vague []string
	}{
		{"replay", func(p string) []string { return []string{"replay", p} }, recordings, nil},
		{"analyze", func(p string) []string { return []string{"analyze", p} }, dumps, []string{"binary", "zeros"}},
		{
			"paths", func(p string) []string { return []string{"paths", p, "java.lang.String"} }, dumps,
			[]string{"binary", "zeros"},
		},
		{
			"objects", func(p string) []string { return []string{"objects", p, "0x1"} }, dumps,
			[]string{"binary", "zeros"},
		},
		{"diff", func(p string) []string { return []string{"diff", p, p} }, dumps, []string{"binary", "zeros"}},
		{
			"strip", func(p string) []string { return []string{"strip", p, filepath.Join(t.TempDir(), "out.hprof")} },
			dumps, []string{"binary", "zeros"},
		},
		{
			"parse", func(p string) []string { return []string{"parse", "meminfo", p} },
			[]string{"plain text", "empty"}, nil,
		},
		{
			"parse smaps", func(p string) []string { return []string{"parse", "smaps", p} },
			[]string{"plain text", "empty"}, nil,
		},
		{"report", func(p string) []string { return []string{"report", p} }, nil, nil},
		{"show", func(p string) []string { return []string{"show", p, "0123456789abcdef"} }, nil, nil},
		{"comment", func(p string) []string { return []string{"comment", "--dry-run", "--run", p} }, nil, nil},
		{
			"gate --leakcanary", func(p string) []string { return []string{"gate", "--leakcanary", p} },
			[]string{"plain text", "empty"}, nil,
		},
	} {
		for kind, f := range all {
			if slices.Contains(c.own, kind) {
				continue
			}
			says := f.says
			if slices.Contains(c.vague, kind) {
				says = "not a heap dump"
			}
			code, out, errOut := ran(t, c.args(f.path)...)
			if code == exitOK || code == record.ExitLeak || out != "" && c.name != "gate --leakcanary" {
				t.Errorf("%s of %s: exit %d, %s%s", c.name, kind, code, out, errOut)
			}
			if !strings.Contains(errOut+out, says) {
				t.Errorf("%s of %s: no %q in: %s%s", c.name, kind, says, errOut, out)
			}
			if n := len(errOut); n > 3000 {
				t.Errorf("%s of %s: got %d bytes on stderr, want at most 3000", c.name, kind, n)
			}
		}
	}
}
