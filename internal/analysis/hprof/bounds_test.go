package hprof_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// repeating is a dump that is generated while it is being read: a header and
// one repeated record, in which the first ID is a counter.
type repeating struct {
	head, record []byte
	// id is the position of the counter in the record; 0 means that there is no
	// counter.
	id    int
	times int64
}

func (r *repeating) size() int64 { return int64(len(r.head)) + r.times*int64(len(r.record)) }

func (r *repeating) ReadAt(b []byte, at int64) (n int, err error) {
	if at < int64(len(r.head)) {
		n = copy(b, r.head[at:])
	}
	for n < len(b) && at+int64(n) < r.size() {
		rest := at + int64(n) - int64(len(r.head))
		if i := rest / int64(len(r.record)); r.id > 0 {
			binary.BigEndian.PutUint32(r.record[r.id:], uint32(i))
		}
		n += copy(b[n:], r.record[rest%int64(len(r.record)):])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// The test repeats the smallest records of all kinds: memory use must be at
// most a small multiple of the dump's bytes, and empty records must not use any
// memory.
func TestOpenMemory(t *testing.T) {
	const size = 16 << 20
	root := func(d *dump) { d.root(hprof.SubRootStickyClass, 1) }
	for name, c := range map[string]struct {
		record func(d *dump)
		id     int
		// most is the maximum number of bytes allocated per byte of the dump.
		most float64
	}{
		"empty segments":  {func(d *dump) { d.record(hprof.TagHeapDumpSegment) }, 0, 0.1},
		"empty heaps":     {func(d *dump) { d.record(hprof.TagHeapDump) }, 0, 0.1},
		"end records":     {func(d *dump) { d.record(hprof.TagHeapDumpEnd) }, 0, 0.1},
		"skipped records": {func(d *dump) { d.record(hprof.TagHeapSummary) }, 0, 0.1},
		"segments with one root": {func(d *dump) {
			d.segment(hprof.TagHeapDumpSegment, func() { root(d) })
		}, 0, 4},
		"heaps with one root": {func(d *dump) { d.segment(hprof.TagHeapDump, func() { root(d) }) }, 0, 2},
		"empty strings":       {func(d *dump) { d.record(hprof.TagString, hprof.ID(1)) }, 9, 4},
		"strings":             {func(d *dump) { d.record(hprof.TagString, hprof.ID(1), "a") }, 9, 4},
		"classes": {
			func(d *dump) { d.record(hprof.TagLoadClass, uint32(1), hprof.ID(20), uint32(2), hprof.ID(100)) }, 13, 4,
		},
		"frames": {func(d *dump) {
			d.record(hprof.TagStackFrame, hprof.ID(0), hprof.ID(1), hprof.ID(1), hprof.ID(0), uint32(1), int32(-3))
		}, 9, 4},
		"traces": {func(d *dump) { d.record(hprof.TagStackTrace, uint32(2), uint32(5), uint32(0)) }, 9, 4},
		"traces with one frame": {
			func(d *dump) { d.record(hprof.TagStackTrace, uint32(2), uint32(5), uint32(1), hprof.ID(7)) }, 9, 4,
		},
		"threads": {func(d *dump) {
			d.record(hprof.TagStartThread, uint32(5), hprof.ID(30), uint32(2), hprof.ID(100), hprof.ID(101),
				hprof.ID(0))
		}, 9, 4},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDump(hprof.Format102, 4)
			c.record(d)
			r := &repeating{head: bytes.Clone(d.b[:headerLen]), record: d.b[headerLen:], id: c.id}
			r.times = size / int64(len(r.record))
			allocated := func(memory int64) (float64, error) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				f, err := hprof.OpenWithin(t.Context(), r, r.size(), memory)
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(f)
				return float64(after.TotalAlloc-before.TotalAlloc-256<<10) / size, err
			}
			got, err := allocated(0)
			t.Logf("allocated %.2f bytes per byte of the dump", got)
			if got > c.most || err != nil && !errors.As(err, new(*hprof.DamageError)) {
				t.Errorf("allocated %.2f bytes per byte of the dump, want at most %.2f; %v", got, c.most, err)
			}
			if c.most < 4 {
				return
			}
			// If the limit is half the size of the dump, the dump must be
			// refused before more than its size is allocated.
			var refused *hprof.MemoryError
			limit := int64(size / 2)
			if got, err := allocated(limit); !errors.As(err, &refused) || refused.Limit != limit ||
				refused.Need <= limit || got > 1 {
				t.Errorf("limit of %d bytes: %.2f bytes allocated per byte of the dump, %v", limit, got, err)
			}
			if _, err := allocated(5 * size); err != nil {
				t.Errorf("sufficient limit: %v", err)
			}
		})
	}
}
