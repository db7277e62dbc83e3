// Package known contains types for numbers that may be unknown: for example, a
// phone may not print a value, or an event may not have happened. An unknown
// number is not the same as zero.
package known

import (
	"strconv"
	"time"
)

// Value is a number that may be unknown. The zero Value is unknown.
type Value[T ~int64] struct {
	N     T
	Known bool
}

// Int is an integer that may be unknown.
type Int = Value[int64]

// Duration is a duration that may be unknown.
type Duration = Value[time.Duration]

// Of returns a known integer.
func Of(n int64) Int { return Int{N: n, Known: true} }

// OfDuration returns a known duration.
func OfDuration(d time.Duration) Duration { return Duration{N: d, Known: true} }

// MarshalJSON returns the number, or null if it is unknown.
func (v Value[T]) MarshalJSON() ([]byte, error) {
	if !v.Known {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(v.N), 10), nil
}
