package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// strippedOf returns the expected copy of a dump; the tests of hprof verify it.
func strippedOf(t *testing.T, data []byte) ([]byte, hprof.Stripped) {
	t.Helper()
	var out bytes.Buffer
	done, err := hprof.Strip(t.Context(), &out, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), done
}

// secret returns a small dump with a string that must not be shared.
func secret(t *testing.T) []byte {
	t.Helper()
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	h.Hold("com.shop.Session", "token", h.String("a secret of somebody"))
	data, _, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte("a secret of somebody")) {
		t.Fatal("the secret is not in the dump")
	}
	return data
}

// assertFiles checks that a directory contains exactly the given files.
func assertFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, names) {
		t.Errorf("the directory contains %q, want %q", got, names)
	}
}

func checkFile(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, want %d; %v", filepath.Base(path), len(got), len(want), err)
	}
}

// A dump in any supported compression format is stripped, to a file and to
// standard output.
func TestStrip(t *testing.T) {
	data := secret(t)
	want, done := strippedOf(t, data)
	for name, in := range map[string][]byte{"plain": data, "gzip": packed(t, data), "zstd": zstandard(data)} {
		t.Run(name, func(t *testing.T) {
			path, dir := dumpFile(t, in), t.TempDir()
			out := filepath.Join(dir, "out.hprof")
			var report strippedReport
			answered(t, &report, "strip", path, out, "--json")
			if report.Schema != "leakgate.strip/1" || report.Bytes != int64(len(data)) ||
				report.Arrays != done.Arrays || report.StrippedBytes != done.Bytes || report.Hashes != done.Hashes ||
				report.Hashes == 0 || report.Truncated || len(report.Warnings) > 0 {
				t.Errorf("%+v, want %+v", report, done)
			}
			checkFile(t, out, want)
			checkFile(t, path, in)
			assertFiles(t, dir, "out.hprof")
			code, text, errOut := ran(t, "strip", "--force", path, out)
			if code != exitOK || errOut != "" || !strings.Contains(text, " arrays and ") ||
				strings.Count(text, "\n") != 1 {
				t.Errorf("exit %d, %q, %s", code, text, errOut)
			}
			if code, text, errOut := ran(t, "strip", path, "-"); code != exitOK || errOut != "" ||
				text != string(want) {
				t.Errorf("strip to standard output: exit %d, got %d bytes, want %d: %s", code, len(text),
					len(want), errOut)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cmd := program(t, ctx, nil, "strip", "-", "-")
			cmd.Stdin = bytes.NewReader(in)
			if got, err := cmd.Output(); err != nil || !bytes.Equal(got, want) {
				t.Errorf("strip through pipes: got %d bytes, want %d: %v", len(got), len(want), err)
			}
		})
	}
}

// analyze finds the same leaks, but no string contents.
func TestStripThenAnalyze(t *testing.T) {
	path := recorded.Path(t, "hprof", "leak_service_binder.hprof")
	out := filepath.Join(t.TempDir(), "out.hprof")
	if code, _, errOut := ran(t, "strip", path, out); code != exitOK {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	identities := func(path string) string {
		var r struct {
			Leaks []struct {
				Fingerprint string `json:"fingerprint"`
				Key         string `json:"key"`
				Retained    int64  `json:"retained_bytes"`
				Trace       []struct {
					Class, Reference, Leaking string
				}
			}
		}
		answered(t, &r, "analyze", path, "--json")
		if len(r.Leaks) == 0 {
			t.Errorf("%s: no leak found", path)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got, want := identities(out), identities(path); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// After an error nothing is written, and nothing is lost.
func TestStripRejectsWrongInput(t *testing.T) {
	data := secret(t)
	dir := t.TempDir()
	in, there := filepath.Join(dir, "in.hprof"), filepath.Join(dir, "there.hprof")
	folder, damaged, empty := filepath.Join(dir, "folder"), filepath.Join(dir, "damaged.hprof"),
		filepath.Join(dir, "empty.hprof")
	broken := bytes.Clone(data)
	broken[len(broken)-9] = 0x77 // the tag of the last record
	gzip := filepath.Join(dir, "damaged.gz")
	z := packed(t, data)
	z[len(z)-8] ^= 1 // its checksum
	for path, content := range map[string][]byte{
		in: data, there: []byte("kept"), damaged: broken, empty: nil, gzip: z,
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.hprof")
	for name, c := range map[string]struct {
		code  int
		args  []string
		words []string
	}{
		"nothing":     {exitUsage, nil, []string{"want a heap dump", "got 0"}},
		"one file":    {exitUsage, []string{in}, []string{"got 1"}},
		"three files": {exitUsage, []string{in, out, out}, []string{"got 3"}},
		"OUT unset":   {exitUsage, []string{in, ""}, []string{"argument 2 is empty"}},
		"IN unset":    {exitUsage, []string{"", out}, []string{"argument 1 is empty"}},
		"IN missing": {
			exitUsage, []string{filepath.Join(dir, "none"), out}, []string{"none", "not exist"},
		},
		"IN a folder":        {exitUsage, []string{folder, out}, []string{"is a folder"}},
		"IN without content": {exitUnread, []string{empty, out}, []string{"is empty"}},
		"OUT exists":         {exitUsage, []string{in, there}, []string{"OUT exists", "--force"}},
		"OUT a folder":       {exitUsage, []string{in, folder, "--force"}, []string{"OUT is a directory"}},
		"OUT in a missing directory": {
			exitUsage, []string{in, filepath.Join(dir, "none", "out.hprof")},
			[]string{"create ", "out.hprof", "no such"},
		},
		"OUT below a file": {exitUsage, []string{in, filepath.Join(there, "out.hprof")}, []string{"OUT"}},
		"OUT is IN":        {exitUsage, []string{in, in, "--force"}, []string{"the dump itself"}},
		"OUT is IN by another path": {
			exitUsage, []string{in, filepath.Join(folder, "..", "in.hprof"), "--force"}, []string{"the dump itself"},
		},
		"OUT compressed":           {exitUsage, []string{in, out + ".gz"}, []string{"uncompressed", "out.hprof,"}},
		"OUT compressed with zstd": {exitUsage, []string{in, out + ".ZST"}, []string{"uncompressed"}},
		"OUT a device":             {exitUsage, []string{in, os.DevNull, "--force"}, []string{"not a regular file"}},
		"JSON and the dump":        {exitUsage, []string{in, "-", "--json"}, []string{"--json", "name a file"}},
		"damaged": {
			exitUnread, []string{damaged, out}, []string{"damaged at offset", "unknown tag 0x77"},
		},
		"damaged dump to stdout":   {exitUnread, []string{damaged, "-"}, []string{"damaged at offset"}},
		"damaged dump over a file": {exitUnread, []string{damaged, there, "--force"}, []string{"damaged at offset"}},
		"damaged compressed data":  {exitUnread, []string{gzip, out}, []string{"checksum"}},
		"larger than the cap": {
			exitUnread, []string{gzip, out, "--spool-cap", "1KB"}, []string{"larger than the cap"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, c.code, append([]string{"strip"}, c.args...), c.words...)
			assertFiles(t, dir, "damaged.gz", "damaged.hprof", "empty.hprof", "folder", "in.hprof", "there.hprof")
			assertFiles(t, folder)
			checkFile(t, in, data)
			checkFile(t, there, []byte("kept"))
		})
	}
}

// A truncated dump is stripped with a warning.
func TestStripTruncated(t *testing.T) {
	data := secret(t)
	data = data[:len(data)*3/4]
	want, _ := strippedOf(t, data)
	path, dir := dumpFile(t, data), t.TempDir()
	out := filepath.Join(dir, "out.hprof")
	code, _, errOut := ran(t, "strip", path, out)
	if code != exitOK || errOut != "warning: the dump is truncated, and so is the stripped copy\n" {
		t.Errorf("exit %d, %s", code, errOut)
	}
	checkFile(t, out, want)
	z := packed(t, data)
	var report strippedReport
	answered(t, &report, "strip", dumpFile(t, z[:len(z)-5]), filepath.Join(dir, "other.hprof"), "--json")
	if !report.Truncated || len(report.Warnings) != 2 || !strings.Contains(report.Warnings[0], "is truncated") {
		t.Errorf("%+v", report)
	}
}

// A dump is not written to a terminal.
func TestStripToATerminal(t *testing.T) {
	var screen, errOut bytes.Buffer
	code := callWith(nil, newSanitizer(&screen), &errOut, "strip", dumpFile(t, secret(t)), "-")
	if code != exitUsage || screen.Len() > 0 || !strings.Contains(errOut.String(), "binary data to a terminal") {
		t.Errorf("exit %d, %q, %s", code, screen.String(), errOut.String())
	}
}

// A file that is created in the meantime is not overwritten.
func TestStripKeepsConcurrentFile(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.hprof")
	var errOut bytes.Buffer
	in := readerFunc(func() {
		if err := os.WriteFile(out, []byte("kept"), 0o600); err != nil {
			t.Error(err)
		}
	}, secret(t))
	code := callWith(in, &bytes.Buffer{}, &errOut, "strip", "-", out)
	if code != exitUnread || !strings.Contains(errOut.String(), "file already exists") {
		t.Errorf("exit %d, %s", code, errOut.String())
	}
	checkFile(t, out, []byte("kept"))
	assertFiles(t, dir, "out.hprof")
}

// readerFunc returns a reader that calls a function before its first byte is
// read.
func readerFunc(before func(), data []byte) *triggered {
	return &triggered{before: before, Reader: bytes.NewReader(data)}
}

type triggered struct {
	before func()
	*bytes.Reader
}

func (r *triggered) Read(b []byte) (int, error) {
	if r.before != nil {
		r.before()
		r.before = nil
	}
	return r.Reader.Read(b)
}
