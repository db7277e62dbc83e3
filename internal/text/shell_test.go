package text_test

//unit:program a real shell is the second implementation

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/shelltest"
	"github.com/leakgate/leakgate/internal/text"
)

// Every string without NUL must become one word with the same bytes, in every
// shell. A NUL in the input separates words, so that one shell process can
// check many words.
func FuzzShellQuote(f *testing.F) {
	for _, name := range shelltest.HostileNames {
		f.Add([]byte(name))
	}
	f.Add([]byte(strings.Join(shelltest.HostileNames, "\x00")))
	f.Add([]byte("\x81\x82\x83\x84\x85\x86\x87\x88\x00\xff\xfe\xc0\x80\x00" +
		"\\\x00'\x00''\x00'\\''\x00\r\x00\n\x00\t\x00 \x00"))
	all := make([]byte, 255)
	for i := range all {
		all[i] = byte(i + 1)
	}
	f.Add(all)
	f.Add(bytes.Join(bytes.Split(all, nil), []byte{0}))
	available := shelltest.Shells(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		words := strings.Split(string(in), "\x00")
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = text.ShellQuote(w)
		}
		for _, argv := range available {
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Stdin = strings.NewReader("printf '%s\\000' " + strings.Join(quoted, " ") + "\n")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %v: %q", argv, err, out)
			}
			if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, words) {
				t.Errorf("%v reads %q instead of %q", argv, got, words)
			}
		}
	})
}
