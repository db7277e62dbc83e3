package analysis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

func pathsTo(t testing.TB, dump []byte, class string, id hprof.ID) (*Paths, error) {
	t.Helper()
	return FindPaths(t.Context(), bytes.NewReader(dump), int64(len(dump)), class, id, Options{})
}

// leaking analyzes a dump with all instances of a class treated as leaks, and
// returns the report.
func leaking(t testing.TB, dump []byte, class string) *Report {
	t.Helper()
	r, err := Analyze(t.Context(), bytes.NewReader(dump), int64(len(dump)), Options{LeakingClasses: []string{class}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// cachedShop returns an app with sessions in a map. The map's class belongs to
// Java or, if own is true, to the app. The map contains both list nodes and
// tree nodes.
func cachedShop(t testing.TB, own bool) []byte {
	t.Helper()
	h := hproftest.Android(hproftest.Phone{SDK: 34})
	type f = hproftest.Fields
	session := h.Declare("com.shop.Session", nil, "int number")
	node := h.Class("java.util.LinkedHashMap$Entry")
	tree := h.Declare("java.util.HashMap$TreeNode", node, "object parent")
	var buckets []hproftest.Ref
	for i := range 8 {
		inner := h.New(node, f{"key": h.String(fmt.Sprint("i", i)), "value": h.New(session, nil)})
		if i%2 == 0 {
			inner = h.New(tree, f{"key": h.String(fmt.Sprint("t", i)), "value": h.New(session, nil), "next": inner})
		}
		buckets = append(buckets, inner)
	}
	class := h.Class("java.util.LinkedHashMap")
	if own {
		class = h.Declare("com.shop.Sessions", class, "object owner")
	}
	h.Hold("com.shop.Store", "sAll", h.New(class, f{"table": h.Objects(node, buckets...), "size": 12}))
	dump, _, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	return dump
}

// The instances in a map form one branch, even if the class of the map belongs
// to the app; the same applies to leak traces.
func TestPathsOfSubclasses(t *testing.T) {
	var ways []string
	for _, own := range []bool{false, true} {
		dump := cachedShop(t, own)
		p, err := pathsTo(t, dump, "com.shop.Session", 0)
		if err != nil {
			t.Fatal(err)
		}
		way := ""
		for list := p.Branches; len(list) > 0; list = list[0].Branches {
			if len(list) != 1 || list[0].Instances != 12 {
				t.Fatalf("%d branches, %+v", len(list), list[0])
			}
			way += fmt.Sprintf("%s.%s %d %s\n", list[0].Owner, list[0].Reference, list[0].Objects, list[0].Class)
		}
		ways = append(ways, way)
		if p.Reached != 12 || p.Instances != 12 || p.Bytes != 12*12 || p.Retained != p.Bytes {
			t.Errorf("%+v", p)
		}
		var fields []string
		for _, l := range leaking(t, dump, "com.shop.Session").Leaks {
			for _, e := range l.Trace {
				fields = append(fields, e.Reference)
			}
		}
		if slices.Contains(fields, "table") {
			t.Errorf("leak traces go through %q, want no table", fields)
		}
	}
	if got := strings.ReplaceAll(ways[1], "com.shop.Sessions", "java.util.LinkedHashMap"); got != ways[0] ||
		!strings.HasSuffix(got, "java.util.LinkedHashMap.[x] 12 com.shop.Session\n") {
		t.Errorf("%s\nand\n%s", ways[0], ways[1])
	}
}

// The path to a single object is the same as its path among the paths to all
// objects of its class.
func TestPathsToObjects(t *testing.T) {
	dump := cachedShop(t, true)
	report := leaking(t, dump, "com.shop.Session")
	reached := int64(0)
	for _, l := range report.Leaks {
		for _, text := range l.Objects {
			p, err := pathsTo(t, dump, "", objectNumber(t, text))
			if err != nil || p.Object != text || p.Class != "com.shop.Session" || p.Instances != 1 ||
				len(p.Branches) != 1 {
				t.Fatalf("%+v, %v", p, err)
			}
			reached += p.Reached
		}
	}
	if reached != 12 {
		t.Errorf("found %d objects by ID, want 12", reached)
	}
}

func objectNumber(t testing.TB, text string) (id hprof.ID) {
	t.Helper()
	if _, err := fmt.Sscanf(text, "0x%x", &id); err != nil {
		t.Fatal(err)
	}
	return id
}

// TestPathsClassNames checks the accepted spellings of a class name, and the
// errors for a class that does not exist.
func TestPathsClassNames(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{SDK: 34})
	cart := h.Activity("com.shop.CartActivity", hproftest.Attached)
	for range 2 {
		h.Activity("com.shop.pay.PayActivity", hproftest.Attached)
	}
	h.Hold("com.shop.Store", "sCart", h.Objects(h.Class("com.shop.CartActivity"), cart.Ref))
	dump, ids, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"com.shop.CartActivity", " com/shop/CartActivity\n", "Lcom/shop/CartActivity;"} {
		if p, err := pathsTo(t, dump, name, 0); err != nil || p.Class != "com.shop.CartActivity" || p.Instances != 1 {
			t.Errorf("%q: %+v, %v", name, p, err)
		}
	}
	for _, name := range []string{"com.shop.CartActivity[]", "[Lcom.shop.CartActivity;", "[Lcom/shop/CartActivity;"} {
		if p, err := pathsTo(t, dump, name, 0); err != nil || p.Class != "com.shop.CartActivity[]" || p.Instances != 1 {
			t.Errorf("%q: %+v, %v", name, p, err)
		}
	}
	for asked, want := range map[string]string{
		"cartactivity":              "there is no class cartactivity in the dump; did you mean com.shop.CartActivity?",
		"com.shop.pay.CartActivity": "did you mean com.shop.CartActivity?",
		"com.shop.CartActivtiy":     "did you mean com.shop.CartActivity?",
		"com.shpo.CartActivity":     "did you mean com.shop.CartActivity?",
		"CartActiv":                 "did you mean com.shop.CartActivity, com.shop.CartActivity[]?",
		"com.shop.p*": "there is no class com.shop.p* in the dump; write one full name, without * " +
			"or ?; did you mean com.shop.pay.PayActivity?",
		"P?yA*": "did you mean com.shop.pay.PayActivity?",
		"class com.shop.CartActivity": "write the name only; to see what holds the class itself, use its ID; did you " +
			"mean com.shop.CartActivity?",
		"com.shop.Nothing":      "there is no class com.shop.Nothing in the dump",
		"com.shop.CartActivit[": "did you mean com.shop.CartActivity?",
		"android.app.Activity": "there is no instance of android.app.Activity in the dump; did you mean " +
			"com.shop.pay.PayActivity, com.shop.CartActivity?",
		"com.shop.Store": "there is no instance of com.shop.Store in the dump",
	} {
		_, err := pathsTo(t, dump, asked, 0)
		if !errors.As(err, new(*AbsentError)) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", asked, err, want)
		}
	}
	if _, err := pathsTo(t, dump, "", 1); !errors.As(err, new(*AbsentError)) ||
		err.Error() != "there is no object 0x1 in the dump" {
		t.Errorf("%v", err)
	}
	p, err := pathsTo(t, dump, "", ids.Of(h.Class("com.shop.Store")))
	if err != nil || p.Class != "class com.shop.Store" || p.Reached != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	text, err := json.Marshal(p)
	if err != nil || !strings.Contains(string(text), `"warnings":[]`) {
		t.Errorf("%s, %v", text, err)
	}
}

// A name is recognized as a typo if and only if trying all possible typos finds
// it.
func TestTypos(t *testing.T) {
	letters := "abc"
	var words []string
	for n := range 3 * 3 * 3 * 3 * 3 * 3 {
		word := ""
		for i := n; len(word) < 4+n%3; i /= 3 {
			word += string(letters[i%3])
		}
		words = append(words, word)
	}
	slices.Sort(words)
	words = slices.Compact(words)
	slips := 0
	for _, a := range words {
		edits := edited(a, letters)
		for _, b := range words {
			if isTypo(a, b) != edits[b] || isTypo(b, a) != edits[b] {
				t.Fatalf("%q, %q: %t, want %t", a, b, isTypo(a, b), edits[b])
			}
			if edits[b] {
				slips++
			}
		}
	}
	if slips < 1000 || isTypo("abc", "abd") {
		t.Errorf("got %d typos, want at least 1000", slips)
	}
}

// edited returns a word and all words that are one typo away.
func edited(word, letters string) map[string]bool {
	all := map[string]bool{word: true}
	for i := range len(word) + 1 {
		for _, c := range letters {
			all[word[:i]+string(c)+word[i:]] = true
			if i < len(word) {
				all[word[:i]+string(c)+word[i+1:]] = true
			}
		}
		if i < len(word) {
			all[word[:i]+word[i+1:]] = true
		}
		if i+1 < len(word) {
			all[word[:i]+word[i+1:i+2]+word[i:i+1]+word[i+2:]] = true
		}
	}
	return all
}
