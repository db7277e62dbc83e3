//go:build unix

package main

import (
	"os"
	"syscall"
	"testing"
)

// The file of accepted leaks is kept in a checkout: a new file gets the
// permissions that the umask allows, and an existing one keeps its own.
func TestAcceptKeepsPermissions(t *testing.T) {
	inFolder(t)
	for _, c := range []struct {
		umask     int
		had, want os.FileMode
	}{{0o022, 0, 0o644}, {0o077, 0, 0o600}, {0o002, 0, 0o664}, {0o022, 0o600, 0o600}, {0o022, 0o664, 0o664},
		{0o077, 0o644, 0o644}} {
		const file = "accepted.yaml"
		_ = os.Remove(file) // the file of the previous case
		if c.had != 0 {
			if err := os.WriteFile(file, []byte("version: 1\naccepted: []\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(file, c.had); err != nil {
				t.Fatal(err)
			}
		}
		before := syscall.Umask(c.umask)
		code, _, errOut := typed(t,
			nil, "accept", "d97295ca", "--reason", "r", "--owner", "o", "--until", "2999-01-01",
			"--accepted", file)
		syscall.Umask(before)
		info, err := os.Stat(file)
		if err != nil || code != 0 || info.Mode().Perm() != c.want {
			t.Errorf("umask %03o, had %v: exit %d, %v, %v, want %v\n%s", c.umask, c.had, code, info.Mode(), err, c.want,
				errOut)
		}
	}
}
