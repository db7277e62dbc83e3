package heap

// ClassNumber returns a number that identifies the class of an object, for
// tables indexed by class. Numbers are below ClassCount; several classes may
// have the same name.
func (g *Graph) ClassNumber(o Object) int { return int(g.slots.at(uint32(o))) }

// ClassCount returns a number that is greater than every ClassNumber.
func (g *Graph) ClassCount() int { return len(g.registry.list) }

// Hierarchy returns the names of a class and of its superclasses, starting with
// the class itself. It returns nil if the dump does not name the class.
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
