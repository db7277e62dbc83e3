package analysis

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/sharktest"
)

// sharkFault is a dump on which Shark 2.14 fails or returns a wrong answer.
type sharkFault struct {
	name string
	dump func(*testing.T) []byte
	// sound is a dump of the same leaks without the fault.
	sound func(*testing.T) []byte
	// failure is Shark's error. If failure is "", wrong returns an error unless
	// Shark's answer is wrong.
	failure string
	wrong   func(a, sound *sharktest.Answer, dump []byte) error
}

// sharkFaults returns the faults of Shark that leakgate does not reproduce.
func sharkFaults() []sharkFault {
	plain := dumpOf(hproftest.Form{}, nil)
	return []sharkFault{
		{"dangling references", dumpOf(hproftest.Form{}, addDanglingReference), plain, "not found in heap dump", nil},
		{"IDs of 8 bytes", dumpOf(hproftest.Form{IDSize: 8}, nil), plain, "Unknown tag 0x00", nil},
		{
			"hprof-conv", dumpOf(hproftest.Form{Converted: true}, nil), plain,
			"NullPointerException at shark.AndroidBuildMirror", nil,
		},
		{
			"no android.os.Build", without("android.os.Build", plain), plain,
			"NullPointerException at shark.AndroidBuildMirror", nil,
		},
		{
			"compositions by number", dumpOf(hproftest.Form{}, addComposition(true)),
			dumpOf(hproftest.Form{}, addComposition(false)),
			"NullPointerException at shark.AndroidObjectInspectors$COMPOSITION_IMPL", nil,
		},
		{"two dumps in one file", concatenate, plain, "", countedTwice},
		{"strings that share a char[]", texts(true), texts(false), "", countedEach},
	}
}

// countedTwice returns an error unless Shark counts twice as many classes as
// the last dump of the file contains.
func countedTwice(a, sound *sharktest.Answer, _ []byte) error {
	const count = "Class count"
	inOneDump, err := strconv.Atoi(sound.Metadata[count])
	if err != nil || a.Metadata[count] != strconv.Itoa(2*inOneDump) {
		return fmt.Errorf("got %s classes, want twice the %d of one dump: %w", a.Metadata[count], inOneDump, err)
	}
	return nil
}

// countedEach returns an error unless a leak retains more bytes than the dump
// contains.
func countedEach(a, _ *sharktest.Answer, dump []byte) error {
	if size := a.Leaks[0].RetainedBytes; size <= int64(len(dump)) {
		return fmt.Errorf("the leak retains only %d bytes, but the dump has %d", size, len(dump))
	}
	return nil
}

// faultCase is the name of the case from which the faulty dumps are made: one
// leak, and nothing on which Shark fails.
const faultCase = "known/message obj, fixed"

// faultHeap returns a heap with one leak.
func faultHeap(t *testing.T) *hproftest.Heap {
	t.Helper()
	for _, c := range hproftest.LeakCases() {
		if c.Name == faultCase {
			return c.Heap()
		}
	}
	t.Fatal("leak case not found")
	return nil
}

func dumpOf(f hproftest.Form, change func(*hproftest.Heap)) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		t.Helper()
		h := faultHeap(t)
		if change != nil {
			change(h)
		}
		data, _, err := h.Dump(f)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
}

// addDanglingReference adds a reference to an object that is not in the dump.
func addDanglingReference(h *hproftest.Heap) {
	h.Set(h.Application(), "mActivityLifecycleCallbacks", h.Missing())
}

// addComposition returns a function that adds a running composition to the path
// to another leak, in the form that newer or older versions of Compose use.
func addComposition(newer bool) func(*hproftest.Heap) {
	return func(h *hproftest.Heap) {
		c := h.Composition
		if newer {
			c = func(parent hproftest.Ref, _ bool) hproftest.Ref { return h.CompositionState(parent, 0) }
		}
		running := c(0, false)
		h.Set(running, "slotTable", h.New(h.Class("com.example.LeakedActivity"), hproftest.Fields{"mDestroyed": true}))
		h.Hold("com.example.Compositions", "sHeld", running)
	}
}

// without returns a function that calls dump and renames a class in the result.
func without(class string, dump func(*testing.T) []byte) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		t.Helper()
		data := dump(t)
		h, records, err := hproftest.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if r.Tag == hprof.TagString && string(r.Body[h.IDSize:]) == class {
				r.Body[len(r.Body)-1]++
			}
		}
		return data
	}
}

// concatenate returns a file with two dumps, one after the other.
func concatenate(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := hproftest.Write(&b, hproftest.Form{}, faultHeap(t), faultHeap(t)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// texts returns a function that dumps a heap with a leak that holds 50 strings.
// The strings either share one char[], like those that substring() created
// before Android 7, or have one char[] each.
func texts(share bool) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		t.Helper()
		h := hproftest.Android(hproftest.Phone{SDK: 23})
		long := h.String(strings.Repeat("y", 20_000))
		all := []hproftest.Ref{long}
		for range 50 {
			all = append(all, h.String("x"))
		}
		leak := h.Activity("com.example.GoneActivity", hproftest.Destroyed)
		h.Set(leak.Ref, "mTitle", h.ArrayList(all...).Ref)
		h.Hold("com.example.Registry", "sHeld", leak.Ref)
		data, ids, err := h.Dump(hproftest.Form{})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range all {
			if share {
				retarget(t, data, ids.Of(text), ids.Value(text), ids.Value(long))
			}
		}
		return data
	}
}

// retarget changes a reference of an object so that it refers to another
// object.
func retarget(t *testing.T, data []byte, object, from, to hprof.ID) {
	t.Helper()
	_, records, err := hproftest.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Sub == hprof.SubInstance && r.Object == object {
			at := bytes.Index(r.Data, binary.BigEndian.AppendUint32(nil, uint32(from)))
			binary.BigEndian.PutUint32(r.Data[at:], uint32(to))
		}
	}
}

// On each faulty dump, Shark fails or returns a wrong answer, and our answer is
// the same as on the dump without the fault.
func TestSharkFaults(t *testing.T) {
	run := askShark(t)
	var sound *sharktest.Answer
	for _, c := range run.cases {
		if c.name == faultCase {
			sound = &c.answers[0].Answer
		}
	}
	for _, f := range sharkFaults() {
		t.Run(f.name, func(t *testing.T) {
			a, data := run.faults[f.name], f.dump(t)
			switch {
			case f.failure != "":
				if !strings.Contains(a.Failure, f.failure) {
					t.Errorf("Shark failed with %q, want %q", a.Failure, f.failure)
				}
			case a.Failure != "" || len(a.Leaks) == 0:
				t.Fatalf("Shark reports %d leaks: %s", len(a.Leaks), a.Failure)
			default:
				if err := f.wrong(&a, sound, data); err != nil {
					t.Errorf("Shark's answer is correct: %v", err)
				}
			}
			compareSound(t, data, f.sound(t))
		})
	}
}

// compareSound compares our answers on a faulty dump with our answers on a
// sound one, and our sizes with those of the plain reader.
func compareSound(t *testing.T, faulty, sound []byte) {
	t.Helper()
	f, other := find(t, faulty, Options{}), find(t, sound, Options{})
	defer f.graph.Close()
	defer other.graph.Close()
	if got, want := f.shapes(), other.shapes(); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	plain, err := hproftest.ReadGraph(faulty)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := f.graph.Classes, other.graph.Classes; got != want {
		t.Errorf("%d classes, want %d", got, want)
	}
	for i := range f.Leaks {
		for j := range f.Leaks[i].Traces {
			o := f.Leaks[i].Traces[j].Leaking().Object
			if got, want := f.graph.Retained(o).Java, plain.Retained(f.graph.ID(o)); got != want {
				t.Errorf("%s retains %d bytes, want %d", f.graph.Class(o), got, want)
			}
		}
	}
}

// shapes returns the leaks without their objects.
func (f *found) shapes() (list []string) {
	for i := range f.Leaks {
		l := &f.Leaks[i]
		for j := range l.Traces {
			line := l.Fingerprint() + " " + l.Traces[j].Root.Kind.String()
			for _, e := range l.Traces[j].Elements {
				line += fmt.Sprintf(" %s %s.%s", e.Class, e.Status, e.Field)
			}
			list = append(list, line)
		}
	}
	slices.Sort(list)
	return list
}
