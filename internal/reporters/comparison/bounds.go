package comparison

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// These limits apply to a comparison that is read from a file.
const (
	// maxText is the maximum length of each string, in characters.
	maxText = 1000
	// maxBytes and maxCount are the maximum values of numbers: 16 TB, and the
	// largest count that fits into an int on every platform.
	maxBytes = 1 << 44
	maxCount = 1 << 30
	// maxWarnings is the maximum number of warnings, including those of Read.
	maxWarnings = 100
	// maxList is the maximum length of the lists that maxLists does not name.
	maxList = 500
)

// maxLists contains the maximum lengths of lists by name.
var maxLists = map[string]int{
	"leaks": 10_000, "reasons": 10_000, "processes": 1000, "warnings": maxWarnings, "suspects": 20, "owners": 20,
	"classes": 50, "fingerprints": 100,
}

// nullable contains the lists for which null means unknown.
var nullable = map[string]bool{"base_reachable_bytes": true}

var timeType = reflect.TypeFor[time.Time]()

// bound makes each string of a comparison printable. Strings and lists that
// exceed their bounds are truncated, with a warning. A number or time that is
// out of range is an error. The fields are visited by reflection, so no field
// can be forgotten.
func bound(c *Comparison) error {
	b := &bounder{}
	listed := len(c.Leaks)
	if err := b.visit(reflect.ValueOf(c).Elem(), ""); err != nil {
		return err
	}
	if n := listed - len(c.Leaks); n > 0 {
		if c.LeaksOmitted += n; c.LeaksOmitted > maxCount {
			return fmt.Errorf("leaks_omitted is out of range")
		}
	}
	normalize(reflect.ValueOf(c).Elem(), "")
	var added []string
	if b.texts > 0 {
		added = append(added, fmt.Sprintf("%s: strings longer than %d characters are truncated", FileName, maxText))
	}
	for _, name := range slices.Sorted(maps.Keys(b.lists)) {
		added = append(added,
			fmt.Sprintf("%s: %s has more than %d entries, the rest is skipped", FileName, name, listBound(name)))
	}
	c.Warnings = append(c.Warnings[:min(len(c.Warnings), maxWarnings-len(added))], added...)
	return nil
}

func listBound(name string) int {
	if n, ok := maxLists[name]; ok {
		return n
	}
	return maxList
}

type bounder struct {
	// texts is the number of truncated strings; lists contains the names of the
	// truncated lists.
	texts int
	lists map[string]bool
}

// visit applies the bounds to a value; name is the name of its field, or of the
// list or object that contains it.
func (b *bounder) visit(v reflect.Value, name string) error {
	switch v.Kind() {
	case reflect.Struct:
		return b.fields(v, name)
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return b.visit(v.Elem(), name)
	case reflect.Slice:
		return b.list(v, name)
	case reflect.Map:
		return b.counts(v, name)
	case reflect.String:
		v.SetString(b.text(v.String()))
	case reflect.Int, reflect.Int64:
		if v.Int() < 0 || v.Int() > maxBytes || v.Kind() == reflect.Int && v.Int() > maxCount {
			return fmt.Errorf("%s is out of range: %d", name, v.Int())
		}
	case reflect.Float64:
		if math.IsNaN(v.Float()) || math.Abs(v.Float()) > maxBytes {
			return fmt.Errorf("%s is out of range: %g", name, v.Float())
		}
	}
	return nil
}

func (b *bounder) fields(v reflect.Value, name string) error {
	if v.Type() == timeType {
		return boundTime(v, name)
	}
	for i := range v.NumField() {
		if err := b.visit(v.Field(i), jsonName(v.Type().Field(i))); err != nil {
			return err
		}
	}
	return nil
}

// boundTime rejects years that cannot occur on a phone or in a repository.
func boundTime(v reflect.Value, name string) error {
	t, _ := v.Interface().(time.Time)
	if t.IsZero() {
		v.Set(reflect.ValueOf(time.Time{}))
		return nil
	}
	if t = t.UTC(); t.Year() < 2000 || t.Year() > 2200 {
		return fmt.Errorf("%s is out of range: year %d", name, t.Year())
	}
	v.Set(reflect.ValueOf(t))
	return nil
}

func (b *bounder) list(v reflect.Value, name string) error {
	if n := listBound(name); v.Len() > n {
		if b.lists == nil {
			b.lists = map[string]bool{}
		}
		b.lists[name] = true
		v.Set(v.Slice(0, n))
	}
	for i := range v.Len() {
		if err := b.visit(v.Index(i), name); err != nil {
			return err
		}
	}
	return nil
}

// maxReasons is the maximum number of different reasons for deaths.
const maxReasons = 50

// counts applies the bounds to a map of counts. If two reasons become equal
// when they are made printable, their counts are added up.
func (b *bounder) counts(v reflect.Value, name string) error {
	in, ok := v.Interface().(map[string]int)
	if !ok {
		return fmt.Errorf("%s: unknown kind of object", name)
	}
	if len(in) > maxReasons {
		return fmt.Errorf("%s has more than %d entries", name, maxReasons)
	}
	out := make(map[string]int, len(in))
	for _, word := range slices.Sorted(maps.Keys(in)) {
		n := in[word]
		word = b.text(word)
		if out[word] += n; n < 0 || n > maxCount || out[word] > maxCount {
			return fmt.Errorf("%s is out of range: %d", name, n)
		}
	}
	v.Set(reflect.ValueOf(out))
	return nil
}

func (b *bounder) text(s string) string {
	short := text.Head(s, maxText)
	if len(short) < len(text.Printable(s)) {
		b.texts++
	}
	return short
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// normalize converts empty lists to the form in which they are read back: nil
// if the field has the option omitempty, otherwise an empty list that is not
// nil.
func normalize(v reflect.Value, tag string) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == timeType {
			return
		}
		for i := range v.NumField() {
			normalize(v.Field(i), v.Type().Field(i).Tag.Get("json"))
		}
	case reflect.Slice, reflect.Map:
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case v.Len() > 0:
		case options == "omitempty":
			v.SetZero()
		case v.Kind() == reflect.Slice && v.IsNil() && !nullable[name]:
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := 0; v.Kind() == reflect.Slice && i < v.Len(); i++ {
			normalize(v.Index(i), "")
		}
	}
}
