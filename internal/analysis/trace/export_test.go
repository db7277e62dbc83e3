package trace

import "github.com/leakgate/leakgate/internal/analysis/heap"

// Found returns the targets that the roots reach, nearest first, except for
// targets that are reachable only through other targets.
func (s *Search) Found() []heap.Object { return s.found }

// Paths returns the paths to those of the given objects that were reached.
func (s *Search) Paths(objects []heap.Object) []Path {
	x := s.paths(objects, nil)
	paths := make([]Path, 0, len(objects))
	for _, o := range objects {
		if s.reached(o) {
			paths = append(paths, x.path(o))
		}
	}
	return paths
}

// Reached reports whether a path leads to the given object.
func (s *Search) Reached(o heap.Object) bool { return s.reached(o) }

var StableField = stableField

// StableClassByExpressions is StableClass without the preliminary search for
// parts of the name.
func StableClassByExpressions(name string) string {
	for _, c := range classChanges {
		name = c.from.ReplaceAllString(name, c.to)
	}
	return name
}

// Leaf reports whether the search ends at an object.
func (r *Reader) Leaf(o heap.Object) bool { return r.leaf(o) }
