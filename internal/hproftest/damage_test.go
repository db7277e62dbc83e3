package hproftest

import (
	"bytes"
	"math/bits"
	"testing"
)

func TestDamage(t *testing.T) {
	h := Java(0)
	h.Hold("a.B", "x", h.Bytes([]byte("contents")))
	dump, _, err := h.Dump(Form{})
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.Clone(dump)
	_, records, err := Parse(dump)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 10, 40, len(dump) / 2, len(dump) - 1} {
		short := Truncate(dump, n)
		if _, _, err := Parse(short); len(short) != n || err == nil {
			t.Errorf("truncated after %d bytes: got %d bytes and error %v", n, len(short), err)
		}
	}
	if !bytes.Equal(Truncate(dump, len(dump)+5), dump) || len(Truncate(dump, -1)) != 0 {
		t.Error("lengths outside the dump are not clamped")
	}
	flipped, differ := Flip(dump, 3, 1), 0
	for i := range dump {
		differ += bits.OnesCount8(dump[i] ^ flipped[i])
	}
	if differ != 1 || bytes.Equal(Flip(dump, 4, 1), flipped) || !bytes.Equal(Flip(dump, 3, 1), flipped) {
		t.Errorf("flipped %d bits, want 1", differ)
	}
	last := len(records) - 1
	for n := range records {
		broken, err := Retag(dump, n, 0x77)
		if err != nil || broken[records[n].Offset] != 0x77 {
			t.Fatal(err)
		}
		if _, got, err := Parse(broken); n > 0 && n < last && err == nil && len(got) == len(records) &&
			records[n].Sub != 0 {
			t.Errorf("record %d was read despite its unknown tag 0x77", n)
		}
	}
	longer, err := Redeclare(dump, last, 1000)
	if _, _, perr := Parse(longer); err != nil || perr == nil {
		t.Errorf("end record of 1000 bytes: got error %v from Redeclare, %v from Parse, want only the latter", err,
			perr)
	}
	if _, err := Redeclare(dump, last-1, 1); records[last-1].Sub == 0 || err == nil {
		t.Error("a length was set for a heap record")
	}
	stripped, err := Strip(dump)
	if err != nil || len(stripped) >= len(dump) || bytes.Contains(stripped, []byte("contents")) ||
		!bytes.Contains(dump, []byte("contents")) {
		t.Errorf("stripped dump has %d of %d bytes or still contains text: %v", len(stripped), len(dump), err)
	}
	if !bytes.Equal(dump, whole) {
		t.Error("the original dump was damaged")
	}
	if _, err := Retag(dump, len(records), 1); err == nil {
		t.Error("a record after the last one was damaged")
	}
	if _, err := Strip([]byte("JAVA")); err == nil {
		t.Error("an invalid dump was damaged")
	}
}
