package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The address of a baseline is published without the directories of this
// computer.
func TestGatePublicStore(t *testing.T) {
	private := filepath.Join(t.TempDir(), "kim", "leak-baseline.json")
	for address, want := range map[string]string{
		"file:" + private:              "file:leak-baseline.json",
		"command:'" + private + "'":    "command:leak-baseline.json",
		"command:" + private + " ...":  "command:leak-baseline.json ...",
		"file:ci/leak-baseline.json":   "file:ci/leak-baseline.json",
		"git:leak-baseline#shop.json":  "git:leak-baseline#shop.json",
		"artifact:leakgate-baseline":   "artifact:leakgate-baseline",
		"git:upstream/leaks#shop.json": "git:upstream/leaks#shop.json",
	} {
		if got := publicStore(address); got != want || strings.Contains(got, "kim") {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
