package leakcanary

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf16"
)

// decode converts an input to valid UTF-8 and removes a byte order mark.
// PowerShell writes UTF-16 when it redirects the output of a program to a file.
func decode(input []byte) []byte {
	switch {
	case bytes.HasPrefix(input, []byte{0xff, 0xfe}):
		input = wide(input[2:], binary.LittleEndian)
	case bytes.HasPrefix(input, []byte{0xfe, 0xff}):
		input = wide(input[2:], binary.BigEndian)
	default:
		input = bytes.TrimPrefix(input, []byte("\ufeff"))
	}
	return bytes.ToValidUTF8(input, []byte("?"))
}

func wide(input []byte, order binary.ByteOrder) []byte {
	units := make([]uint16, len(input)/2)
	for i := range units {
		units[i] = order.Uint16(input[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}

// detect returns the format of an input. The line at which a report begins
// determines whether the input is a logcat or plain text; if no report begins
// anywhere, the first lines of the input determine it.
func detect(input []byte) Form {
	if trimmed := bytes.TrimSpace(input[:min(len(input), 4<<10)]); bytes.HasPrefix(trimmed, []byte("<")) {
		return JUnit
	}
	seen, headers := 0, 0
	for line := range lines(input) {
		// Only the first lines, and the lines that may begin a report, are
		// checked in detail.
		if seen++; seen > 1000 && !strings.Contains(line, "HEAP ANALYSIS") && !strings.Contains(line, noLeaks) {
			continue
		}
		_, isEntry := parseEntry(line)
		if isBegin(line) || isEntry && isBegin(entryMessage(line)) {
			if isEntry || headers > 0 {
				return Logcat
			}
			return Text
		}
		if isEntry {
			headers++
		}
	}
	if headers > 0 {
		return Logcat
	}
	return Text
}

// lines yields the lines of an input without their line endings.
func lines(input []byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range bytes.Lines(input) {
			if !yield(string(bytes.TrimRight(line, "\r\n"))) {
				return
			}
		}
	}
}
