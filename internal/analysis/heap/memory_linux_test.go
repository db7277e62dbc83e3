package heap_test

//unit:program the memory of a process is measured: the test starts itself again

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// synthetic is a dump that is generated while it is being read. It is a
// sequence of parts, each of which repeats a pattern.
type synthetic struct {
	parts []part
	size  int64
}

// part is a repeated pattern. If counted is set, the number of preceding
// repetitions is added to the last 4 bytes of each repetition.
type part struct {
	at, length int64
	pattern    []byte
	counted    bool
}

func (s *synthetic) add(pattern []byte, times int64) {
	p := part{at: s.size, length: times * int64(len(pattern)), pattern: pattern}
	s.parts = append(s.parts, p)
	s.size += p.length
}

func (s *synthetic) ReadAt(b []byte, at int64) (n int, err error) {
	for _, p := range s.parts {
		for n < len(b) && at >= p.at && at < p.at+p.length {
			first := (at - p.at) % int64(len(p.pattern))
			pattern := p.pattern
			if p.counted {
				pattern = p.count((at - p.at) / int64(len(p.pattern)))
			}
			k := copy(b[n:min(len(b), n+int(p.at+p.length-at))], pattern[first:])
			n, at = n+k, at+int64(k)
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (p *part) count(n int64) []byte {
	pattern := bytes.Clone(p.pattern)
	last := pattern[len(pattern)-4:]
	binary.BigEndian.PutUint32(last, binary.BigEndian.Uint32(last)+uint32(n))
	return pattern
}

// segment adds the header of a segment whose body has the given number of
// bytes.
func (s *synthetic) segment(tag hprof.Tag, body int64) {
	s.add(binary.BigEndian.AppendUint32([]byte{byte(tag), 0, 0, 0, 0}, uint32(body)), 1)
}

// begin adds the header, a class C with one reference, and a root, which is
// object 0x1000.
func (s *synthetic) begin(tb testing.TB) {
	w := newScribe(4)
	w.class(0x100, "C", 8, 1)
	w.Root(hprof.Root{Kind: hprof.SubRootUnknown, Object: 0x1000})
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	s.add(bytes.Clone(w.out.Bytes()), 1)
	s.size = s.parts[0].length
}

// array adds an array of 4-byte elements as a separate segment.
func (s *synthetic) array(id uint32, class uint32, count uint32, element []byte) {
	head := []byte{byte(hprof.SubObjectArray)}
	for _, v := range []uint32{id, 0, count, class} {
		head = binary.BigEndian.AppendUint32(head, v)
	}
	if class == 0 {
		head[0] = byte(hprof.SubPrimitiveArray)
		head = append(head[:13], byte(hprof.Int))
	}
	s.segment(hprof.TagHeapDumpSegment, int64(len(head))+4*int64(count))
	s.add(head, 1)
	s.add(bytes.Repeat(element, 1<<14), int64(count)>>14)
}

// giants holds dumps of 500 MB with almost no objects, and dumps of 100 MB that
// Load must refuse although everything is in one segment.
var giants = map[string]struct {
	make func(tb testing.TB, s *synthetic)
	// most is the maximum peak memory of the whole process, in MB.
	most    int64
	limit   int64
	refused bool
}{
	"primitive arrays":                 {make: arrays(0, 0), most: 100},
	"arrays of null":                   {make: arrays(0x100, 0), most: 100},
	"arrays that hold the same object": {make: arrays(0x100, 0x1000), most: 100},
	"arrays that hold the next array":  {make: arrays(0x100, 0x1100), most: 100},
	"small objects in one segment": {
		make: crumbs(hprof.SubInstance, 0x2000, 0, 0x100), most: 160, limit: 40 << 20, refused: true,
	},
	"objects of many classes": {
		make: crumbs(hprof.SubObjectArray, 0x2000, 0, 0, 0x20000000), most: 160, limit: 40 << 20, refused: true,
	},
	"roots of missing objects": {make: crumbs(hprof.SubRootUnknown, 0x2000), most: 160, limit: 40 << 20, refused: true},
	"empty class records": {
		make: crumbs(hprof.SubClassDump, 0x2000, 0, 0, 0, 0, 0, 0, 0, 0), most: 160, limit: 40 << 20, refused: true,
	},
}

// arrays returns a function that generates a dump with 5 arrays of 100 MB each.
func arrays(class, element uint32) func(testing.TB, *synthetic) {
	return func(tb testing.TB, s *synthetic) {
		s.begin(tb)
		for i := range uint32(5) {
			s.array(0x1000+i*0x100, class, 25<<20, binary.BigEndian.AppendUint32(nil, element))
		}
	}
}

// crumbs returns a function that generates a dump of one small record, repeated
// in one segment. If the record is an array, its last word is a counter, so
// each array has a different class.
func crumbs(kind hprof.SubTag, words ...uint32) func(testing.TB, *synthetic) {
	return func(tb testing.TB, s *synthetic) {
		s.begin(tb)
		record := []byte{byte(kind)}
		for _, v := range words {
			record = binary.BigEndian.AppendUint32(record, v)
		}
		switch kind {
		case hprof.SubInstance:
			// No fields.
			record = append(record, 0, 0, 0, 0)
		case hprof.SubClassDump:
			// There are no constants, static fields or instance fields.
			record = append(record, 0, 0, 0, 0, 0, 0)
		}
		times := int64(100<<20) / int64(len(record))
		s.segment(hprof.TagHeapDumpSegment, times*int64(len(record)))
		s.add(record, times)
		s.parts[len(s.parts)-1].counted = kind == hprof.SubObjectArray
	}
}

const peakOf = "LEAKGATE_TEST_HEAP_PEAK"

// TestPeak loads giants, each in its own process, and checks the process's peak
// memory.
func TestPeak(t *testing.T) {
	if name := os.Getenv(peakOf); name != "" {
		loadGiant(t, name)
		return
	}
	if racing {
		t.Skip("the race detector uses additional memory")
	}
	for name, giant := range giants {
		t.Run(name, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPeak$", "-test.v")
			child.Env = append(os.Environ(), peakOf+"="+name)
			out, err := child.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			peak := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(out)
			if peak == nil {
				t.Fatalf("no peak memory in\n%s", out)
			}
			kb, err := strconv.ParseInt(string(peak[1]), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d MB", kb>>10)
			if kb>>10 > giant.most {
				t.Errorf("got a peak of %d MB, want at most %d MB", kb>>10, giant.most)
			}
		})
	}
}

// loadGiant loads a giant in the child process.
func loadGiant(t *testing.T, name string) {
	giant := giants[name]
	s := &synthetic{}
	giant.make(t, s)
	f, err := hprof.Open(t.Context(), s, s.size)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { t.Log(status(t, "VmHWM")) }()
	g, err := heap.Load(t.Context(), f, heap.Options{Workers: 2, Limit: giant.limit, Snapshot: -1})
	if giant.refused != errors.As(err, new(*heap.MemoryError)) || err != nil && !giant.refused {
		t.Fatalf("%v", err)
	}
	if err == nil {
		o, _ := g.Find(0x1000)
		if g.Retained(o).Java < 100<<20 || g.Objects != 6 {
			t.Errorf("got %v retained and %d objects", g.Retained(o), g.Objects)
		}
		g.Close()
	}
}

// status returns a line of this process's status file in /proc.
func status(t *testing.T, key string) string {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(key + `:.*`).Find(b)
	if line == nil {
		t.Fatalf("no %s in %s", key, b)
	}
	return string(line)
}

// TestCancelGivesBack cancels many loads early and checks that no address space
// is leaked.
func TestCancelGivesBack(t *testing.T) {
	if racing {
		t.Skip("the race detector uses additional memory")
	}
	const objects, rounds = 600_000, 5
	dump := chain(t, objects)
	phases := phasesOf(t, dump)
	lost := func() int64 {
		var kb int64
		if _, err := fmt.Sscanf(status(t, "VmSize"), "VmSize: %d kB", &kb); err != nil {
			t.Fatal(err)
		}
		return kb >> 10
	}
	before := int64(0)
	for round := range rounds {
		for i := range phases {
			ctx, cancel := context.WithCancel(t.Context())
			f, _ := watch(t, dump)
			met := 0
			_, err := heap.Load(ctx, f, heap.Options{Phase: func(string) {
				if met++; met == i+1 {
					cancel()
				}
			}})
			if cancel(); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		if round == 0 {
			before = lost()
		}
	}
	// A load takes at least 10 MB; the runtime may reserve 64 MB at a time for
	// itself.
	if grown := lost() - before; grown > 100 {
		t.Errorf("%d MB of address space leaked", grown)
	}
}
