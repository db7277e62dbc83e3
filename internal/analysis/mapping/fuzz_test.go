package mapping

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzRead reads arbitrary input. A mapping must translate words of the input
// only to words of the input, and its memory must be bounded by the size of the
// input.
func FuzzRead(f *testing.F) {
	for seed := range uint64(5) {
		f.Add([]byte(wild(seed)))
		f.Add([]byte(newModel(seed).text.String()))
	}
	f.Add([]byte("A -> a:\n    1:0:void -> b\n    :1:int x():1: -> c\n    int a[] b -> c\n->:\n- > -:\n# " +
		"{'a':\"\\\"}\n#{id:'sourceFile',fileName:'\\u'}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read(bytes.NewReader(data))
		if (m == nil) == (err == nil) {
			t.Fatalf("%v, %v", m, err)
		}
		if err != nil {
			return
		}
		checkBounds(t, m, data)
		words := questions(string(data))
		for _, class := range words {
			original := m.Class(class)
			if original != class && !bytes.Contains(data, []byte(strings.TrimRight(original, "[]"))) {
				t.Errorf("class %q: %q", class, original)
			}
			if array := m.Class(class + "[]"); array != original+"[]" && !strings.HasSuffix(class, "]") &&
				!strings.HasSuffix(class, "[") {
				t.Errorf("class %q[]: %q", class, array)
			}
			for _, name := range words {
				if got := m.Field(original, name); got != name && !bytes.Contains(data, []byte(got)) {
					t.Errorf("field %q of %q: %q", name, original, got)
				}
				checkFrames(t, m, data, class, name)
			}
		}
		if m.Fit(words).Found > m.Classes || Obfuscated(words) != nil && len(words) < fewShort {
			t.Error("Fit found more classes than the mapping has, or Obfuscated found short names among too few")
		}
	})
}

func checkBounds(t *testing.T, m *Mapping, data []byte) {
	lines := bytes.Count(data, []byte("\n")) + 1
	if m.Classes != len(m.classes) || m.Classes+m.Fields+m.Methods > lines || len(m.Warnings) > doubts {
		t.Errorf("got %d classes, %d fields, %d methods and %d warnings from %d lines", m.Classes, m.Fields, m.Methods,
			len(m.Warnings), lines)
	}
	// The names cannot be longer than the input: each name is in the input,
	// possibly as an escape, which is longer than the decoded name.
	if m.names.text.Len() > len(data) {
		t.Errorf("names take %d bytes, but the input has only %d", m.names.text.Len(), len(data))
	}
	members := 0
	for _, c := range m.classes {
		members += len(c.members)
	}
	if members > 3*len(data) {
		t.Errorf("members take %d bytes for an input of %d bytes", members, len(data))
	}
	for _, w := range m.Warnings {
		if len(w.Error()) > 1<<10 || strings.ContainsAny(w.Error(), "\n\x1b") {
			t.Errorf("warning %q", w)
		}
	}
}

func checkFrames(t *testing.T, m *Mapping, data []byte, class, name string) {
	for _, line := range []int32{-3, 0, 1, 2, 1 << 30} {
		frames := m.Frame(class, name, line)
		if len(frames) > maxFrames {
			t.Errorf("%d frames", len(frames))
		}
		last := int32(0)
		for _, f := range frames {
			if f.Alternative != last && f.Alternative != last+1 {
				t.Errorf("alternative %d follows alternative %d", f.Alternative, last)
			}
			last = f.Alternative
			if f.Line < min(line, 0) || f.Class != class && !bytes.Contains(data, []byte(f.Class)) ||
				f.Method != name && !bytes.Contains(data, []byte(f.Method)) {
				t.Errorf("%q.%q:%d: %+v", class, name, line, f)
			}
		}
	}
}

// questions returns the first words of an input, few enough to try all pairs.
func questions(text string) []string {
	words := strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" \t\n\r:(),\"{}", c) })
	return append(words[:min(len(words), 24)], "", "a", "[]")
}
