package heap

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Census is the result of one pass over a dump: the number and size of the
// objects of each class, reachable or not.
type Census struct {
	Objects, Instances, ObjectArrays, PrimitiveArrays, Classes int64
	// Truncated is the offset of the record in which the file ends, or -1.
	Truncated  int64
	RootCounts map[hprof.SubTag]int64
	// Damage lists the damage that was skipped because Options.Partial is set.
	Damage []error
	// Rows holds one row per class name, the row with the most bytes first. The
	// reachable and retained counts are not set.
	Rows []Row
}

// tally is the number of objects of one slot, and the total number of elements
// of its arrays.
type tally struct {
	objects, elements int64
}

// counter is the state of one goroutine of a census.
type counter struct {
	*loader
	scanner *hprof.Scanner
	lookup  *lookup
	class   hprof.Class
	tallies []tally
	statics int64
	roots   map[hprof.SubTag]int64
	census  Census
}

// Count reads a dump once and returns its census. It ignores Options.Limit.
func Count(ctx context.Context, f *hprof.File, o Options) (*Census, error) {
	l, err := newLoader(f, o, 1)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var counters []*counter
	err = l.pool(ctx, func() func(int, []hprof.Segment) error {
		c := &counter{
			loader: l, scanner: f.Scanner(nil), lookup: newLookup(l.registry), roots: map[hprof.SubTag]int64{},
		}
		c.census.Truncated = f.Truncated
		mu.Lock()
		counters = append(counters, c)
		mu.Unlock()
		return func(_ int, chunk []hprof.Segment) error { return c.pass(c.count(ctx, chunk)) }
	})
	if err != nil {
		return nil, err
	}
	if err := l.registry.resolve(f, classLinks{rooted: func(hprof.ID) bool { return false }}); err != nil {
		return nil, err
	}
	return l.addUp(counters), nil
}

// pass records damage that Options.Partial allows Count to skip, and returns
// nil; it returns any other error unchanged.
func (c *counter) pass(err error) error {
	if !c.options.Partial || !errors.As(err, new(*hprof.DamageError)) {
		return err
	}
	c.census.Damage = append(c.census.Damage, err)
	return nil
}

func (c *counter) at(s slot) *tally {
	for int(s) >= len(c.tallies) {
		c.tallies = append(c.tallies, make([]tally, max(1024, len(c.tallies)))...)
	}
	return &c.tallies[s]
}

// count counts the objects of a chunk.
func (c *counter) count(ctx context.Context, chunk []hprof.Segment) error {
	s := c.scanner
	s.Reset(chunk)
	for n := 1; s.Next(); n++ {
		if n%shortPatience == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch s.Kind {
		case hprof.SubInstance:
			c.at(c.lookup.of(s.Class)).objects++
			c.census.Instances++
		case hprof.SubObjectArray:
			if !s.Piece {
				t := c.at(c.lookup.array(s.Class))
				t.objects++
				t.elements += int64(s.Count)
				c.census.ObjectArrays++
			}
		case hprof.SubPrimitiveArray, hprof.SubPrimitiveArrayNoData:
			t := c.at(primitives + slot(s.Type))
			t.objects++
			t.elements += int64(s.Count)
			c.census.PrimitiveArrays++
		case hprof.SubClassDump:
			s.ReadClass(&c.class)
			c.registry.dumped(&c.class, s.Offset)
			c.at(classSlot).objects++
			for _, v := range c.class.Statics {
				c.statics += int64(v.Type.Size(c.IDSize))
			}
			c.census.Classes++
		case hprof.SubHeapInfo:
		default:
			c.roots[s.Kind]++
		}
	}
	if at := s.Truncated(); at >= 0 {
		c.census.Truncated = at
	}
	return s.Err()
}

// addUp adds up the counts of all goroutines.
func (l *loader) addUp(counters []*counter) *Census {
	sum := &Census{Truncated: l.Truncated, RootCounts: l.RootCounts}
	l.nameRows()
	for _, c := range counters {
		sum.Instances += c.census.Instances
		sum.ObjectArrays += c.census.ObjectArrays
		sum.PrimitiveArrays += c.census.PrimitiveArrays
		sum.Classes += c.census.Classes
		sum.Truncated = max(sum.Truncated, c.census.Truncated)
		sum.Damage = append(sum.Damage, c.census.Damage...)
		for kind, n := range c.roots {
			sum.RootCounts[kind] += n
		}
		for s, t := range c.tallies {
			if t.objects > 0 {
				l.tally(slot(s), t)
			}
		}
		l.rows[l.registry.list[classSlot].row].Shallow.Java += c.statics
	}
	slices.SortFunc(sum.Damage, func(a, b error) int { return cmp.Compare(offset(a), offset(b)) })
	sum.Objects = sum.Instances + sum.ObjectArrays + sum.PrimitiveArrays + sum.Classes
	l.sortRows()
	sum.Rows = l.rows
	return sum
}

func offset(err error) int64 {
	if damage, ok := errors.AsType[*hprof.DamageError](err); ok {
		return damage.Offset
	}
	return 0
}

func (l *loader) tally(s slot, t tally) {
	c := &l.registry.list[s]
	row := &l.rows[c.row]
	element := int64(l.IDSize)
	if s < named {
		element = int64(hprof.Type(s - primitives).Size(l.IDSize))
	}
	if s == classSlot {
		element = 0
	}
	row.Instances += t.objects
	row.Shallow.Java += t.objects*int64(c.size) + t.elements*element
}
