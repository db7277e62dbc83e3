package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/reporters/record"
)

// Every command that reads dumps can read the dump kept in a run directory
// under its name in run.json, and removes its temporary files.
func TestKeptDump(t *testing.T) {
	dir, dumps := killedRun(t, "stripped")
	whole, err := os.ReadFile(dumps[0])
	if err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := typed(t, nil, "report", dir); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	run, err := record.ReadRun(dir)
	if err != nil || len(run.Diagnoses) != 1 {
		t.Fatal(run.Diagnoses, err)
	}
	d := run.Diagnoses[0]
	path := filepath.Join(dir, filepath.FromSlash(d.Folder), d.Steps[0].File)
	if info, err := os.Stat(path); path != dumps[0]+".zst" || err != nil || info.Size() != d.Steps[0].Bytes {
		t.Fatalf("%+v, %v, %v", d.Steps[0], info, err)
	}
	plain, out := dumpFile(t, keptDump(t, path)), filepath.Join(t.TempDir(), "stripped.hprof")
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for verb, args := range map[string][]string{
		"analyze": {"--json"}, "paths": {"com.shop.CartActivity", "--json"}, "diff": {dumpFile(t, whole), "--json"},
		"growth": {dumpFile(t, whole)}, "strip": {out, "--json", "--force"},
	} {
		_, want, _ := typed(t, nil, slices.Concat([]string{verb, plain}, args)...)
		code, got, errOut := typed(t, nil, slices.Concat([]string{verb, path}, args)...)
		if code != exitOK || strings.ReplaceAll(got, path, plain) != want || want == "" {
			t.Errorf("%s: exit %d, %s\n%.300s\nwant\n%.300s", verb, code, errOut, got, want)
		}
	}
	if stripped, err := os.ReadFile(out); err != nil || !bytes.Equal(stripped, keptDump(t, path)) {
		t.Errorf("stripping the kept dump again changed it: %d bytes, %v", len(stripped), err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("temporary files remain: %v, %v", left, err)
	}
}

// A truncated kept dump is analyzed as such. A dump of a few kB that
// decompresses to gigabytes is rejected, before decompression if it declares
// its size.
func TestDamagedKeptDump(t *testing.T) {
	dump, err := os.ReadFile(shopDump(t, 2000, 2))
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	form := zstandard(dump)
	path := dumpFile(t, form[:len(form)-1000])
	code, out, errOut := typed(t, nil, "analyze", path)
	if code != exitOK || !strings.Contains(out, "is truncated: its zstd data ends early") {
		t.Errorf("exit %d, %s\n%.500s", code, errOut, out)
	}
	if _, out, _ := typed(t, nil, "analyze", path, "--json"); !strings.Contains(out, `"truncated": true`) {
		t.Errorf("%.500s", out)
	}
	// Each block takes four bytes and stands for 128 KiB of zeros (RFC 8878,
	// 3.1.1), so 128 kB decompress to 4 GB.
	blocks := bytes.Repeat([]byte{0x02, 0x00, 0x10, 0x00}, 32<<10)
	magic := []byte("\x28\xb5\x2f\xfd")
	silent := slices.Concat(magic, []byte("\x00\x38"), blocks)
	declaring := slices.Concat(magic, []byte("\xc0\x38"), binary.LittleEndian.AppendUint64(nil, 1<<40), blocks[:4000])
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"declared size", []string{"analyze", dumpFile(t, declaring)}, "it has 1099511627776 bytes unpacked"},
		{
			"undeclared size", []string{"analyze", dumpFile(t, silent), "--spool-cap", "8MB"},
			"it is larger than the cap of 8.0 MB",
		},
	} {
		if code, out, errOut := typed(t, nil, c.args...); code != exitUnread || out != "" ||
			!strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit %d, %s\n%.300s", c.name, code, errOut, out)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("temporary files remain: %v, %v", left, err)
	}
}
