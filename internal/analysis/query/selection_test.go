package query_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/query"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// cart describes one object of the dump.
type cart struct {
	ref, text              hproftest.Ref
	paid                   bool
	grade                  rune
	price                  float64
	weight                 float64
	tiny, small, count, id int64
	name                   *string // nil for null
	next                   hproftest.Ref
	hidden                 int64
	state                  int
}

var states = []string{"OPEN", "CLOSED"}

var names = []string{
	"", "a", "open", "closed", "closed ", "grün", "Привет", "a😀b", "null", "0x10", strings.Repeat("long text ", 9000),
}

// shop describes carts with random values; all but two of the fields belong to
// a superclass.
func shop(r *rand.Rand, h *hproftest.Heap) (carts []cart) {
	base := h.Declare("com.shop.Base", nil, "boolean paid", "char grade", "float price", "double weight", "byte tiny",
		"short small", "int count", "object name", "int hidden")
	class := h.Declare("com.shop.Cart", base, "long id", "object next", "int hidden", "object state")
	enum := h.Declare("com.shop.State", h.Class("java.lang.Enum"), "object name")
	var constants []hproftest.Ref
	for _, name := range states {
		constants = append(constants, h.New(enum, nil))
		h.SetIn(constants[len(constants)-1], h.Class("java.lang.Enum"), "name", h.String(name))
	}
	texts := map[string]hproftest.Ref{}
	for range 40 {
		c := cart{
			paid: r.IntN(2) == 0, grade: []rune("aßЖ'")[r.IntN(4)], price: float64(float32(r.IntN(8)) / 4),
			weight: []float64{0, math.Copysign(0, -1), 0.1, -3, math.NaN(), math.Inf(1)}[r.IntN(6)],
			tiny:   int64(r.IntN(256) - 128), small: int64(r.IntN(5) - 2), count: int64(r.IntN(4)) - 2,
			id: int64(r.Uint64()>>r.IntN(64)) - 3, hidden: int64(r.IntN(3)), state: r.IntN(2),
		}
		fields := hproftest.Fields{
			"paid": c.paid, "grade": int(c.grade), "price": c.price, "weight": c.weight, "tiny": c.tiny,
			"small": c.small, "count": c.count, "id": c.id, "state": constants[c.state],
		}
		if n := r.IntN(len(names) + 2); n < len(names) {
			c.name = &names[n]
			if texts[*c.name] == 0 || r.IntN(2) == 0 {
				texts[*c.name] = h.String(*c.name)
			}
			c.text = texts[*c.name]
			fields["name"] = c.text
		}
		if len(carts) > 0 && r.IntN(2) == 0 {
			c.next = carts[r.IntN(len(carts))].ref
			fields["next"] = c.next
		}
		c.ref = h.New(class, fields)
		h.SetIn(c.ref, class, "hidden", c.hidden)
		h.SetIn(c.ref, base, "hidden", 77)
		carts = append(carts, c)
	}
	return carts
}

// asked returns a random comparison, and a function that reports whether a cart
// passes it.
func asked(r *rand.Rand, carts []cart, ids hproftest.IDs) (string, func(*cart) bool) {
	like := &carts[r.IntN(len(carts))]
	integers := map[string]func(*cart) int64{
		"tiny": func(c *cart) int64 { return c.tiny }, "small": func(c *cart) int64 { return c.small },
		"count": func(c *cart) int64 { return c.count },
		"id":    func(c *cart) int64 { return c.id }, "hidden": func(c *cart) int64 { return c.hidden },
	}
	orders := []string{"=", "==", "!=", "<", "<=", ">", ">="}
	op := orders[r.IntN(len(orders))]
	same := op[0] == '='
	if op[0] != '!' && !same {
		switch field := []string{"tiny", "small", "count", "id", "hidden", "price", "weight"}[r.IntN(7)]; field {
		case "price":
			return fmt.Sprintf("price%s%v", op, like.price),
				func(c *cart) bool { return ordered(op, c.price, like.price) }
		case "weight":
			return fmt.Sprintf("weight %s %v", op, like.weight),
				func(c *cart) bool { return ordered(op, c.weight, like.weight) }
		default:
			of := integers[field]
			return fmt.Sprintf("%s%s%d", field, op, of(like)),
				func(c *cart) bool { return ordered(op, of(c), of(like)) }
		}
	}
	if same {
		op = orders[r.IntN(2)]
	}
	is := func(text string, equal func(*cart) bool) (string, func(*cart) bool) {
		return text, func(c *cart) bool { return equal(c) == same }
	}
	switch field := []string{
		"tiny", "small", "count", "id", "hidden", "paid", "grade", "price", "weight", "name", "null", "next", "none",
		"state",
	}[r.IntN(14)]; field {
	case "paid":
		return is(fmt.Sprint("paid", op, like.paid), func(c *cart) bool { return c.paid == like.paid })
	case "grade":
		form := []string{"grade%s%c", "grade%s'%c'"}[r.IntN(2)]
		return is(fmt.Sprintf(form, op, like.grade), func(c *cart) bool { return c.grade == like.grade })
	case "price":
		return is(fmt.Sprint("price", op, like.price), func(c *cart) bool { return c.price == like.price })
	case "weight":
		return is(fmt.Sprint("weight", op, like.weight), func(c *cart) bool {
			return c.weight == like.weight || math.IsNaN(c.weight) && math.IsNaN(like.weight)
		})
	case "name":
		text := names[r.IntN(len(names))]
		return is("name"+op+`"`+text+`"`, func(c *cart) bool { return c.name != nil && *c.name == text })
	case "state":
		return is("state"+op+states[like.state], func(c *cart) bool { return c.state == like.state })
	case "none":
		return is("name"+op+"nobody", func(*cart) bool { return false })
	case "null":
		return is("name"+op+"null", func(c *cart) bool { return c.name == nil })
	case "next":
		form := []string{"next%s%#x", "next%s@%#x", "next%s@%x"}[r.IntN(3)]
		return is(fmt.Sprintf(form, op, uint64(ids.Of(like.ref))), func(c *cart) bool { return c.next == like.ref })
	default:
		of := integers[field]
		return is(fmt.Sprint(field, op, of(like)), func(c *cart) bool { return of(c) == of(like) })
	}
}

func ordered[T int64 | float64](op string, a, b T) bool {
	return map[string]bool{"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
}

// TestSelect compares the results of random queries with the description, in
// dumps of each runtime: a String of a JVM has a byte[] and a coder, and a
// String of a phone has a char[] or ASCII.
func TestSelect(t *testing.T) {
	t.Parallel()
	found, missed := 0, 0
	for seed := range uint64(18) {
		r := rand.New(rand.NewPCG(seed, 8))
		h, form := hproftest.Java(seed), hproftest.Form{Runtime: hproftest.HotSpot}
		if seed%2 == 0 {
			form.Runtime = hproftest.ART
			h = hproftest.Android(hproftest.Phone{SDK: []int{19, 23, 34}[seed/2%3]})
		}
		carts := shop(r, h)
		data, ids, err := h.Dump(form)
		if err != nil {
			t.Fatal(err)
		}
		g := load(t, data)
		all := g.Exactly("com.shop.Cart")
		for range 60 {
			var conditions []query.Comparison
			var texts []string
			want := slices.Clone(carts)
			for range 1 + r.IntN(3) {
				text, passes := asked(r, carts, ids)
				c, err := query.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				conditions, texts = append(conditions, c), append(texts, text)
				want = slices.DeleteFunc(want, func(c cart) bool { return !passes(&c) })
			}
			s, err := query.Select(t.Context(), g, all, conditions)
			if err != nil {
				t.Fatalf("%q: %v", texts, err)
			}
			var got, wanted []hprof.ID
			for _, o := range s.Objects {
				got = append(got, g.ID(o))
			}
			for _, c := range want {
				wanted = append(wanted, ids.Of(c.ref))
			}
			slices.Sort(wanted)
			if !slices.Equal(got, wanted) || s.Unread != 0 {
				t.Errorf("seed %d, %.200q: %d objects, want %d; %d unread", seed, texts, len(got), len(wanted),
					s.Unread)
			}
			found, missed = found+len(got), missed+len(all)-len(got)
		}
		g.Close()
	}
	if found < 5000 || missed < 5000 {
		t.Errorf("only %d objects match and %d do not", found, missed)
	}
}

func load(t *testing.T, data []byte) *heap.Graph {
	t.Helper()
	f, err := hprof.Open(t.Context(), bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	g, err := heap.Load(t.Context(), f, heap.Options{Snapshot: -1})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestSelectStripped checks that a comparison with a stripped String has an
// unknown result unless the lengths differ.
func TestSelectStripped(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 3))
		h, form := hproftest.Java(seed), hproftest.Form{Runtime: hproftest.HotSpot}
		if seed%2 == 0 {
			h, form.Runtime = hproftest.Android(hproftest.Phone{SDK: 34}), hproftest.ART
		}
		carts := shop(r, h)
		data, ids, err := h.Dump(form)
		if err != nil {
			t.Fatal(err)
		}
		for _, filler := range []byte{0, '?'} {
			g := load(t, withoutTexts(t, data, filler))
			for _, name := range []string{"closed", "nobody", "a", "a string of another length"} {
				for _, op := range []string{"=", "!="} {
					s, err := query.Select(t.Context(), g, g.Exactly("com.shop.Cart"),
						[]query.Comparison{{Field: "name", Operator: op, Value: name}})
					if err != nil {
						t.Fatal(err)
					}
					var want, got []hprof.ID
					unread := map[hproftest.Ref]bool{}
					for _, c := range carts {
						if c.name != nil && len(utf16.Encode([]rune(*c.name))) == len(name) {
							unread[c.text] = true
						} else if op == "!=" {
							want = append(want, ids.Of(c.ref))
						}
					}
					for _, o := range s.Objects {
						got = append(got, g.ID(o))
					}
					slices.Sort(want)
					if !slices.Equal(got, want) || s.Unread != len(unread) {
						t.Errorf("seed %d, name%s%s: %d objects, want %d; %d unread, want %d", seed, op, name, len(got),
							len(want), s.Unread, len(unread))
					}
				}
			}
			g.Close()
		}
	}
}

// withoutTexts replaces all characters of Strings with a filler, as strippers
// do.
func withoutTexts(t *testing.T, dump []byte, filler byte) []byte {
	t.Helper()
	header, records, err := hproftest.Parse(dump)
	if err != nil {
		t.Fatal(err)
	}
	out := bytes.Clone(dump)
	for _, r := range records {
		if r.Sub != hprof.SubPrimitiveArray {
			continue
		}
		// In the dump, the characters follow a tag, the ID, a serial number,
		// the length and the type (hprof.md).
		at := r.Offset + 1 + header.IDSize + 4 + 4
		data := out[at+1:][:len(r.Data)]
		for i := range data {
			data[i] = filler
			if hprof.Type(out[at]) == hprof.Char && i%2 == 0 {
				data[i] = 0
			}
		}
	}
	return out
}

// TestSelectErrors checks that an impossible field or value results in an
// error, not in an empty result.
func TestSelectErrors(t *testing.T) {
	t.Parallel()
	h := hproftest.Java(1)
	shop(rand.New(rand.NewPCG(1, 1)), h)
	missing := h.Declare("com.shop.Note", nil, "object text")
	h.New(missing, hproftest.Fields{"text": h.New(h.Class("java.lang.String"), nil)})
	h.New(missing, hproftest.Fields{"text": h.String("a")})
	data, _, err := h.Dump(hproftest.Form{Runtime: hproftest.HotSpot})
	if err != nil {
		t.Fatal(err)
	}
	g := load(t, data)
	defer g.Close()
	for text, want := range map[string]string{
		"paid=1": "boolean", "paid<true": "boolean", "grade=ab": "one character", "grade=": "one character",
		"grade<b": "one character", "tiny=128": "8 bits", "tiny=x": "whole number", "tiny=1.5": "whole number",
		"count=2147483648": "32 bits", "price=cheap": "want a number", "name<b": "want = or !=", "id=": "64 bits",
	} {
		c, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = query.Select(t.Context(), g, g.Exactly("com.shop.Cart"), []query.Comparison{c})
		if !errors.As(err, new(*query.ValueError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "paid", "=x", " =x", "a!b", "!"} {
		if c, err := query.Parse(text); err == nil || !strings.Contains(err.Error(), "want FIELD=VALUE") {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
	none := []query.Comparison{{Field: "prise", Operator: "=", Value: "1"}}
	_, err = query.Select(t.Context(), g, g.Exactly("com.shop.Cart"), none)
	if e, ok := errors.AsType[*query.FieldError](err); !ok || e.Field != "prise" ||
		!slices.Equal(slices.Sorted(slices.Values(e.Has)),
			[]string{
				"count", "grade", "hidden", "id", "name", "next", "paid", "price", "small", "state", "tiny", "weight",
			}) {
		t.Errorf("%v, %+v", err, e)
	}
	// A String without characters is neither equal to a string nor different
	// from it.
	for _, op := range []string{"=", "!="} {
		s, err := query.Select(t.Context(), g, g.Exactly("com.shop.Note"),
			[]query.Comparison{{Field: "text", Operator: op, Value: "b"}})
		if err != nil || s.Unread != 1 || len(s.Objects) != map[string]int{"=": 0, "!=": 1}[op] || !s.Text[0] {
			t.Errorf("%s: %+v, %v", op, s, err)
		}
	}
	// Colors are written in hexadecimal.
	c, err := query.Parse("count=0xfffffffe")
	if err != nil {
		t.Fatal(err)
	}
	hex, err := query.Select(t.Context(), g, g.Exactly("com.shop.Cart"), []query.Comparison{c})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := query.Select(t.Context(), g, g.Exactly("com.shop.Cart"),
		[]query.Comparison{{Field: "count", Operator: "=", Value: "-2"}})
	if err != nil || len(plain.Objects) == 0 || !slices.Equal(hex.Objects, plain.Objects) {
		t.Errorf("%v and %v, %v", hex.Objects, plain.Objects, err)
	}
}
