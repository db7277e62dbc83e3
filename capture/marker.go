package capture

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
)

// marker separates the parts of one answer. It is new for every command, so that
// nothing that a device prints can be taken for it.
type marker string

func newMarker() marker {
	var b [6]byte
	// crypto/rand.Read never fails since Go 1.24.
	_, _ = rand.Read(b[:])
	return marker("@" + hex.EncodeToString(b[:]))
}

// echo is the command that prints the marker with a label on a line of its own.
func (m marker) echo(label string) string {
	return fmt.Sprintf("echo; echo %s %s", string(m), Quote(label))
}

// join makes one command line of parts, each after a marker with its label. A
// part that fails does not keep the next from running.
func (m marker) join(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(m.echo(p.label))
		b.WriteString("; ")
		b.WriteString(p.command)
		b.WriteString("; ")
	}
	b.WriteString(m.echo("end"))
	return b.String()
}

// part is one labelled command of a joined command line.
type part struct{ label, command string }

// split undoes join: the output of each part by its label. whole is false where
// the end marker did not come.
func (m marker) split(out []byte) (parts map[string][]byte, whole bool) {
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

// ended is split for an answer that may be cut: the parts of which the end came.
func (m marker) ended(out []byte) map[string][]byte {
	parts, _ := m.split(out[:max(0, bytes.LastIndex(out, []byte("\n"+string(m)+" ")))])
	return parts
}
