package lease

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/text"
)

// Holder describes who holds a lease. The description is read from a file and
// may be wrong.
type Holder struct {
	// Verb is the leakgate command that holds the lease.
	Verb string `json:"verb"`
	PID  int    `json:"pid"`
	// User is the user's name on this machine.
	User string `json:"user"`
	// Dir is the run directory as the user wrote it, or "" if the command has
	// no run directory.
	Dir     string    `json:"dir,omitempty"`
	Started time.Time `json:"started"`
}

// NewHolder returns a Holder for this process, which runs the command verb and
// writes to dir.
func NewHolder(verb, dir string) Holder {
	name := "user " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return Holder{Verb: verb, PID: os.Getpid(), User: name, Dir: dir, Started: time.Now().UTC().Truncate(time.Second)}
}

// Known reports whether anything is known about the holder.
func (h Holder) Known() bool { return h != Holder{} }

// String describes the holder in one printable line of at most 1 kB.
func (h Holder) String() string {
	if !h.Known() {
		return "another run (unnamed)"
	}
	line := fmt.Sprintf("leakgate %s (pid %d of %s, since %s", bare(h.Verb), h.PID, bare(h.User),
		h.Started.Local().Format(time.DateTime))
	if h.Dir != "" {
		line += ", writing to " + bare(h.Dir)
	}
	return line + ")"
}

// bare returns a plain word unchanged and quotes any other string.
func bare(word string) string {
	strange := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune(`._-/\:`, r)
	}
	if word == "" || strings.ContainsFunc(word, strange) {
		return text.Quote(word, maxDir)
	}
	return word
}

const (
	// maxRecord is the size in bytes of a lock file including its note.
	maxRecord = 4096
	// noteAt is the offset of the note. LockFileEx locks the first byte, which
	// other processes then cannot read.
	noteAt = 1
	// The maximum sizes of the strings in a note, in bytes. Encoded as JSON, a
	// string may be six times as long.
	maxVerb, maxUser, maxDir = 32, 64, 480
)

// encode returns the note of a holder: JSON that is padded to a fixed size, so
// a shorter note completely overwrites a longer one.
func (h Holder) encode() ([]byte, error) {
	h.Verb, h.User, h.Dir = head(h.Verb, maxVerb), head(h.User, maxUser), tail(h.Dir, maxDir)
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode holder: %w", err)
	}
	if len(text) >= maxRecord-noteAt {
		return nil, fmt.Errorf("encode holder: %d bytes", len(text))
	}
	note := bytes.Repeat([]byte{' '}, maxRecord-noteAt)
	note[len(note)-1] = '\n'
	copy(note, text)
	return note, nil
}

// decodeHolder parses a note. ok is false if the note is incomplete or invalid.
func decodeHolder(note []byte) (h Holder, ok bool) {
	if len(note) != maxRecord-noteAt || note[len(note)-1] != '\n' {
		return Holder{}, false
	}
	if err := json.Unmarshal(note, &h); err != nil || h.PID <= 0 {
		return Holder{}, false
	}
	if len(h.Verb) > maxVerb || len(h.User) > maxUser || len(h.Dir) > maxDir {
		return Holder{}, false
	}
	return h, true
}

// head returns the first n bytes of a string, as valid UTF-8.
func head(text string, n int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= n {
		return text
	}
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// tail returns the last n bytes of a path, because paths differ mainly at the
// end.
func tail(text string, n int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= n {
		return text
	}
	const cut = "..."
	text = text[len(text)-n+len(cut):]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return cut + text
}
