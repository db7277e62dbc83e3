package shell

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// Marker separates the parts of one output. Every command gets a new marker, so
// no output of a device can be mistaken for it.
type Marker string

// NewMarker returns a random marker, which no device can guess.
func NewMarker() Marker {
	var b [6]byte
	// Since Go 1.24, crypto/rand.Read never returns an error.
	_, _ = rand.Read(b[:])
	return Marker("@" + hex.EncodeToString(b[:]))
}

// Echo returns the command that prints the marker with a label on a line of its
// own.
func (m Marker) Echo(label string) string {
	return fmt.Sprintf("echo; echo %s %s", string(m), text.ShellQuote(label))
}

// Part is a command and the label of its output.
type Part [2]string

// Join returns one command line that runs the parts, each after a marker with
// its label. If a part fails, the next one still runs.
func (m Marker) Join(parts []Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(m.Echo(p[0]))
		b.WriteString("; ")
		b.WriteString(p[1])
		b.WriteString("; ")
	}
	b.WriteString(m.Echo("end"))
	return b.String()
}

// Split reverses Join: it returns the output of each part by its label. whole
// is false if the end marker is missing.
func (m Marker) Split(out []byte) (parts map[string][]byte, whole bool) {
	parts = map[string][]byte{}
	sep := []byte("\n" + string(m) + " ")
	pieces := bytes.Split(out, sep)
	for _, piece := range pieces[1:] {
		label, text, _ := bytes.Cut(piece, []byte("\n"))
		parts[string(bytes.TrimRight(label, "\r"))] = text
	}
	_, whole = parts["end"]
	return parts, whole
}

// SplitTruncated is like Split for output that may be truncated: it returns
// only the complete parts.
func (m Marker) SplitTruncated(out []byte) map[string][]byte {
	parts, _ := m.Split(out[:max(0, bytes.LastIndex(out, []byte("\n"+string(m)+" ")))])
	return parts
}
