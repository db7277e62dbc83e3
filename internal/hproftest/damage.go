package hproftest

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// The functions below return copies of a dump with the kinds of damage that
// occur in practice.

// Truncate returns the first n bytes of a dump, as after a crash of the
// process, a full disk or an aborted pull.
func Truncate(dump []byte, n int) []byte { return slices.Clone(dump[:min(max(n, 0), len(dump))]) }

// Flip flips n bits at positions that the seed selects.
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

// Retag changes the tag of record n. Records are counted as Parse lists them,
// including heap records.
func Retag(dump []byte, n int, tag byte) ([]byte, error) {
	r, err := recordAt(dump, n)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(dump)
	out[r.Offset] = tag
	return out, nil
}

// Redeclare changes the declared length of record n, which must not be a heap
// record.
func Redeclare(dump []byte, n int, length uint32) ([]byte, error) {
	r, err := recordAt(dump, n)
	if err != nil {
		return nil, err
	}
	if r.Sub != 0 {
		return nil, fmt.Errorf("damage the dump: record %d is a heap record without a length", n)
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
		return Record{}, fmt.Errorf("damage the dump: no record %d, the dump has %d records", n, len(records))
	}
	return records[n], nil
}

// Strip removes the elements of primitive arrays but keeps the lengths of all
// records, like KOOM's fork dump: everything after a stripped array is at the
// wrong offset.
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
