package check

import (
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

var day = time.Date(2027, 3, 31, 0, 0, 0, 0, time.Local)

func TestException(t *testing.T) {
	l := record.DumpLeak{
		Key: "32554831e25c83e8", Name: "CheckoutActivity, held by ScreenTracker.sScreens",
		Classes: []record.ClassCount{{Class: "com.cart.CheckoutActivity"}, {Class: "com.cart.Row"}},
	}
	trace := []string{
		"├─ com.cart.ScreenTracker class", "│    ↓ static ScreenTracker.sScreens", "│                 ~~~~~~~~",
		"├─ java.util.ArrayList instance", "│    ↓ ArrayList[0]", "│    ↓ Session.cart",
	}
	for name, c := range map[string]struct {
		e     Exception
		names bool
		wrong string
	}{
		"key":                              {Exception{Key: "32554831"}, true, ""},
		"full key":                         {Exception{Key: l.Key}, true, ""},
		"other key":                        {Exception{Key: "32554832"}, false, ""},
		"short key":                        {Exception{Key: "3255483"}, true, "a key has at least 8 characters"},
		"class":                            {Exception{Class: "com.cart.CheckoutActivity"}, true, ""},
		"class without a package":          {Exception{Class: "CheckoutActivity"}, true, ""},
		"second class":                     {Exception{Class: "Row"}, true, ""},
		"end of a class name":              {Exception{Class: "Activity"}, false, ""},
		"other package":                    {Exception{Class: "com.other.CheckoutActivity"}, false, ""},
		"holding reference":                {Exception{Held: "ScreenTracker.sScreens"}, true, ""},
		"holding reference with a package": {Exception{Held: "com.cart.ScreenTracker.sScreens"}, true, ""},
		"reference elsewhere in the trace": {Exception{Held: "Session.cart"}, true, ""},
		"other reference":                  {Exception{Held: "Session.cartoon"}, false, ""},
		"not a reference":                  {Exception{Held: "sScreens"}, false, "write a reference as CLASS.FIELD"},
		"key and class": {
			Exception{Key: l.Key, Class: "Row"}, true, "exactly one of key, class and reference",
		},
		"neither key, class nor reference": {Exception{}, false, "exactly one of key, class and reference"},
	} {
		c.e.Reason, c.e.Owner, c.e.Until = "SHOP-1", "anna", day
		err := c.e.Validate()
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v, want %q", name, err, c.wrong)
		}
		if err == nil && c.e.Names(l, trace) != c.names {
			t.Errorf("%s: got Names %v", name, !c.names)
		}
	}
	for name, e := range map[string]Exception{
		"reason": {Class: "A", Owner: "anna", Until: day, Reason: " "}, "owner": {Class: "A", Reason: "x", Until: day},
		"date": {Class: "A", Reason: "x", Owner: "anna"},
	} {
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), "specify ") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// The exception is valid until the end of its last day, in the time zone of the
// computer.
func TestExpired(t *testing.T) {
	e := Exception{Until: day}
	for at, want := range map[time.Time]bool{
		day.AddDate(0, 0, -1): false, day: false, day.Add(24*time.Hour - time.Second): false,
		day.AddDate(0, 0, 1): true, day.AddDate(1, 0, 0): true,
	} {
		if e.Expired(at) != want {
			t.Errorf("%v: expired %v", at, !want)
		}
	}
}

// nameOracle reports whether a class has a name, by comparing its parts from
// the end.
func nameOracle(class, named string) bool {
	have, want := strings.Split(class, "."), strings.Split(named, ".")
	if len(want) > len(have) {
		return false
	}
	for i := range want {
		if have[len(have)-1-i] != want[len(want)-1-i] {
			return false
		}
	}
	return true
}

// For any dump and exception, a valid exception selects the same leaks as the
// oracle, is printed on one line, and matches the names that a report uses for
// a leak.
func FuzzException(f *testing.F) {
	f.Add("32554831", "com.cart.CheckoutActivity", "ScreenTracker.sScreens", "SHOP-1", "CheckoutActivity")
	f.Add("", "a.b", "a.b.c", "\x1b[31m\n", ".")
	f.Fuzz(func(t *testing.T, key, class, held, reason, other string) {
		l := record.DumpLeak{
			Key: key + "0000", Name: class + ", held by " + held, Classes: []record.ClassCount{{Class: class}},
		}
		for _, e := range []Exception{{Key: key}, {Class: other}, {Held: held}, {Class: class}} {
			e.Reason, e.Owner, e.Until = reason, "anna", day
			if e.Validate() != nil {
				continue
			}
			if s := e.String(); strings.ContainsAny(s, "\n\r\x1b") || len(s) > 4000 {
				t.Errorf("%q", s)
			}
			switch {
			case e.Key != "" && !e.Names(l, nil):
				t.Errorf("%+v does not match its key", e)
			case e.Class != "" && e.Names(l, nil) != nameOracle(class, e.Class):
				t.Errorf("%q names %q: %v", e.Class, class, e.Names(l, nil))
			case e.Held != "" && !strings.ContainsAny(held, " ,\t\r\n\v\f\u0085\u00a0") &&
				!strings.Contains(class, "held by ") && strings.TrimSpace(held) == held && !e.Names(l, nil):
				t.Errorf("%q does not match the holding reference", e.Held)
			}
		}
	})
}
