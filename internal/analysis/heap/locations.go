package heap

import (
	"context"
	"sync"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Locations holds the positions of some objects in the file. It is for callers
// that follow references one by one, for which Read would need too many passes.
type Locations struct {
	graph   *Graph
	located ranks
	offsets []int64
	single  hprof.Single
}

// Locate finds the positions of the wanted objects, except classes, in one pass
// over the file. The result uses 8 bytes per wanted object until it is closed.
func (g *Graph) Locate(ctx context.Context, wanted func(Object) bool) (*Locations, error) {
	l := &Locations{graph: g}
	set, err := newBitset(&g.arena, g.Objects)
	if err != nil {
		return nil, err
	}
	for n := range uint32(g.Objects) {
		if wanted(Object(n)) {
			set.set(n)
		}
	}
	if l.located, err = newRanks(&g.arena, set); err == nil {
		if l.offsets, err = array[int64](&g.arena, l.located.len()); err == nil {
			err = l.find(ctx)
		}
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Locations) find(ctx context.Context) error {
	g := l.graph
	// Different goroutines may find the two records of one object.
	var mu sync.Mutex
	visit := func(s *hprof.Scanner) error {
		if s.Piece || s.Kind == hprof.SubClassDump {
			return nil
		}
		n := g.ids.find(s.Object)
		if n == none || !l.located.bits.has(n) {
			return nil
		}
		if g.twice == nil {
			l.offsets[l.located.of(n)] = s.Offset
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if !g.superseded(n, s.Offset) {
			l.offsets[l.located.of(n)] = s.Offset
		}
		return nil
	}
	return g.scan(ctx, g.chunks(), false, func() func(*hprof.Scanner) error { return visit })
}

// Close releases the memory. It may be called more than once.
func (l *Locations) Close() {
	drop(&l.graph.arena, (*[]uint64)(&l.located.bits))
	drop(&l.graph.arena, &l.located.sums)
	drop(&l.graph.arena, &l.offsets)
}

// Record reads an object; most is the maximum number of bytes that it reads of
// the body. It returns false if the object was not in wanted or its record can
// no longer be read. The record is valid until the next call. Record is not
// safe for concurrent use.
func (l *Locations) Record(o Object, most int) (Record, bool) {
	n := uint32(o)
	if int64(n) >= l.graph.Objects || !l.located.bits.has(n) {
		return Record{}, false
	}
	at := l.offsets[l.located.of(n)]
	if at == 0 || l.graph.file.ReadSingle(at, most, &l.single) != nil {
		return Record{}, false
	}
	s := &l.single
	return Record{
		Object: o, Kind: s.Kind, Type: s.Type, Count: s.Count, Body: s.Body, graph: l.graph, slot: l.graph.slots.at(n),
	}, true
}
