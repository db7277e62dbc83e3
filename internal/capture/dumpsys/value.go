package dumpsys

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
)

// Answer is yes, no, or unknown. The zero Answer is unknown.
type Answer uint8

// The values of an Answer.
const (
	Unknown Answer = iota
	No
	Yes
)

// MarshalJSON writes true, false, or null if the answer is unknown.
func (a Answer) MarshalJSON() ([]byte, error) {
	if a == Unknown {
		return []byte("null"), nil
	}
	return strconv.AppendBool(nil, a == Yes), nil
}

// String returns yes, no or unknown.
func (a Answer) String() string {
	switch a {
	case Yes:
		return "yes"
	case No:
		return "no"
	}
	return "unknown"
}

const (
	maxText = 4 << 20 // bytes of one command's output; meminfo of one process takes 5 kB
	maxName = 256     // maximum length in bytes of a process name, a row name or an object name
)

func clip(s string, n int) string { return s[:min(len(s), n)] }

// number parses a decimal number. A minus sign is accepted: System and Private
// Other are remainders, which become negative if drivers report wrong numbers.
func number(s string) (int64, bool) {
	if len(s) > 18 || strings.HasPrefix(s, "+") {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// kiloBytes parses a size such as "54432.00KiB", "61200.00 KB" or "4.3e+03KiB"
// (a C++ stream with a precision of two digits) and rounds it to whole kB of
// 1024 bytes. A size without a complete unit is rejected, because it may be
// truncated. coarse reports whether digits were lost by rounding on the device.
func kiloBytes(s string) (n int64, coarse, ok bool) {
	s = strings.TrimSpace(s)
	digits, found := strings.CutSuffix(s, "KiB")
	if !found {
		if digits, found = strings.CutSuffix(s, "KB"); !found {
			return 0, false, false
		}
	}
	digits = strings.TrimSpace(digits)
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(f >= 0 && f < 1<<50) {
		return 0, false, false
	}
	return int64(math.Round(f)), strings.ContainsAny(digits, "eE"), true
}

// lines iterates over a string line by line.
type lines struct {
	rest string
	n    int // number of the line that next returned most recently
}

// next returns a line without its terminator (\n, \r\n, or the \r\r\n of old
// adb on Windows). whole is false for a last line that has no terminator.
func (l *lines) next() (line string, whole, ok bool) {
	if l.rest == "" {
		return "", false, false
	}
	l.n++
	line, l.rest, whole = strings.Cut(l.rest, "\n")
	return strings.TrimRight(line, "\r"), whole, true
}

// foldDigits converts all digits to ASCII: the app process formats its own
// meminfo with String.format in the user's language (ActivityThread.printRow),
// and Arabic, Persian, Bengali and other languages have their own digits.
func foldDigits(line string) string {
	for i := range len(line) {
		if line[i] >= 0x80 {
			return strings.Map(foldDigit, line)
		}
	}
	return line
}

func foldDigit(r rune) rune {
	if r < 0x80 || !unicode.Is(unicode.Nd, r) {
		return r
	}
	// In Unicode, the ten digits of a script are consecutive and start at zero.
	// A range of unicode.Nd may contain several such groups of ten, so the
	// value of a digit is its distance from the start of the range, modulo 10.
	for _, span := range unicode.Nd.R16 {
		if uint32(span.Lo) <= uint32(r) && uint32(r) <= uint32(span.Hi) {
			return '0' + (r-rune(span.Lo))%10
		}
	}
	for _, span := range unicode.Nd.R32 {
		if span.Lo <= uint32(r) && uint32(r) <= span.Hi {
			return '0' + (r-rune(span.Lo))%10
		}
	}
	return r
}

// token is a word in a line, with its position.
type token struct {
	text       string
	start, end int
	cut        bool // the token is at the end of the input, without a newline
}

func tokens(line string, whole bool) (ts []token) {
	for at := 0; ; {
		t, ok := tokenAt(line, at, whole)
		if !ok {
			return ts
		}
		ts = append(ts, t)
		at = t.end
	}
}

// tokenAt returns the first word at or after a position in a line.
func tokenAt(line string, at int, whole bool) (token, bool) {
	for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
		at++
	}
	if at == len(line) {
		return token{}, false
	}
	end := at
	for end < len(line) && line[end] != ' ' && line[end] != '\t' {
		end++
	}
	return token{line[at:end], at, end, end == len(line) && !whole}, true
}

// pair is one "Label: 123" in a line that may contain several such pairs.
type pair struct {
	label string
	value token // empty if the next word is not a number
}

func pairs(line string, whole bool) (ps []pair) {
	at := 0
	for len(ps) < maxObjects {
		colon := strings.IndexByte(line[at:], ':')
		if colon < 0 {
			return ps
		}
		colon += at
		p := pair{label: clip(strings.TrimSpace(line[at:colon]), maxName)}
		at = colon + 1
		if v, ok := tokenAt(line, at, whole); ok && !isLetter(v.text[0]) && !strings.Contains(clip(v.text, 20), ":") {
			p.value = v
			at = v.end
		}
		ps = append(ps, p)
	}
	return ps
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// processOf parses "PID [NAME] **" after the start of a block. Truncated values
// are unknown. A name ends at the last "] **", because it may itself contain
// brackets.
func processOf(rest string) (pid known.Int, name field.Text) {
	digits, rest, closed := strings.Cut(strings.TrimLeft(rest, " "), " ")
	if !closed {
		return known.Int{}, ""
	}
	if n, ok := number(digits); ok && n >= 0 {
		pid = known.Of(n)
	}
	rest, ok := strings.CutPrefix(rest, "[")
	if !ok {
		return pid, ""
	}
	if end := strings.LastIndex(rest, "] **"); end >= 0 {
		name = field.Text(clip(rest[:end], maxName))
	}
	return pid, name
}

// input returns the output of a device as a string, truncated to the maximum
// length.
func input(text []byte) (s string, tooLong bool) {
	return string(text[:min(len(text), maxText)]), len(text) > maxText
}
