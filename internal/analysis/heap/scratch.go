package heap

// Scratch gives n zeros outside the garbage collector's heap, for who goes over all
// objects. Release, or Close of the graph, gives them back.
func (g *Graph) Scratch(n int64) ([]uint32, error) { return array[uint32](&g.arena, n) }

// Release gives back what Scratch gave, and makes it nil.
func (g *Graph) Release(s *[]uint32) { drop(&g.arena, s) }
