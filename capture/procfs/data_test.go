package procfs

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// deviceText reads a recorded output of a real device. A test without it is
// skipped, and fails where LEAKGATE_REQUIRE=all.
func deviceText(tb testing.TB, name string) []byte {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(dataRoot(tb), "device", name))
	if err != nil {
		missing(tb, "recorded output of a device: %v", err)
	}
	if !strings.HasSuffix(name, ".gz") {
		return text
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	if text, err = io.ReadAll(z); err != nil {
		tb.Fatal(err)
	}
	return text
}

func dataRoot(tb testing.TB) string {
	tb.Helper()
	if root := os.Getenv("LEAKGATE_TESTDATA"); root != "" {
		return root
	}
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "..", "shared", "testdata")
		}
		dir = filepath.Dir(dir)
	}
	tb.Fatal("no go.mod above this package")
	return ""
}

func missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv("LEAKGATE_REQUIRE") == "all" {
		tb.Fatalf(format, args...)
	}
	tb.Skipf(format, args...)
}
