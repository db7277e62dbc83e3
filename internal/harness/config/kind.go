package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// kind defines how the values of one kind, such as durations, are parsed,
// written, and described to users and editors.
type kind[T any] struct {
	parse parser[T]
	write func(T) string
	form  form
}

// form describes the values of a kind to users and editors.
type form struct {
	says string // a short description with the range, for users
	// accepts lists the alternatives of JSON Schema, in addition to a string
	// with a reference. They accept everything that the parser accepts, so an
	// editor never marks a valid file as invalid.
	accepts []object
	// plain reports whether values need no quotes, because they are not free
	// text.
	plain bool
}

// These are patterns for strings in JSON Schema. They use only syntax that
// ECMA-262 and Go share.
const (
	digitsPattern   = `^\+?(0|[1-9][0-9]*(_[0-9]+)*)$`
	percentPattern  = `^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)%?$`
	timePattern     = `^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d))+$`
	spanPattern     = `^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d))+(\.\.\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d))+)?$`
	zeroTimePattern = `^(0|[-+]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d))+)$`
	ratePattern     = `^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+) ?([KMG]i?)?B/h$`
	packageText     = `^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+$`
	processText     = `^[A-Za-z0-9._:$/@][A-Za-z0-9._:$/@-]*\*?$`
	serialText      = `^[A-Za-z0-9._:()\[\]%@]([A-Za-z0-9._:()\[\]%@ -]*[A-Za-z0-9._:()\[\]%@-])?$`
	variantText     = `^[A-Za-z0-9_.-]{1,100}$`
	notBlank        = `\S`
)

func matching(pattern string) object { return object{{"type", "string"}, {"pattern", pattern}} }

// freeText returns the schema of text that YAML might also parse as a number or
// a boolean, such as a serial number of digits.
func freeText(pattern string) object {
	o := object{{"type", []string{"string", "number", "boolean"}}}
	if pattern != "" {
		o = append(o, member{"pattern", pattern})
	}
	return o
}

func same(text string) string { return text }

var (
	packageKind = kind[string]{packageName, same, form{"a package name", []object{matching(packageText)}, false}}
	processKind = kind[string]{
		processPattern, same,
		form{"the name of a process, or a name prefix followed by a star", []object{freeText(processText)}, false},
	}
	serialKind = kind[string]{
		serial, same, form{"the name that `adb devices` shows", []object{freeText(serialText)}, false},
	}
	lineKind = kind[string]{line, same, form{"a command line", []object{freeText(notBlank)}, false}}
	wordKind = kind[string]{
		argument, same,
		form{"an argument; the first is the program and must not be blank", []object{freeText("")}, false},
	}
	pathKind    = kind[string]{hostPath, same, form{"a path", []object{freeText(notBlank)}, false}}
	variantKind = kind[string]{
		variant, same, form{"letters, digits, `_`, `.` and `-`, at most 100", []object{freeText(variantText)}, false},
	}
	versionKind = kind[string]{version, same, form{"1", []object{{{"const", 1}}, matching("^1$")}, true}}

	// interval is the time between two samples. Below one second, sampling
	// itself becomes the load; above one day, there are too few samples for a
	// series.
	interval = kind[time.Duration]{
		withUnit(restrict(duration, func(d time.Duration) bool { return d >= time.Second && d <= 24*time.Hour },
			"from 1s to 1d"),
			func(float64) string { return "s" }),
		writeDuration, form{"a duration from 1s to 1d", []object{matching(timePattern)}, true},
	}
	lengthKind = kind[time.Duration]{
		withUnit(restrict(duration, positive[time.Duration], "more than 0"), func(n float64) string {
			switch {
			case n <= 24:
				return "h"
			case n <= 600:
				return "m"
			}
			return "s"
		}),
		writeDuration, form{"a duration over 0", []object{matching(timePattern)}, true},
	}
	spanKind = kind[span]{
		parseSpan, span.String,
		form{"a duration over 0, or a range such as 12m..30m", []object{matching(spanPattern)}, true},
	}
	pauseKind = kind[time.Duration]{
		withUnit(restrict(duration, wholeMilliseconds, "whole milliseconds, from 0 to 1h"),
			func(float64) string { return "ms" }),
		writeDuration,
		form{
			"a duration of whole milliseconds from 0 to 1h", []object{{{"const", 0}}, matching(zeroTimePattern)}, true,
		},
	}
	cooldownKind = kind[time.Duration]{
		withUnit(restrict(duration, func(d time.Duration) bool { return d >= 0 && d <= 30*24*time.Hour },
			"from 0 to 30d"),
			func(float64) string { return "m" }),
		writeDuration, form{"a duration from 0 to 30d", []object{{{"const", 0}}, matching(zeroTimePattern)}, true},
	}
	limitKind = kind[time.Duration]{
		withUnit(restrict(duration, func(d time.Duration) bool { return d >= time.Second && d <= 10*time.Minute },
			"from 1s to 10m"),
			func(float64) string { return "s" }),
		writeDuration, form{"a duration from 1s to 10m", []object{matching(timePattern)}, true},
	}
	// switchKind accepts the booleans of YAML 1.2; yes and on are booleans of
	// YAML 1.1 only.
	switchKind = kind[bool]{
		truth, strconv.FormatBool,
		form{"true or false", []object{{{"type", "boolean"}}, {{"enum", []string{"true", "false"}}}}, true},
	}
	// costKind is a percentage of one core; it may exceed 100 %, because a
	// device has several cores.
	costKind = percentKind(1000)
	seedKind = kind[*int64]{seed, writeSeed, form{"auto, or a whole number of at least 0", []object{
		{{"const", "auto"}}, {{"type", "integer"}, {"minimum", 0}}, matching(digitsPattern),
	}, true}}
)

// span is the duration of a run, and its maximum duration if it is extended
// because of a suspected leak. The latter is 0 if a run is never extended.
type span struct{ least, most time.Duration }

// String returns the span in the form in which it is parsed.
func (s span) String() string {
	if s.most == 0 {
		return writeDuration(s.least)
	}
	return writeDuration(s.least) + ".." + writeDuration(s.most)
}

// parseSpan parses one duration, or two durations separated by two dots.
func parseSpan(text string) (span, *fault) {
	first, second, isRange := strings.Cut(text, "..")
	least, f := lengthKind.parse(first)
	if f != nil || !isRange {
		if isRange && f.suggestion != "" {
			f.suggestion += ".." + second
		}
		return span{least: least}, f
	}
	most, f := lengthKind.parse(second)
	switch {
	case f != nil && f.suggestion != "":
		f.suggestion = first + ".." + f.suggestion
		return span{}, f
	case f != nil:
		return span{}, f
	case most <= least:
		return span{},
			&fault{message: fmt.Sprintf("is %s, but the second duration must be longer than the first", quoted(text))}
	}
	return span{least, most}, nil
}

// rateKind is growth in bytes per hour. Runs are too short to detect less than
// 1 MB/h, and apps do not grow by a TB in an hour.
var rateKind = kind[int64]{
	restrict(rate, func(n int64) bool { return n >= 1<<20 && n <= 1<<40 }, "from 1MB/h to 1024GB/h"),
	writeRate,
	form{"a size per hour from 1MB/h to 1024GB/h", []object{matching(ratePattern)}, true},
}

// writeRate formats a rate in the largest unit of which it is a multiple.
func writeRate(n int64) string {
	for _, unit := range []string{"GB", "MB", "KB"} {
		if n%sizeUnits[unit] == 0 {
			return strconv.FormatInt(n/sizeUnits[unit], 10) + unit + "/h"
		}
	}
	return strconv.FormatInt(n, 10) + "B/h"
}

// junitKind is true, false or auto.
var junitKind = kind[*bool]{
	func(text string) (*bool, *fault) {
		if text == "auto" {
			return nil, nil
		}
		on, f := truth(text)
		if f != nil {
			f.message = quoted(text) + " is not auto, true or false"
			return nil, f
		}
		return &on, nil
	},
	func(on *bool) string {
		if on == nil {
			return "auto"
		}
		return strconv.FormatBool(*on)
	},
	form{"auto, true or false", []object{{{"type", "boolean"}}, {{"enum", []string{"auto", "true", "false"}}}}, true},
}

// truth parses true or false.
func truth(text string) (bool, *fault) {
	switch text {
	case "true", "false":
		return text == "true", nil
	}
	f := &fault{message: quoted(text) + " is not true or false"}
	switch strings.ToLower(text) {
	case "yes", "on", "true":
		f.suggestion = "true"
	case "no", "off", "false":
		f.suggestion = "false"
	}
	return false, f
}

func positive[T int64 | float64 | time.Duration](v T) bool { return v > 0 }

// numberBetween returns the schema of a number greater than low and at most
// high.
func numberBetween(low, high float64) object {
	return object{{"type", "number"}, {"exclusiveMinimum", low}, {"maximum", high}}
}

// percentKind returns the kind of a percentage greater than 0, up to a maximum.
func percentKind(most float64) kind[float64] {
	says := fmt.Sprintf("more than 0%% and at most %.0f%%", most)
	return kind[float64]{
		restrict(percent, func(v float64) bool { return v > 0 && v <= most }, says),
		func(v float64) string { return writeNumber(v) + "%" },
		form{"percent, " + says, []object{numberBetween(0, most), matching(percentPattern)}, true},
	}
}

// count returns the kind of a whole number between two limits.
func count(low, high int64) kind[int] {
	parse := restrict(whole, func(n int64) bool { return n >= low && n <= high },
		fmt.Sprintf("from %d to %d", low, high))
	return kind[int]{
		func(text string) (int, *fault) {
			n, f := parse(text)
			return int(n), f
		},
		strconv.Itoa,
		form{fmt.Sprintf("a whole number from %d to %d", low, high), []object{
			{{"type", "integer"}, {"minimum", low}, {"maximum", high}}, matching(digitsPattern),
		}, true},
	}
}

// words returns a kind that allows only the given words.
func words(of ...string) kind[string] {
	return kind[string]{oneOf(of...), same, form{joinList(of, "or"), []object{{{"enum", of}}}, true}}
}

// writeDuration formats a duration without the zeros that Go adds: 8h, not
// 8h0m0s.
func writeDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// writeNumber formats a number; parsing the result returns the same number. If
// the result would be too long, the zero before the decimal point is removed.
func writeNumber(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if len(text) > longestNumber {
		return strings.TrimPrefix(text, "0")
	}
	return text
}

func writeSeed(n *int64) string {
	if n == nil {
		return "auto"
	}
	return strconv.FormatInt(*n, 10)
}

// version parses the version of the file format.
func version(text string) (string, *fault) {
	if text != "1" {
		return "",
			&fault{message: "is " + quoted(text) + ", but the only version of this file is 1: write version: 1"}
	}
	return text, nil
}

// seed parses the seed of monkey; nil means a new seed for each run.
func seed(text string) (*int64, *fault) {
	if text == "auto" {
		return nil, nil
	}
	n, f := restrict(whole, func(n int64) bool { return n >= 0 }, "auto, or at least 0")(text)
	if f != nil {
		return nil, &fault{message: f.message + "; auto uses a new seed for each run"}
	}
	return &n, nil
}

func wholeMilliseconds(d time.Duration) bool {
	return d >= 0 && d <= time.Hour && d%time.Millisecond == 0
}

// mostEvents is the maximum number of events that monkey accepts (AOSP
// cmds/monkey/src/com/android/commands/monkey/Monkey.java, mCount).
const mostEvents = math.MaxInt32
