package spool

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/leakgate/leakgate/internal/text"
)

// Format is the format in which an input is packed.
type Format uint8

// These are the supported formats.
const (
	Plain Format = iota
	Gzip
	Zstd
)

// String returns plain, gzip or zstd.
func (f Format) String() string {
	switch f {
	case Gzip:
		return "gzip"
	case Zstd:
		return "zstd"
	}
	return "plain"
}

// headSize is the number of bytes at the start of an input that identify it:
// the magic of tar is at offset 257.
const headSize = 512

// formatOf determines the format of an input by its first bytes: RFC 1952,
// 2.3.1, and RFC 8878, 3.1.1 and 3.1.2 (a zstd file may begin with a skippable
// frame).
func formatOf(head []byte) Format {
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return Gzip
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")),
		len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18":
		return Zstd
	}
	return Plain
}

// declaredSize returns the unpacked size that the first frame of a zstd file
// declares (RFC 8878, 3.1.1.1.4), or 0 if it declares no size. The declared
// size is not reliable: only the unpacked bytes count.
func declaredSize(f Format, head []byte) uint64 {
	var frame zstd.Header
	if f != Zstd || frame.Decode(head) != nil || !frame.HasFCS {
		return 0
	}
	return frame.FrameContentSize
}

const unpackFirst = "; unpack it first"

// marks lists the first bytes of inputs that are commonly passed by mistake.
var marks = []struct {
	at   int
	mark string
	what string
}{
	{0, "PK\x03\x04", "a zip archive" + unpackFirst},
	{0, "PK\x05\x06", "an empty zip archive"},
	{0, "PK\x07\x08", "a part of a zip archive" + unpackFirst},
	{257, "ustar", "a tar archive" + unpackFirst},
	{0, "BZh", "a file packed with bzip2" + unpackFirst},
	{0, "\xfd7zXZ\x00", "a file packed with xz" + unpackFirst},
	{0, "7z\xbc\xaf\x27\x1c", "a 7z archive" + unpackFirst},
	{0, "Rar!\x1a\x07", "a rar archive" + unpackFirst},
	{0, "\x04\x22\x4d\x18", "a file packed with lz4" + unpackFirst},
	{0, "\x7fELF", "an ELF file: a program, a library or a core dump"},
	{0, "dex\n", "a dex file: the code of an app"},
	{0, "SQLite format 3\x00", "an SQLite database"},
	{0, "\xff\xfe",
		"text in UTF-16: PowerShell writes this when the output of a program is redirected with >; " +
			"use cmd, or adb pull"},
}

// failures lists the beginnings of error messages of commands. A file contains
// such a line if standard error or a shell's message was redirected into it.
var failures = []string{
	"adb: ", "adb.exe: ", "error: ", "Error: ", "run-as: ", "cat: ", "sh: ", "/system/bin/sh: ", "su: ",
}

// marked returns the kind of an input by its first bytes, or "" if they are not
// in marks.
func marked(head []byte) string {
	for _, m := range marks {
		if len(head) >= m.at && bytes.HasPrefix(head[m.at:], []byte(m.mark)) {
			return m.what
		}
	}
	return ""
}

// mistaken returns the kind of an input that was evidently passed by mistake,
// or "" for any other input.
func mistaken(head []byte) string {
	if what := marked(head); what != "" {
		return what
	}
	if what := recording(head); what != "" {
		return what
	}
	content := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	for _, tag := range []string{"<!doctype html", "<html"} {
		if len(content) >= len(tag) && strings.EqualFold(string(content[:len(tag)]), tag) {
			return "a web page; download the file itself"
		}
	}
	for _, f := range failures {
		if bytes.HasPrefix(content, []byte(f)) {
			return fmt.Sprintf("the message of a command that failed: %q", text.FirstLine(string(content), 120))
		}
	}
	return ""
}
