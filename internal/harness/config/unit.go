package config

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// fault is a mistake in a value whose position in the file is not yet known.
type fault struct {
	message    string
	suggestion string
	unset      bool   // caused by an unset variable
	part       string // the invalid part of the text, if it is not the whole text
}

// parser is a function that parses the text of a value into a T.
type parser[T any] func(text string) (T, *fault)

// restrict limits a parser to values that satisfy a condition. In a message,
// the text of the condition follows "must be".
func restrict[T any](parse parser[T], obeys func(T) bool, rule string) parser[T] {
	return func(text string) (T, *fault) {
		v, f := parse(text)
		if f == nil && !obeys(v) {
			f = &fault{message: fmt.Sprintf("is %s, but must be %s", quoted(text), rule)}
		}
		return v, f
	}
}

// longestNumber is the maximum length of a number, which bounds the time for
// parsing it; 2^64 has 20 digits.
const longestNumber = 40

var wholePattern = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*(_[0-9]+)*)$`)

// whole parses a whole number in decimal digits; 200_000 is 200000. A leading
// zero is rejected, because some programs read such a number as octal and
// others as decimal.
func whole(text string) (int64, *fault) {
	if len(text) > longestNumber || !wholePattern.MatchString(text) {
		return 0,
			&fault{
				message:    quoted(text) + " is not a whole number: write digits only, such as 30",
				suggestion: suggestWhole(text),
			}
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	if err != nil {
		return 0, &fault{message: quoted(text) + " is too large a number"}
	}
	return n, nil
}

var (
	looseWhole = regexp.MustCompile(`^0*([1-9][0-9]{0,8})(?:\.0+)?([kKM]?)$`)
	thousands  = regexp.MustCompile(`^[1-9][0-9]{0,2}([,. '][0-9]{3})+$`)
)

// suggestWhole suggests digits for values such as 026, 200k and 200,000; it
// returns "" for any other value.
func suggestWhole(text string) string {
	if len(text) > longestNumber {
		return ""
	}
	if thousands.MatchString(text) {
		return strings.NewReplacer(",", "", ".", "", " ", "", "'", "").Replace(text)
	}
	m := looseWhole.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1] + map[string]string{"k": "000", "K": "000", "M": "000000"}[m[2]]
}

var numberPattern = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$`)

// number parses a decimal number.
func number(text string) (float64, *fault) {
	if len(text) > longestNumber || !numberPattern.MatchString(text) {
		return 0, &fault{message: quoted(text) + " is not a number: write one such as 2 or 0.6"}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, &fault{message: quoted(text) + " is not a number: " + plain(err)}
	}
	return v, nil
}

// percent parses a percentage, with or without the percent sign: 25% or 25.
func percent(text string) (float64, *fault) {
	v, f := number(strings.TrimSuffix(text, "%"))
	if f != nil {
		return 0, &fault{message: quoted(text) + " is not a percentage: write one such as 25%"}
	}
	return v, nil
}

// sizeUnits are powers of 1024 in both spellings: KB in this file has the same
// meaning as in Android and its tools.
var sizeUnits = map[string]int64{
	"B":  1,
	"KB": 1 << 10, "KiB": 1 << 10,
	"MB": 1 << 20, "MiB": 1 << 20,
	"GB": 1 << 30, "GiB": 1 << 30,
}

var sizePattern = regexp.MustCompile(`^([-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)) ?([A-Za-z]+)$`)

// ParseSize parses a size with its unit, as in the file, and returns it in
// bytes.
func ParseSize(text string) (int64, error) {
	n, bad := size(text)
	switch {
	case bad == nil:
		return n, nil
	case bad.suggestion != "":
		return 0, fmt.Errorf("%s; did you mean %s?", bad.message, bad.suggestion)
	}
	return 0, errors.New(bad.message)
}

// size parses a size with its unit and returns it in bytes, rounded down.
func size(text string) (int64, *fault) {
	m := sizePattern.FindStringSubmatch(text)
	if len(text) > longestNumber || m == nil {
		f := &fault{message: quoted(text) + " is not a size: write a number with a unit, such as 512KB, 200MB or 1.5GB"}
		if _, bad := number(text); bad == nil && len(text) < longestNumber {
			f.suggestion = text + "MB"
		}
		return 0, f
	}
	unit, ok := sizeUnits[m[2]]
	if !ok {
		f := &fault{
			message: fmt.Sprintf(
				"%s has the unknown unit %q: units are B, KB, MB, GB, KiB, MiB and GiB, all powers of 1024",
				quoted(text), m[2]),
		}
		for _, u := range []string{"KB", "MB", "GB", "KiB", "MiB", "GiB"} {
			if strings.EqualFold(u, m[2]) || strings.EqualFold(u[:1], m[2]) {
				f.suggestion = m[1] + u
				break
			}
		}
		return 0, f
	}
	exact, ok := new(big.Rat).SetString(m[1])
	if !ok {
		return 0, &fault{message: quoted(text) + " is not a size"}
	}
	exact.Mul(exact, new(big.Rat).SetInt64(unit))
	bytes := new(big.Int).Quo(exact.Num(), exact.Denom())
	if !bytes.IsInt64() {
		return 0, &fault{message: quoted(text) + " is too large a size"}
	}
	return bytes.Int64(), nil
}

// ParseRate parses a rate as in the file, and returns it in bytes per hour.
func ParseRate(text string) (int64, error) {
	n, bad := rateKind.parse(text)
	switch {
	case bad == nil:
		return n, nil
	case bad.suggestion != "":
		return 0, fmt.Errorf("%s; did you mean %s?", bad.message, bad.suggestion)
	}
	return 0, errors.New(bad.message)
}

// rate parses a rate such as 50MB/h and returns it in bytes per hour.
func rate(text string) (int64, *fault) {
	amount, hourly := strings.CutSuffix(text, "/h")
	n, f := size(amount)
	switch {
	case f == nil && hourly:
		return n, nil
	case f == nil:
		return 0,
			&fault{
				message:    quoted(text) + " is not a rate: write a size per hour, such as 50MB/h",
				suggestion: text + "/h",
			}
	}
	f.message = quoted(text) + " is not a rate: write a size per hour, such as 50MB/h"
	if f.suggestion != "" {
		f.suggestion += "/h"
	}
	return 0, f
}

var (
	durationPattern = regexp.MustCompile(`^[-+]?((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h|d))+$`)
	durationPart    = regexp.MustCompile(`([0-9.]+)([a-zµμ]+)`)
	durationWords   = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)$`)
)

// duration parses a duration as Go does, but also accepts d for 24 hours:
// 1h30m, 300ms, 1.5d. 0 needs no unit.
func duration(text string) (time.Duration, *fault) {
	if text == "0" {
		return 0, nil
	}
	if len(text) > longestNumber || !durationPattern.MatchString(text) {
		return 0, &fault{
			message:    quoted(text) + " is not a duration: write numbers with units, such as 90s, 1h30m or 2d",
			suggestion: suggestDuration(text),
		}
	}
	var sum time.Duration
	for _, part := range durationPart.FindAllStringSubmatch(text, -1) {
		d, ok := durationOf(part[1], part[2])
		if !ok || d > math.MaxInt64-sum {
			return 0, &fault{message: quoted(text) + " is too long a duration: at most 106751d"}
		}
		sum += d
	}
	if text[0] == '-' {
		sum = -sum
	}
	return sum, nil
}

func durationOf(count, unit string) (time.Duration, bool) {
	if unit != "d" {
		d, err := time.ParseDuration(count + unit)
		return d, err == nil
	}
	d, err := time.ParseDuration(count + "h")
	return 24 * d, err == nil && d <= math.MaxInt64/24
}

// bare matches a number without a unit.
var bare = regexp.MustCompile(`^[1-9][0-9]{0,5}(\.[0-9]+)?$`)

// withUnit returns a parser that suggests a likely unit for a number without
// one.
func withUnit(parse parser[time.Duration], unit func(n float64) string) parser[time.Duration] {
	return func(text string) (time.Duration, *fault) {
		d, f := parse(text)
		if f != nil && len(text) <= longestNumber && bare.MatchString(text) {
			n, _ := strconv.ParseFloat(text, 64)
			f.suggestion = text + unit(n)
		}
		return d, f
	}
}

// suggestDuration suggests "8h" for "8 hours"; it returns "" for any other
// value.
func suggestDuration(text string) string {
	m := durationWords.FindStringSubmatch(text)
	if m == nil || len(text) > longestNumber {
		return ""
	}
	units := map[string]string{
		"msec": "ms", "sec": "s", "second": "s", "min": "m", "minute": "m", "hr": "h", "hour": "h", "day": "d",
	}
	word := strings.ToLower(m[2])
	if unit, ok := units[strings.TrimSuffix(word, "s")]; ok {
		return m[1] + unit
	}
	if _, ok := durationOf(m[1], word); ok {
		return m[1] + word
	}
	return ""
}

// oneOf returns a parser that accepts the given words.
func oneOf(words ...string) parser[string] {
	return func(text string) (string, *fault) {
		for _, w := range words {
			if text == w {
				return text, nil
			}
		}
		f := &fault{message: fmt.Sprintf("invalid value %s: want %s", quoted(text), joinList(words, "or"))}
		f.suggestion, _ = Nearest(text, words)
		return "", f
	}
}
