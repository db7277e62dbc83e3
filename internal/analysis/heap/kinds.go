package heap

// ClassNumber identifies the class of an object, for tables by class. Numbers
// are below ClassCount; classes of one name may have several.
func (g *Graph) ClassNumber(o Object) int { return int(g.slots.at(uint32(o))) }

// ClassCount is greater than each ClassNumber.
func (g *Graph) ClassCount() int { return len(g.registry.list) }

// Hierarchy returns the names of a class and of its superclasses, from itself
// up; none if the dump does not name it.
func (g *Graph) Hierarchy(number int) (names []string) {
	s := slot(number)
	for range longestChain {
		c := &g.registry.list[s]
		if c.name == "" {
			break
		}
		names = append(names, c.name)
		if c.super == 0 || c.super == s {
			break
		}
		s = c.super
	}
	return names
}
