package lease

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

func TestNoteRoundTrip(t *testing.T) {
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, text := range []string{
		"", "run", "a b", "\x00\x01\x1b[2J", "\u2028\u202e", "<&>", strings.Repeat("\x00", 5000),
		strings.Repeat("ü", 5000), strings.Repeat("/very/long", 500),
	} {
		h := Holder{Verb: text, PID: 1<<31 - 1, User: text, Dir: text, Started: started}
		note, err := h.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, ok := decodeHolder(note)
		if !ok || got.PID != h.PID || !got.Started.Equal(started) {
			t.Fatalf("%.40q: %+v, %v", text, got, ok)
		}
		if len(text) < maxVerb && got != h {
			t.Errorf("%q became %+v", text, got)
		}
		if !strings.HasPrefix(text, got.Verb) || !strings.HasSuffix(text, strings.TrimPrefix(got.Dir, "...")) {
			t.Errorf("%.40q was truncated to %+v", text, got)
		}
	}
}

// A note is shown only if it is complete and bounded, whatever the file
// contains.
func FuzzNote(f *testing.F) {
	whole, err := Holder{Verb: "run", PID: 1, User: "anna"}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, note []byte) {
		h, ok := decodeHolder(note)
		if !ok {
			if h.Known() {
				t.Errorf("half a holder: %+v", h)
			}
			return
		}
		text := h.String()
		if len(text) > 4096 || !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\n\r\u202e") {
			t.Errorf("%q", text)
		}
		again, err := h.encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, ok := decodeHolder(again); !ok || !back.Started.Equal(h.Started) || back.Verb != h.Verb ||
			back.Dir != h.Dir {
			t.Errorf("%+v became %+v", h, back)
		}
	})
}

// If the file is locked, the second run fails with a one-line error, whatever
// the file contains. If it is not locked, the run continues.
func TestHostileNotes(t *testing.T) {
	whole, err := Holder{Verb: "run", PID: 1, User: "anna"}.encode()
	if err != nil {
		t.Fatal(err)
	}
	hostile := append(bytes.Repeat([]byte{' '}, maxRecord-noteAt-1), '\n')
	copy(hostile, "{\"verb\":\"\\u001b[2J\u202e\",\"pid\":1}")
	for name, c := range map[string]struct {
		note  []byte
		known bool
	}{
		"none": {}, "whole": {whole, true}, "truncated": {whole[:100], false}, "hostile": {hostile, true},
		"large": {bytes.Repeat([]byte("{"), 1<<20), false},
		"deep":  {bytes.Repeat([]byte("["), maxRecord-noteAt), false},
		"two":   {append(bytes.Clone(whole), whole...), false}, "zeros": {make([]byte, maxRecord), false},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := devices("S1")[0].path(folder)
			if err := os.WriteFile(path, append([]byte{0}, c.note...), 0o600); err != nil {
				t.Fatal(err)
			}
			lock, err := try(path)
			if err != nil || lock == nil {
				t.Fatal(err)
			}
			_, err = Take(t.Context(), mine(folder, "S1"))
			var held HeldError
			if !errors.As(err, &held) || held.Holder.Known() != c.known ||
				strings.ContainsAny(err.Error(), "\x1b\n\u202e") {
				t.Errorf("%v", err)
			}
			if err := lock.Unlock(); err != nil {
				t.Fatal(err)
			}
			release(t, taken(t, mine(folder, "S1")))
			assertEmpty(t, folder)
		})
	}
}

func TestFileSystemWithoutLocks(t *testing.T) {
	for _, cause := range []error{syscall.ENOTSUP, syscall.ENOSYS, syscall.ENOLCK} {
		err := unlockable(cause)
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), "does not support locks") ||
			!strings.Contains(err.Error(), FolderVariable) {
			t.Error(err)
		}
	}
}
