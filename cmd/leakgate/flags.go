package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/harness/config"
)

// value is a flag that takes one value and may be given once.
type value struct {
	placeholder string
	standard    string // the default that the help shows
	choices     []string
	parse       func(string) error
	given       *string
}

// String implements pflag.Value.
func (v *value) String() string { return v.standard }

// Type implements pflag.Value. It returns the placeholder that the help shows
// for the value.
func (v *value) Type() string { return v.placeholder }

// Set implements pflag.Value.
func (v *value) Set(text string) error {
	if v.given != nil {
		return fmt.Errorf("given twice, as %q and as %q; it takes one value", *v.given, text)
	}
	v.given = &text
	return v.parse(text)
}

// invalid returns the error for an invalid value of a flag or variable.
func invalid(text, want string) error {
	return fmt.Errorf("invalid value %q: want %s", text, want)
}

// errEmptyValue returns the error for an empty value. The default is not used
// instead, because an empty value usually comes from an unset variable in a
// script.
func errEmptyValue(text string) error {
	if strings.Contains(text, ",") {
		return fmt.Errorf("the value %q has an empty name between its commas: remove it, or set the variable that it "+
			"comes from", text)
	}
	return errors.New("the value is empty: remove the flag, or set the variable that it comes from")
}

// word returns a flag that takes any non-empty string; the initial value of the
// target is the default.
func word(to *string, placeholder string) *value {
	return &value{placeholder: placeholder, standard: *to, parse: func(text string) error {
		if strings.TrimSpace(text) == "" {
			return errEmptyValue(text)
		}
		*to = text
		return nil
	}}
}

// choice returns a flag that takes one of a few words.
func choice[T ~string](to *T, placeholder string, choices ...T) *value {
	v := &value{placeholder: placeholder, standard: string(*to)}
	for _, c := range choices {
		v.choices = append(v.choices, string(c))
	}
	v.parse = func(text string) error {
		for _, c := range choices {
			if text == string(c) {
				*to = c
				return nil
			}
		}
		err := invalid(text, alternatives(v.choices))
		if len(choices) == 1 {
			return err
		}
		return fmt.Errorf("%w%s", err, suggestion(text, v.choices, ""))
	}
	return v
}

// alternatives lists words as in "a, b or c".
func alternatives(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// number returns an integer flag with a minimum.
func number[T int | int64 | uint64](to *T, placeholder string, least T) *value {
	v := &value{placeholder: placeholder, parse: func(text string) error {
		n, err := strconv.ParseInt(text, 10, 0)
		if err != nil || T(n) < least || n < 0 {
			return invalid(text, fmt.Sprintf("an integer of at least %d, such as %d", least, max(least, 30)))
		}
		*to = T(n)
		return nil
	}}
	if *to != 0 {
		v.standard = fmt.Sprint(*to)
	}
	return v
}

// span returns a flag whose value is a positive duration.
func span(to *time.Duration) *value {
	v := &value{placeholder: "TIME", parse: func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return invalid(text, "a duration such as 90s, 30m or 2h")
		}
		*to = d
		return nil
	}}
	if *to != 0 {
		v.standard = strings.TrimSuffix(to.String(), "0s")
	}
	return v
}

// durationRange returns a flag whose value is a positive duration or a range of
// two durations.
func durationRange(least, most *time.Duration) *value {
	return &value{placeholder: "TIME", parse: func(text string) error {
		first, second, isRange := strings.Cut(text, "..")
		d, err := time.ParseDuration(first)
		longest := time.Duration(0)
		if err == nil && isRange {
			longest, err = time.ParseDuration(second)
		}
		if err != nil || d <= 0 || isRange && longest <= d {
			return invalid(text, "a duration such as 90s, 30m or 2h, or a range such as 12m..30m")
		}
		*least, *most = d, longest
		return nil
	}}
}

// size returns a flag whose value is a positive number of bytes.
func size(to *int64) *value {
	return &value{placeholder: "SIZE", parse: func(text string) error {
		n, err := config.ParseSize(text)
		if err == nil && n <= 0 {
			err = invalid(text, "a size above 0, such as 4GB")
		}
		*to = n
		return err
	}}
}

// rate returns a flag whose value is a growth rate in bytes per hour.
func rate(to *int64) *value {
	return &value{placeholder: "RATE", parse: func(text string) error {
		n, err := config.ParseRate(text)
		*to = n
		return err
	}}
}

// list is a flag that may be given several times.
type list struct {
	to          *[]string
	placeholder string
	commas      bool // separate values
}

// String implements pflag.Value.
func (l list) String() string { return "" }

// Type implements pflag.Value.
func (l list) Type() string { return l.placeholder }

// Set implements pflag.Value.
func (l list) Set(text string) error {
	words := []string{text}
	if l.commas {
		words = strings.Split(text, ",")
	}
	for _, w := range words {
		if w = strings.TrimSpace(w); w == "" {
			return errEmptyValue(text)
		}
		*l.to = append(*l.to, w)
	}
	return nil
}
