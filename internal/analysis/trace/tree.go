package trace

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// Branch is a node of merged paths: all objects of one class that the paths
// reach through one field of the parent branch's objects. If these objects hold
// further objects of their class, as nodes of a list or a tree do, the further
// objects belong to the branch, too.
type Branch struct {
	// Root describes the kind of GC root; it is set for branches at the top.
	Root string
	// Owner and Field describe the reference that leads to the objects; Field
	// is "[x]" for all elements.
	Owner, Field string
	Kind         EdgeKind
	// Class is the class of the objects, Type is "instance", "array" or
	// "class", and Objects is the number of these objects that are on paths.
	Class, Type string
	Objects     int64
	// Own is the number of targets among the objects; Targets and Size also
	// include all branches below.
	Own, Targets int64
	Size         heap.Size
	// Branches are sorted by their number of targets, largest first. Cut is
	// true if everything below this branch is omitted.
	Branches []*Branch
	Cut      bool
	// depth is the number of branches above this one.
	depth int
}

const (
	// mostBranches and deepest limit the size of a tree; objects further down
	// are counted in the branch at which the tree is truncated.
	mostBranches = 1 << 16
	deepest      = 1 << 10
)

// Tree merges the paths to the targets of a search.
func (s *Search) Tree(ctx context.Context, objects []heap.Object) ([]*Branch, error) {
	b := &branches{
		Search: s, on: make(bits, len(s.waiting)), targets: make(bits, len(s.waiting)), places: map[branchKey]*Branch{},
	}
	for _, o := range objects {
		b.mark(o)
	}
	for _, root := range s.reader.roots {
		if _, below := s.parent(root.Object); !below && b.on.has(root.Object) {
			b.on.remove(root.Object)
			b.join(root.Object, b.top(s.root(root.Object), root.Object))
		}
	}
	for len(b.next) > 0 {
		if err := b.deepen(ctx); err != nil {
			return nil, err
		}
	}
	for _, t := range b.tops {
		t.sum()
	}
	return ordered(b.tops), nil
}

// branches is a tree that is built level by level.
type branches struct {
	*Search
	// on holds the objects that are on the paths but have no branch yet.
	on, targets bits
	places      map[branchKey]*Branch
	tops        []*Branch
	level, next []leaf
	count       int
}

// leaf is an object whose branch is already known.
type leaf struct {
	object heap.Object
	branch *Branch
}

type branchKey struct {
	above        *Branch
	owner, field string
	class        string
}

// mark adds an object and all objects before it on its path.
func (b *branches) mark(o heap.Object) {
	if !b.reached(o) {
		return
	}
	b.targets.add(o)
	for !b.on.has(o) {
		b.on.add(o)
		from, ok := b.parent(o)
		if !ok {
			return
		}
		o = from
	}
}

func (b *branches) top(root Root, o heap.Object) *Branch {
	object := b.reader.typed(o)
	key := branchKey{field: root.Description(), class: object.Class}
	if b.places[key] == nil {
		b.places[key] = &Branch{Root: root.Description(), Class: object.Class, Type: object.Type}
		b.tops = append(b.tops, b.places[key])
	}
	return b.places[key]
}

// join adds an object to its branch.
func (b *branches) join(o heap.Object, to *Branch) {
	to.Objects++
	if b.targets.has(o) {
		size := b.graph.Shallow(o)
		to.Own++
		to.Size.Java += size.Java
		to.Size.Native += size.Native
	}
	b.next = append(b.next, leaf{o, to})
}

// deepen continues from the objects of one level to those of the next.
func (b *branches) deepen(ctx context.Context) error {
	b.level, b.next = b.next, b.level[:0]
	found := map[heap.Object]Edge{}
	var order []heap.Object
	for n, l := range b.level {
		if n%checkInterval == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		clear(found)
		order = order[:0]
		b.reader.Read(l.object, func(e Edge) {
			if !b.on.has(e.To) {
				return
			}
			if from, ok := b.parent(e.To); !ok || from != l.object {
				return
			}
			best, known := found[e.To]
			if !known {
				order = append(order, e.To)
			}
			if !known || b.better(l.object, best, e) {
				found[e.To] = e
			}
		})
		for _, o := range order {
			b.on.remove(o)
			b.join(o, b.branch(l, o, found[o]))
		}
	}
	return nil
}

// branch returns the branch of a reference's target.
func (b *branches) branch(l leaf, o heap.Object, e Edge) *Branch {
	object := b.reader.typed(o)
	if e.Kind == FieldEdge && object.Class == l.branch.Class && object.Type == l.branch.Type {
		return l.branch
	}
	key := branchKey{l.branch, b.reader.Owner(l.object, e), b.reader.Field(l.object, e), object.Class}
	if found := b.places[key]; found != nil {
		return found
	}
	if b.count >= mostBranches || l.branch.depth >= deepest {
		l.branch.Cut = true
		return l.branch
	}
	b.count++
	found := &Branch{
		Owner: key.owner, Field: key.field, Kind: e.Kind, Class: object.Class, Type: object.Type,
		depth: l.branch.depth + 1,
	}
	b.places[key] = found
	l.branch.Branches = append(l.branch.Branches, found)
	return found
}

// sum adds up the counts of the branches below, and sorts these branches.
func (t *Branch) sum() {
	t.Targets = t.Own
	for _, c := range t.Branches {
		c.sum()
		t.Targets += c.Targets
		t.Size.Java += c.Size.Java
		t.Size.Native += c.Size.Native
	}
	t.Branches = ordered(t.Branches)
}

func ordered(list []*Branch) []*Branch {
	slices.SortStableFunc(list, func(a, b *Branch) int {
		return cmp.Or(cmp.Compare(b.Targets, a.Targets),
			strings.Compare(a.Owner+a.Field+a.Class+a.Root, b.Owner+b.Field+b.Class+b.Root))
	})
	return list
}
