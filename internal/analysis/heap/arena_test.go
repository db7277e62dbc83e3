package heap

import (
	"slices"
	"testing"
)

// TestArena releases arrays one by one and then all at once.
func TestArena(t *testing.T) {
	a := &arena{}
	sizes := []int64{0, 1, 1000, smallest/8 - 1, smallest / 8, smallest, 3*smallest + 5}
	var arrays [][]uint64
	want := int64(0)
	for _, n := range sizes {
		s, err := array[uint64](a, n)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(s)) != n || slices.ContainsFunc(s, func(v uint64) bool { return v != 0 }) {
			t.Errorf("%d of %d zeros", len(s), n)
		}
		for i := range s {
			s[i] = uint64(i)
		}
		if 8*n >= smallest {
			want += 8 * n
		}
		arrays = append(arrays, s)
		if a.held != want {
			t.Errorf("%d bytes are held, want %d", a.held, want)
		}
	}
	last := &arrays[len(arrays)-1]
	drop(a, last)
	want -= 8 * sizes[len(sizes)-1]
	if *last != nil || a.held != want {
		t.Errorf("a dropped array has %d elements; %d bytes are held, want %d", len(*last), a.held, want)
	}
	// Releasing an array twice has no effect, nor does releasing a part of an
	// array or another arena's array.
	drop(a, last)
	part, other := arrays[5][1:], make([]uint64, smallest)
	drop(a, &part)
	drop(a, &other)
	if a.held != want || arrays[5][7] != 7 {
		t.Errorf("%d bytes are held, want %d", a.held, want)
	}
	a.close()
	a.close()
	if a.held != 0 || len(a.blocks) != 0 {
		t.Errorf("after close, %d bytes are held in %d blocks", a.held, len(a.blocks))
	}
}

// TestArenaRefused requests more memory than the system can provide.
func TestArenaRefused(t *testing.T) {
	a := &arena{}
	if s, err := array[uint64](a, 1<<50); err == nil {
		t.Errorf("%d elements", len(s))
	}
	if a.held != 0 {
		t.Errorf("%d bytes are held", a.held)
	}
}
