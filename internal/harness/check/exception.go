package check

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Exception is a leak that is accepted until a date. Exactly one of Key, Class
// and Held identifies it.
type Exception struct {
	// Key is the key of the leak or at least its first 8 characters.
	Key string
	// Class is the class of the leaking objects, with or without its package.
	Class string
	// Held is the reference that holds the leaking objects, such as
	// "ScreenTracker.sScreens", with or without its package.
	Held string
	// Reason explains why the leak is accepted; Owner names who is going to fix
	// it.
	Reason, Owner string
	// Until is the last day on which the leak is accepted; the whole day is
	// included.
	Until time.Time
}

// minKey is the minimum length of a key's prefix that identifies a leak, in
// characters.
const minKey = 8

// Validate returns an error if the exception is invalid.
func (e Exception) Validate() error {
	named := 0
	for _, id := range []string{e.Key, e.Class, e.Held} {
		if id != "" {
			named++
		}
	}
	switch {
	case named != 1:
		return errors.New("accept a leak: identify it by exactly one of key, class and reference")
	case e.Key != "" && len(e.Key) < minKey:
		return fmt.Errorf("accept leak %s: a key has at least %d characters", e.name(), minKey)
	case e.Held != "" && !strings.Contains(e.Held, "."):
		return fmt.Errorf("accept leak %s: write a reference as CLASS.FIELD, such as ScreenTracker.sScreens", e.name())
	case strings.TrimSpace(e.Reason) == "":
		return fmt.Errorf("accept leak %s: specify a reason", e.name())
	case strings.TrimSpace(e.Owner) == "":
		return fmt.Errorf("accept leak %s: specify an owner", e.name())
	case e.Until.IsZero():
		return fmt.Errorf("accept leak %s: specify the date until which it is accepted", e.name())
	}
	return nil
}

const maxName = 200

func (e Exception) name() string {
	return text.Quote(cmp.Or(e.Key, e.Class, e.Held), maxName)
}

// Expired reports whether the last day of an exception is in the past.
func (e Exception) Expired(now time.Time) bool {
	return now.Format(time.DateOnly) > e.Until.Format(time.DateOnly)
}

// String describes the exception: the leak, why it is accepted, by whom and
// until when.
func (e Exception) String() string {
	return fmt.Sprintf("%s (%s, owner %s, until %s)", text.Head(cmp.Or(e.Key, e.Class, e.Held), maxName),
		text.Head(e.Reason, maxName), text.Head(e.Owner, maxName), e.Until.Format(time.DateOnly))
}

// Names reports whether the exception identifies a leak. trace is the path of
// the leak from the GC root, one reference per line, in the form that reports
// print.
func (e Exception) Names(l record.DumpLeak, trace []string) bool {
	switch {
	case e.Key != "":
		return strings.HasPrefix(l.Key, e.Key)
	case e.Class != "":
		for _, c := range l.Classes {
			if sameName(c.Class, e.Class) {
				return true
			}
		}
		return false
	}
	if _, holder, ok := strings.Cut(l.Name, "held by "); ok && sameReference(holder, e.Held) {
		return true
	}
	for _, line := range trace {
		if _, reference, ok := strings.Cut(line, "↓ "); ok &&
			sameReference(strings.TrimPrefix(reference, "static "), e.Held) {
			return true
		}
	}
	return false
}

// sameName reports whether a class has the given name, which may omit the
// package.
func sameName(class, named string) bool {
	return class == named || strings.HasSuffix(class, "."+named)
}

// sameReference reports whether a printed reference is the one that an
// exception names. Reports write classes without their packages, so the package
// in the given name is ignored.
func sameReference(shown, named string) bool {
	shown, _, _ = strings.Cut(strings.TrimSpace(shown), ",")
	shown, _, _ = strings.Cut(shown, " ")
	return lastTwo(shown) == lastTwo(named)
}

// lastTwo returns the last two parts of a reference: CLASS.FIELD.
func lastTwo(reference string) string {
	parts := strings.Split(reference, ".")
	return strings.Join(parts[max(0, len(parts)-2):], ".")
}
