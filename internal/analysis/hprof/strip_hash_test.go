package hprof_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/jvmtest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// place is the position of a value that must be erased, with the class of the
// value's object and the name of its field. The name is "" if no class declares
// a field there.
type place struct {
	at, size    int64
	class, name string
}

// hashes is a second implementation of the search for the hashes of a heap; it
// returns their positions.
func (n *naive) hashes(data []byte, h *naiveHeap) (all []place) {
	type declared struct {
		super  hprof.ID
		fields []hprof.Field
	}
	ids, loaded, classes := n.header.IDSize, n.classNames(), map[hprof.ID]declared{}
	statics := func(at int64) declared {
		c := &cursor{data[at+1:], ids}
		var d declared
		_ = caught(func() {
			c.take(uint64(ids + 4))
			d.super = c.id()
			c.take(uint64(5*ids + 4))
			for range c.u2() {
				c.u2()
				_, size := c.kind()
				c.take(uint64(size))
			}
			for range c.u2() {
				name := c.id()
				t, size := c.kind()
				from, rest := int64(len(data)-len(c.b)), int64(min(size, len(c.b)))
				if n.isHash(name, t) && rest > 0 {
					all = append(all, place{from, rest, "static", n.names[name]})
				}
				c.take(uint64(size))
			}
			for range c.u2() {
				name := c.id()
				t, _ := c.kind()
				d.fields = append(d.fields, hprof.Field{Name: name, Type: t})
			}
		})
		return d
	}
	for _, i := range h.items {
		if i.Kind == hprof.SubClassDump {
			classes[i.Object] = statics(i.Offset)
		}
	}
	instance := func(at int64, class hprof.ID, size int64) {
		body := at + int64(9+2*ids)
		from, name := int64(0), loaded[class]
		for class, ok := classes[class]; ok; class, ok = classes[class.super] {
			for _, f := range class.fields {
				size := min(int64(f.Type.Size(ids)), size-from)
				if n.isHash(f.Name, f.Type) && size > 0 {
					all = append(all, place{body + from, size, name, n.names[f.Name]})
				}
				if from += size; size < int64(f.Type.Size(ids)) {
					return
				}
			}
			if class.super == 0 {
				break
			}
		}
		if from < size {
			all = append(all, place{body + from, size - from, name, ""})
		}
	}
	for _, i := range h.items {
		if i.Kind == hprof.SubInstance {
			instance(i.Offset, i.Class, int64(i.Count))
		}
	}
	at := h.truncated
	if at < 0 {
		return all
	}
	switch rest := int64(len(data)) - at - int64(9+2*ids); {
	case data[at] == byte(hprof.SubInstance) && rest > 0:
		c := &cursor{data[at+int64(5+ids):], ids}
		instance(at, c.id(), rest)
	case data[at] == byte(hprof.SubClassDump):
		statics(at)
	}
	return all
}

func (n *naive) isHash(name hprof.ID, t hprof.Type) bool {
	text, ok := n.names[name]
	return t != hprof.Object && (!ok || regexp.MustCompile(`hash|Hash|HASH`).MatchString(text))
}

// classNames returns the names of the classes by ID, in the form used in source
// code.
func (n *naive) classNames() map[hprof.ID]string {
	names := map[hprof.ID]string{}
	for _, c := range n.classes {
		names[c.Class] = strings.ReplaceAll(n.names[c.Name], "/", ".")
	}
	return names
}

// attack recovers strings from a dump without using its string contents. It
// looks up the value of each int field of each instance in the dictionary of
// hashes. It also inverts the hash spreading of java.util.HashMap,
// independently of the code under test, and looks up the result. It returns the
// strings that it found, with repetitions.
func attack(data []byte, dictionary map[uint32]string) (found []string) {
	n := readNaive(data)
	loaded, ids := n.classNames(), n.header.IDSize
	for _, h := range n.heaps {
		classes := map[hprof.ID]hprof.Class{}
		for _, i := range h.items {
			if i.Kind == hprof.SubClassDump {
				c := &cursor{data[i.Offset+1:], ids}
				classes[i.Object] = c.classDump()
			}
		}
		for _, i := range h.items {
			if i.Kind != hprof.SubInstance || !keepsHashes(loaded[i.Class]) {
				continue
			}
			at := 0
			for c, ok := classes[i.Class]; ok; c, ok = classes[c.Super] {
				for _, f := range c.Fields {
					if name := n.names[f.Name]; f.Type == hprof.Int && (name == "hash" || name == "hashCode") {
						v := binary.BigEndian.Uint32([]byte(i.Body[at:]))
						for _, v := range []uint32{v, v ^ v>>16} {
							if text, ok := dictionary[v]; ok {
								found = append(found, text)
								break
							}
						}
					}
					at += f.Type.Size(ids)
				}
			}
		}
	}
	return found
}

// keepsHashes reports whether a class contains hashes of strings in every dump.
func keepsHashes(class string) bool {
	return class == "java.lang.String" || strings.HasPrefix(class, "java.util.") &&
		(strings.HasSuffix(class, "Entry") || strings.HasSuffix(class, "$Node"))
}

// dictionary returns a map from hashes to strings, for all numbers of 4 to 6
// digits and for common words.
func dictionary() map[uint32]string {
	all := map[uint32]string{}
	for digits, end := 4, 10_000; digits <= 6; digits, end = digits+1, 10*end {
		for n := range end {
			text := fmt.Sprintf("%0*d", digits, n)
			all[hashOf(text)] = text
		}
	}
	for _, word := range []string{
		"password", "account", "phone", "true", "false", "name", "email", "user", "login", "token", "session",
		"secret", "address", "android", "google", "contact", "message", "location", "birthday",
	} {
		all[hashOf(word)] = word
	}
	return all
}

// The attack finds PINs and one-time codes without using the string contents in
// a dump; in stripped dumps, it must not find anything.
func TestStripTakesHashes(t *testing.T) {
	texts, before, read := dictionary(), 0, 0
	for _, name := range dumps {
		t.Run(name, func(t *testing.T) {
			data := recorded.Read(t, "hprof", name)
			read++
			found := attack(data, texts)
			before += len(found)
			t.Logf("found %d strings in the original dump, such as %.10q", len(found), found)
			stripped, done, err := strip(data)
			if err != nil || done.Hashes == 0 {
				t.Fatalf("%+v, %v", done, err)
			}
			if found := attack(stripped, texts); len(found) > 0 {
				t.Errorf("found %d strings in the stripped dump: %.10q", len(found), found)
			}
		})
	}
	if before < 100 && read == len(dumps) {
		t.Errorf("found only %d strings in the original dumps", before)
	}
}

// Every instance of the recorded dumps has exactly the fields that its classes
// declare, so only hashes are erased: ints in fields whose names contain the
// word hash.
func TestStripTakesNoMoreThanHashes(t *testing.T) {
	fields, read := map[string]int64{}, 0
	for _, name := range dumps {
		t.Run(name, func(t *testing.T) {
			data := recorded.Read(t, "hprof", name)
			read++
			n := readNaive(data)
			for _, h := range n.heaps {
				for _, p := range n.hashes(data, &h) {
					if p.class != "static" && p.size != 4 {
						t.Errorf("erases %d bytes of %s.%s", p.size, p.class, p.name)
					}
					if p.class != "static" {
						fields[p.name] = p.size
					}
				}
			}
		})
	}
	want := []string{
		"_hash", "hash", "hashCode", "hashCodeCache", "hashCodeForCache", "hashCodeValue", "hashValue", "hashcode",
		"mHash", "threadLocalHashCode",
	}
	if got := slices.Sorted(maps.Keys(fields)); !slices.Equal(got, want) && read == len(dumps) {
		t.Errorf("erased fields %q, want %q", got, want)
	}
}

// secrets returns strings that a stripped dump can reveal only by their hashes.
// No other value of a dump is equal to one of these hashes.
func secrets() (all []string) {
	for i := range 40 {
		all = append(all, strconv.Itoa(493_817+i*12_011))
	}
	return all
}

// traces counts the positions in a dump, of any layout, that contain the hash
// of one of the strings: the hash itself, or the form that hash tables store.
func traces(data []byte, texts []string) (count int) {
	for _, text := range texts {
		hash := hashOf(text)
		for _, v := range []uint32{hash, hash ^ hash>>16} {
			for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
				count += bytes.Count(data, order.AppendUint32(nil, v))
			}
		}
	}
	return count
}

// The dump contains hash tables of each type with secret keys, for every
// runtime and ID size; the stripped dump must not contain the hashes of these
// keys.
func TestStripTakesHashesOfKeys(t *testing.T) {
	for _, ids := range []int{4, 8} {
		for _, runtime := range []hproftest.Runtime{hproftest.ART, hproftest.HotSpot} {
			for _, sdk := range []int{21, 23, 34} {
				h := hproftest.Android(hproftest.Phone{SDK: sdk})
				for i, table := range []func(...hproftest.Ref) hproftest.Ref{
					h.HashMap, h.LinkedHashMap, h.ConcurrentHashMap, h.WeakHashMap, h.HashSet,
				} {
					var pairs []hproftest.Ref
					for _, text := range secrets() {
						pairs = append(pairs, h.String(text))
					}
					h.Hold(fmt.Sprintf("com.example.Pins%d", i), "sPins", table(pairs...))
				}
				form := hproftest.Form{Runtime: runtime, IDSize: ids, Shuffle: true}
				data, _, err := h.Dump(form)
				if err != nil {
					t.Fatal(err)
				}
				stripped, _ := checkStripped(t, data)
				if before, after := traces(data, secrets()), traces(stripped, secrets()); before < 5*40 || after > 0 {
					t.Errorf("%+v, API %d: %d hashes in the dump, %d in the stripped dump", form, sdk, before, after)
				}
			}
		}
	}
}

// This is the same check for a JVM: the strings that a program reads are in its
// hash tables.
func TestStripTakesHashesOfJVM(t *testing.T) {
	j := jvmtest.New(t)
	jar := j.Compile(t,
		jvmtest.Files{"Console.java": jvmtest.Shop()["Console.java"], "Pins.java": `package com.example.pins;

import com.example.stage.Console;
import java.util.*;
import java.util.concurrent.*;

public final class Pins {
    static final List<Map<String, Object>> TABLES = new ArrayList<>();
    static final Set<String> SET = new HashSet<>();

    public static void main(String[] args) throws Exception {
        Collections.addAll(TABLES, new HashMap<>(), new LinkedHashMap<>(), new ConcurrentHashMap<>(),
            new Hashtable<>(), new WeakHashMap<>(), new TreeMap<>());
        for (String pin : args) {
            for (Map<String, Object> table : TABLES) {
                table.put(pin, table);
            }
            SET.add(pin);
        }
        Console.serve(() -> {});
    }
}
`})
	// Four bytes of a dump, such as a part of an address, equal one of the 160
	// patterns by chance in one run of thirty. A hash that was not removed is
	// found in every run.
	left := map[string]int{}
	const runs = 2
	for range runs {
		data, err := os.ReadFile(j.Start(t, jar, "com.example.pins.Pins", secrets()...).Dump(t))
		if err != nil {
			t.Fatal(err)
		}
		stripped, _ := checkStripped(t, data)
		if n := traces(data, secrets()); n < 6*40 {
			t.Errorf("got %d hashes in the dump, want at least %d", n, 6*40)
		}
		for _, text := range secrets() {
			if traces(stripped, []string{text}) > 0 {
				left[text]++
			}
		}
	}
	for text, n := range left {
		if n == runs {
			t.Errorf("the hash of %s is in every stripped dump", text)
		}
	}
}

// These are the IDs of the names in the following dumps.
const (
	nameHash    hprof.ID = 100 + iota // hash
	nameCode                          // hashCode
	nameIsZero                        // hashIsZero
	nameCount                         // count
	nameSeed                          // static HASH_SEED
	nameHasHad                        // mHasHadFocus
	nameMissing                       // a name that is not in the dump
)

// hashDump returns a dump that contains only the names of the fields.
func hashDump(ids int) *dump {
	d := newDump(hprof.Format102, ids)
	for i, text := range []string{"hash", "hashCode", "hashIsZero", "count", "HASH_SEED", "mHasHadFocus"} {
		d.record(hprof.TagString, nameHash+hprof.ID(i), text)
	}
	return d
}

// declareClass appends a class. Fields are given by name and type, static
// fields also by value.
func (d *dump) declareClass(id, super hprof.ID, statics []any, fields ...any) {
	d.put(hprof.SubClassDump, id, uint32(0), super, hprof.ID(0), hprof.ID(0), hprof.ID(0), hprof.ID(0), hprof.ID(0),
		uint32(0), uint16(0))
	d.put(uint16(len(statics) / 3)).put(statics...)
	d.put(uint16(len(fields) / 2)).put(fields...)
}

// This checks which fields of instances are erased: those that the classes of
// their own heap declare as hashes, wherever these classes are, and everything
// that no class declares.
func TestStripHashFields(t *testing.T) {
	const text, node, base, missing hprof.ID = 1, 2, 3, 4
	for _, ids := range []int{4, 8} {
		object := strings.Repeat("O", ids)
		d, want := hashDump(ids), []string{}
		instance := func(class hprof.ID, fields, left string) {
			d.instance(9, class, fields)
			want = append(want, left)
		}
		zeros := func(n int) string { return strings.Repeat("\x00", n) }
		d.segment(hprof.TagHeapDumpSegment, func() {
			// The instance comes before its class.
			instance(text, object+"HHHHZcccc", object+zeros(5)+"cccc")
			instance(missing, "HHHH", zeros(4))
		})
		d.segment(hprof.TagHeapDumpSegment, func() {
			d.declareClass(text, 0,
				[]any{nameSeed, hprof.Int, "SSSS", nameCount, hprof.Int, "kept", nameHasHad, hprof.Int, "plus"},
				nameHash, hprof.Object, nameHash, hprof.Int, nameIsZero, hprof.Boolean, nameCount, hprof.Int)
			// An instance's own fields precede those of its superclass.
			d.declareClass(node, base, nil, nameCount, hprof.Short, nameCode, hprof.Long)
			d.declareClass(base, 0, nil, nameMissing, hprof.Char, nameMissing, hprof.Object, nameHash, hprof.Int)
			instance(text, object+"HHHHZcccc", object+zeros(5)+"cccc")
			instance(node, "ccHHHHHHHHHH"+object+"HHHH", "cc"+zeros(10)+object+zeros(4))
			// The next instances are longer than their class declares, and
			// shorter.
			instance(text, object+"HHHHZccccZZZZ", object+zeros(5)+"cccc"+zeros(4))
			instance(text, object+"HH", object+zeros(2))
		})
		d.record(hprof.TagHeapDumpEnd)
		// In the second heap, the same ID identifies a different class.
		d.segment(hprof.TagHeapDumpSegment, func() {
			d.declareClass(text, base, nil, nameCount, hprof.Int)
			// The superclass is missing.
			instance(text, "ccccHHHH", "cccc"+zeros(4))
		})
		got, done := checkStripped(t, d.b)
		var left []string
		for _, h := range readNaive(got).heaps {
			for _, i := range h.items {
				if i.Kind == hprof.SubInstance {
					left = append(left, i.Body)
				}
			}
		}
		if !slices.Equal(left, want) || done.Hashes == 0 {
			t.Errorf("%d-byte IDs: %+v\n%q\nwant\n%q", ids, done, left, want)
		}
		if bytes.Contains(got, []byte("SSSS")) || !bytes.Contains(got, []byte("kept")) ||
			!bytes.Contains(got, []byte("plus")) {
			t.Errorf("%d-byte IDs: static fields %q", ids, got)
		}
		for n := range d.b {
			got, _ := checkStripped(t, d.b[:n])
			if bytes.ContainsAny(got[min(len(got), headerLen+6*(9+ids+10)):], "HSZ") {
				t.Fatalf("%d-byte IDs: truncated at %d: %q", ids, n, got)
			}
		}
	}
}

// A class that is its own superclass, as is possible in a damaged dump, has an
// infinite number of fields.
func TestStripCircle(t *testing.T) {
	d := hashDump(4)
	d.segment(hprof.TagHeapDumpSegment, func() {
		d.declareClass(1, 2, nil, nameHash, hprof.Int)
		d.declareClass(2, 1, nil, nameCount, hprof.Int)
		d.instance(9, 1, strings.Repeat("HHHHcccc", 10))
	})
	got, _ := checkStripped(t, d.b)
	if bytes.Contains(got, []byte("HHHH")) || bytes.Count(got, []byte("cccc")) != 10 {
		t.Errorf("%q", got)
	}
}
