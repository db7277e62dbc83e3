package spool

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"unicode"

	"github.com/klauspost/compress/gzip"
)

// IdentifySize is the number of bytes from the start of a file that Identify
// needs.
const IdentifySize = 64 << 10

// Identify describes a file, given its first bytes, if leakgate writes or reads
// such files or the format is well known. The description also names the
// command that reads the file. Identify returns "" for any other file, such as
// text.
func Identify(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("JAVA PROFILE ")):
		return "a heap dump: analyze it with `leakgate analyze`"
	case formatOf(head) == Gzip && Identify(gunzipped(head)) != "":
		return Identify(gunzipped(head))
	case formatOf(head) != Plain:
		return fmt.Sprintf("a file packed with %v; unpack it first", formatOf(head))
	}
	if what := marked(head); what != "" {
		return what
	}
	if what := recording(head); what != "" {
		return what
	}
	switch {
	case !noText(head):
		return ""
	case beginsAsPerfetto(head, 1<<62):
		return "a Perfetto trace; leakgate reads heap dumps: take one with `adb shell am dumpheap -g PROCESS FILE`"
	}
	return "binary data"
}

// gunzipped returns the start of the contents of a gzip file, given the file's
// first bytes.
func gunzipped(head []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(head))
	if err != nil {
		return nil
	}
	content, _ := io.ReadAll(io.LimitReader(z, headSize)) // the head ends inside the gzip data
	return content
}

var (
	// schemaOf matches the schema of a file that leakgate wrote; the schema is
	// the first key.
	schemaOf = regexp.MustCompile(`^\s*\{\s*"schema"\s*:\s*"(leakgate\.[a-z_.]+)/[0-9]+"`)
	// tableOf finds the time column in the first line of a table.
	tableOf = regexp.MustCompile(`(?i)^(?:[^\r\n]*[,;\t])?[" ]*t_s[" ]*[,;\t\r\n]`)
)

// recording describes a file of a run, another file that leakgate wrote, or a
// memory table. It returns "" for any other file.
func recording(head []byte) string {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	if tableOf.Match(head) {
		return "a table of memory readings: judge it with `leakgate replay`"
	}
	m := schemaOf.FindSubmatch(head)
	if m == nil {
		return ""
	}
	switch schema := string(m[1]); schema {
	case "leakgate.samples":
		return "samples.ndjson, the samples of a run: judge them with `leakgate replay`"
	case "leakgate.run":
		return "run.json, the record of a run: pass its directory to `leakgate report` or `leakgate diff`"
	case "leakgate.summary": // describes a heap dump, not a run
		return ""
	default:
		return fmt.Sprintf("a file that leakgate wrote (%s)", schema)
	}
}

// noText reports whether more than a twentieth of the bytes are control
// characters that do not occur in text.
func noText(head []byte) bool {
	n := 0
	for _, c := range head {
		if unicode.IsControl(rune(c)) && c < 0x80 && !bytes.ContainsRune([]byte("\t\n\r\f\b\x1b"), rune(c)) {
			n++
		}
	}
	return n > len(head)/20
}
