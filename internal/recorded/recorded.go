// Package recorded finds recorded data of real devices for tests, and states the
// rule for parts that a test needs and this machine lacks: the test is skipped
// with the reason, and fails where every part must be there.
//
// The data lie outside the module, in the folder that the environment variable
// LEAKGATE_TESTDATA names, or else in ../shared/testdata as seen from the folder
// of go.mod. It refuses to make data up, and to write any. Tests of all packages
// feed on it; nothing else does.
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

// Read gives a recorded file whose path, joined, lies below the root of the data.
// A file whose name ends in .gz is unpacked. Without the file the test ends as
// Missing says.
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
		tb.Fatalf("unpack recorded data: %s: %v", name, err)
	}
	return data
}

// Path gives the path of a recorded file or folder, which is there. Without it
// the test ends as Missing says.
func Path(tb testing.TB, path ...string) string {
	tb.Helper()
	name := filepath.Join(append([]string{root(tb)}, path...)...)
	if _, err := os.Stat(name); err != nil {
		Missing(tb, "recorded data is needed: %v", err)
	}
	return name
}

// Required tells whether a part that is missing fails the tests, as in CI.
func Required() bool { return os.Getenv("LEAKGATE_REQUIRE") == "all" }

// Long reports whether tests run at full length, as in make e2e: others take a sample.
func Long() bool { return os.Getenv("LEAKGATE_E2E") == "long" }

// Missing ends a test that needs a part that is not there: it skips with the
// reason, or fails if the environment variable LEAKGATE_REQUIRE says "all".
func Missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if Required() {
		tb.Fatalf(format, args...)
	}
	tb.Skipf(format, args...)
}

// root is the folder of the data. Tests run in the folder of their package, so
// go.mod is above it.
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
