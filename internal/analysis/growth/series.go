package growth

import (
	"context"
	"fmt"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// Series compares dumps of one process, in the order in which they were taken.
type Series struct {
	least  uint32
	names  *names
	before *tree
	dumps  int
	most   int
}

// NewSeries starts a series of dumps between which a scenario was repeated the
// given number of times, which is at least 1.
func NewSeries(loops int) *Series {
	return &Series{least: uint32(max(loops, 1)), names: newNames(), most: mostNodes}
}

// Tree holds the merged shortest paths of one dump, and its graph. The caller
// must call Close.
type Tree struct{ walk *walk }

// Nodes returns the number of different paths.
func (t *Tree) Nodes() int { return t.walk.len() - 1 }

// Objects returns the number of objects on the paths.
func (t *Tree) Objects() (n int64) {
	for _, count := range t.walk.counts {
		n += int64(count)
	}
	return n
}

// Full reports whether there were too many different paths. In that case, the
// remaining objects were counted together with the objects that lead to them.
func (t *Tree) Full() bool { return t.walk.full }

// Close releases the memory of the graph. It may be called more than once.
func (t *Tree) Close() { t.walk.close() }

// Merge visits all objects that are reachable from the roots and returns their
// tree. The reader is not needed afterwards.
func (s *Series) Merge(ctx context.Context, g *heap.Graph, r *trace.Reader) (*Tree, error) {
	w, err := merge(ctx, g, r, s.names, s.most)
	if err != nil {
		return nil, err
	}
	return &Tree{w}, nil
}

// Add compares a dump with the previous dumps of the series. The graph is not
// needed afterwards.
func (s *Series) Add(ctx context.Context, t *Tree) error {
	w := t.walk
	if s.before != nil {
		w.compare(s.before, s.least)
	}
	if err := w.weigh(ctx); err != nil {
		return fmt.Errorf("weigh paths: %w", err)
	}
	w.swell()
	s.before = w.tree
	if s.dumps++; s.dumps > 1 {
		s.before = w.prune()
	}
	t.Close()
	return nil
}
