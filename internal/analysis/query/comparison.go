// Package query selects objects by the values of their fields: `state=CLOSED`
// or `total>100`, compared according to the type of the field. It works on
// unredacted strings; the caller must redact them if necessary.
package query

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Comparison is a field, an operator and the value with which the field is
// compared.
type Comparison struct {
	Field, Operator, Value string
}

// operators lists the operators of a comparison; if one is a prefix of another,
// the longer one comes first.
var operators = []string{"==", "!=", "<=", ">=", "=", "<", ">"}

// Parse reads a comparison such as state=CLOSED.
func Parse(s string) (Comparison, error) {
	at := strings.IndexAny(s, "=!<>")
	if at < 0 {
		at = len(s)
	}
	field := strings.TrimSpace(s[:at])
	for _, o := range operators {
		if value, ok := strings.CutPrefix(s[at:], o); ok && field != "" {
			if o == "==" {
				o = "="
			}
			return Comparison{field, o, strings.TrimSpace(value)}, nil
		}
	}
	return Comparison{}, fmt.Errorf("invalid value %q: want FIELD=VALUE, FIELD!=VALUE, FIELD<NUMBER or FIELD>NUMBER", s)
}

// String returns the comparison in the form that Parse accepts, with its value
// formatted by show.
func (c Comparison) String(show func(string) string) string {
	return c.Field + c.Operator + show(c.Value)
}

// ordered reports whether the operator depends on which of two values is
// larger.
func (c Comparison) ordered() bool { return c.Operator != "=" && c.Operator != "!=" }

// ValueError is the error for a comparison whose value does not fit the field's
// type.
type ValueError struct {
	Comparison

	// Type is the type of the field; Want describes the values that fit it.
	Type hprof.Type
	Want string
}

func (e *ValueError) Error() string {
	kind := e.Type.String()
	if e.Type == hprof.Object {
		kind = "reference"
	}
	return fmt.Sprintf("compare field %s of type %s: invalid value %q: want %s", e.Field, kind, e.Operator+e.Value,
		e.Want)
}

// test is a comparison that is compiled for fields of one type.
type test struct {
	// passes reports whether the value of a field passes; it is nil if the
	// contents of Strings are compared.
	passes func(heap.FieldValue) bool
	// text is the string that the contents of a referenced String are compared
	// with.
	text string
}

// testOf compiles a comparison for the type of a field.
func (c Comparison) testOf(t hprof.Type, idSize int) (test, error) {
	switch t {
	case hprof.Object:
		return c.referenceTest()
	case hprof.Boolean:
		if c.ordered() || c.Value != "true" && c.Value != "false" {
			return test{}, &ValueError{c, t, "=true or =false"}
		}
		return c.equal(c.Value), nil
	case hprof.Char:
		return c.charTest()
	case hprof.Float, hprof.Double:
		return c.floatTest(t, 8*t.Size(idSize))
	}
	return c.integerTest(t, 8*t.Size(idSize))
}

// equal returns a test that compares a value by its printed form.
func (c Comparison) equal(text string) test {
	return test{passes: func(v heap.FieldValue) bool { return (v.Text == text) == (c.Operator == "=") }}
}

func (c Comparison) referenceTest() (test, error) {
	if c.ordered() {
		return test{}, &ValueError{c, hprof.Object, "= or !="}
	}
	id, isID := parseID(c.Value)
	if c.Value == "null" || isID {
		return test{passes: func(v heap.FieldValue) bool { return (v.ID == id) == (c.Operator == "=") }}, nil
	}
	text := c.Value
	if unquoted, ok := quoted(text); ok {
		text = unquoted
	}
	return test{text: text}, nil
}

// parseID reads the ID of an object: 0x12c04948, @0x12c04948 or @12c04948.
func parseID(s string) (hprof.ID, bool) {
	digits, at := strings.CutPrefix(s, "@")
	digits, x := strings.CutPrefix(strings.ToLower(digits), "0x")
	if !at && !x {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 16, 64)
	return hprof.ID(id), err == nil
}

// quoted returns the string between double quotes, which are needed for a
// string that looks like null or like an ID.
func quoted(s string) (string, bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", false
	}
	if text, err := strconv.Unquote(s); err == nil {
		return text, true
	}
	return s[1 : len(s)-1], true
}

func (c Comparison) charTest() (test, error) {
	text := c.Value
	if len(text) > 2 && text[0] == '\'' && text[len(text)-1] == '\'' {
		text = text[1 : len(text)-1]
	}
	r, size := utf8.DecodeRuneInString(text)
	if c.ordered() || size == 0 || size < len(text) {
		return test{}, &ValueError{c, hprof.Char, "one character, such as ='x'"}
	}
	return c.equal(strconv.QuoteRune(r)), nil
}

func (c Comparison) integerTest(t hprof.Type, bits int) (test, error) {
	want, ok := integer(c.Value, bits)
	if !ok {
		return test{}, &ValueError{c, t, fmt.Sprintf("a whole number of %d bits", bits)}
	}
	return test{passes: func(v heap.FieldValue) bool {
		n, err := strconv.ParseInt(v.Text, 10, 64)
		return err == nil && c.holds(cmp.Compare(n, want))
	}}, nil
}

// integer reads a decimal number, or a color or mask in hexadecimal: 0xff00ff00
// is a negative 32-bit number.
func integer(s string, bits int) (int64, bool) {
	digits, isHex := strings.CutPrefix(strings.ToLower(s), "0x")
	if !isHex {
		n, err := strconv.ParseInt(s, 10, bits)
		return n, err == nil
	}
	n, err := strconv.ParseUint(digits, 16, bits)
	return int64(n) << (64 - bits) >> (64 - bits), err == nil
}

func (c Comparison) floatTest(t hprof.Type, bits int) (test, error) {
	want, err := strconv.ParseFloat(c.Value, bits)
	if err != nil {
		return test{}, &ValueError{c, t, "a number"}
	}
	return test{passes: func(v heap.FieldValue) bool {
		n, err := strconv.ParseFloat(v.Text, bits)
		if err != nil || c.ordered() && (math.IsNaN(n) || math.IsNaN(want)) {
			return false
		}
		// -0 equals 0, and NaN equals NaN, as users expect.
		return c.holds(cmp.Compare(n, want))
	}}, nil
}

// holds reports whether a result of cmp.Compare satisfies the operator.
func (c Comparison) holds(order int) bool {
	switch c.Operator {
	case "=":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}
