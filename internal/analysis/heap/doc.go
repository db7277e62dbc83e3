// Package heap computes the graph of a heap dump: references, reachability,
// dominators, and the exact retained size of each object.
//
// Load reads a dump twice. The first pass collects the objects, the second
// resolves their references; both use all cores. One depth-first search then
// numbers what the GC roots reach, Lengauer and Tarjan's algorithm finds the
// immediate dominators, and the sizes are summed up the tree.
//
// Objects are numbered by address, from 0. All tables are flat arrays of
// integers outside the garbage collector's heap, so that each is freed when its
// phase ends and no object costs an allocation. Close releases the rest.
//
// Sizes follow one model, SizeModel: what the dump declares. Real layouts are
// up to 16 bytes larger per array. The package knows Android's classes only
// where the runtime treats their references specially.
package heap
