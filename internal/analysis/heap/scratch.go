package heap

// Scratch returns a slice of n zeros outside the garbage collector's heap, for
// callers that visit all objects. The memory is freed by Release or when the
// graph is closed.
func (g *Graph) Scratch(n int64) ([]uint32, error) { return array[uint32](&g.arena, n) }

// Release frees memory returned by Scratch, and sets it to nil.
func (g *Graph) Release(s *[]uint32) { drop(&g.arena, s) }
