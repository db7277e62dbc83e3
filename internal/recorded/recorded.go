// Package recorded finds data recorded on real devices for tests, and defines
// what happens if something that a test needs is missing on this machine: the
// test is skipped and prints the reason. In CI, where everything is required,
// it fails.
//
// The data is outside the module, in the directory that the environment
// variable LEAKGATE_TESTDATA names, or otherwise in ../shared/testdata relative
// to the directory of go.mod. The data is only read, never generated.
package recorded

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Read returns the content of a recorded file, whose path elements are relative
// to the root of the data. A file whose name ends in .gz is decompressed. If
// the file is missing, the test is skipped or fails, as with Missing.
func Read(tb testing.TB, path ...string) []byte {
	tb.Helper()
	name := Path(tb, path...)
	data, err := os.ReadFile(name)
	if err != nil {
		tb.Fatalf("read recorded data: %v", err)
	}
	if !strings.HasSuffix(name, ".gz") {
		return data
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = io.ReadAll(z)
	}
	if err != nil {
		tb.Fatalf("decompress recorded data: %s: %v", name, err)
	}
	return data
}

// Path returns the path of an existing recorded file or directory. If it is
// missing, the test is skipped or fails, as with Missing.
func Path(tb testing.TB, path ...string) string {
	tb.Helper()
	name := filepath.Join(append([]string{root(tb)}, path...)...)
	if _, err := os.Stat(name); err != nil {
		Missing(tb, "recorded data is needed: %v", err)
	}
	return name
}

// Required reports whether a test fails if something that it needs is missing,
// as in CI.
func Required() bool { return os.Getenv("LEAKGATE_REQUIRE") == "all" }

// Long reports whether tests run at full length, as in make e2e; otherwise they
// run only some of their cases.
func Long() bool { return os.Getenv("LEAKGATE_E2E") == "long" }

// Missing ends a test that needs something that does not exist on this machine:
// it skips the test with the reason, or fails it if the environment variable
// LEAKGATE_REQUIRE is "all".
func Missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if Required() {
		tb.Fatalf(format, args...)
	}
	tb.Skipf(format, args...)
}

// root returns the directory of the data. Tests run in the directory of their
// package, so go.mod is in that directory or above it.
func root(tb testing.TB) string {
	tb.Helper()
	if dir := os.Getenv("LEAKGATE_TESTDATA"); dir != "" {
		return dir
	}
	start, err := os.Getwd()
	if err != nil {
		tb.Fatalf("find the recorded data: %v", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "..", "shared", "testdata")
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	tb.Fatalf("find the recorded data: no go.mod above %s", start)
	return ""
}
