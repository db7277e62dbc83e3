package heap

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// TestBits compares a set and its ranks with a slice of booleans.
func TestBits(t *testing.T) {
	for seed := range uint64(50) {
		dice := rand.New(rand.NewPCG(seed, 6))
		n := 1 + dice.IntN(2000)
		a := &arena{}
		b, err := newBitset(a, int64(n))
		if err != nil {
			t.Fatal(err)
		}
		want := make([]bool, n)
		for range n / (1 + dice.IntN(4)) {
			i := dice.IntN(n)
			if dice.IntN(2) == 0 {
				b.set(uint32(i))
			} else if was := b.setShared(uint32(i)); was != want[i] {
				t.Fatalf("setShared(%d) = %t, want %t", i, was, want[i])
			}
			want[i] = true
		}
		r, err := newRanks(a, b)
		if err != nil {
			t.Fatal(err)
		}
		count := uint32(0)
		for i, is := range want {
			if b.has(uint32(i)) != is || r.of(uint32(i)) != count {
				t.Fatalf("bit %d of %d: got set %t, want %t; got rank %d, want %d", i, n, b.has(uint32(i)), is,
					r.of(uint32(i)), count)
			}
			if is {
				count++
			}
		}
		if b.count() != int64(count) || r.len() != int64(count) {
			t.Fatalf("got counts %d and %d, want %d", b.count(), r.len(), count)
		}
	}
}

// TestSetShared sets bits of the same words from several goroutines: for each
// bit, exactly one of the calls must report that it is new.
func TestSetShared(t *testing.T) {
	const n, goroutines = 5000, 4
	b, err := newBitset(&arena{}, n)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	news := make([]int, goroutines)
	for g := range goroutines {
		wg.Go(func() {
			for i := range uint32(n) {
				if !b.setShared((i*7 + uint32(g)) % n) {
					news[g]++
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, k := range news {
		sum += k
	}
	if sum != n || b.count() != n {
		t.Errorf("the goroutines set %d of %d bits, but %d are set", sum, n, b.count())
	}
}
