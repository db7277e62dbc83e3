package hproftest

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Damage: each gives a broken copy of a dump, as real ones are broken.

// Cut leaves the first n bytes, as when the process died, the disk was full or a pull
// ended early.
func Cut(dump []byte, n int) []byte { return slices.Clone(dump[:min(max(n, 0), len(dump))]) }

// Flip changes n bits at places that the seed chooses.
func Flip(dump []byte, seed uint64, n int) []byte {
	out := slices.Clone(dump)
	for i := range n {
		v := mix(seed, uint64(i))
		if len(out) > 0 {
			out[v%uint64(len(out))] ^= 1 << (v >> 61)
		}
	}
	return out
}

// Retag gives the record number n another tag. Records are counted as Parse lists
// them, heap records among the others.
func Retag(dump []byte, n int, tag byte) ([]byte, error) {
	r, err := recordAt(dump, n)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(dump)
	out[r.Offset] = tag
	return out, nil
}

// Redeclare makes the record number n, which is not a heap record, declare another
// length.
func Redeclare(dump []byte, n int, length uint32) ([]byte, error) {
	r, err := recordAt(dump, n)
	if err != nil {
		return nil, err
	}
	if r.Sub != 0 {
		return nil, fmt.Errorf("damage the dump: record %d is a heap record", n)
	}
	out := slices.Clone(dump)
	binary.BigEndian.PutUint32(out[r.Offset+5:], length)
	return out, nil
}

func recordAt(dump []byte, n int) (Record, error) {
	_, records, err := Parse(dump)
	if err != nil {
		return Record{}, fmt.Errorf("damage the dump: %w", err)
	}
	if n < 0 || n >= len(records) {
		return Record{}, fmt.Errorf("damage the dump: no record %d of %d", n, len(records))
	}
	return records[n], nil
}

// Strip leaves the elements of primitive arrays out and the lengths of all records as
// they were, as KOOM's fork dump does: what follows such an array is not where it
// should be.
func Strip(dump []byte) ([]byte, error) {
	_, records, err := Parse(dump)
	if err != nil {
		return nil, fmt.Errorf("damage the dump: %w", err)
	}
	var out []byte
	kept := 0
	for _, r := range records {
		if r.Sub != hprof.SubPrimitiveArray {
			continue
		}
		end := r.Offset + 1 + idSize(dump) + 4 + 4 + 1
		out = append(out, dump[kept:end]...)
		kept = end + len(r.Data)
	}
	return append(out, dump[kept:]...), nil
}

func idSize(dump []byte) int {
	h, _, _ := Parse(dump[:min(len(dump), len(hprof.Format103)+13)])
	return h.IDSize
}
