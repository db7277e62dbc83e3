// Package heap computes the graph of a heap dump: references, reachability,
// dominators, and the exact retained size of each object.
//
// Load reads a dump twice. The first pass collects the objects, the second
// resolves their references; both use all cores. One depth-first search then
// numbers the objects that the GC roots reach, Lengauer and Tarjan's algorithm
// finds the immediate dominators, and the sizes are summed up the tree.
//
// Objects are numbered by address, from 0. All tables are flat arrays of
// integers outside the garbage collector's heap: each is freed when its phase
// ends, and no object needs its own allocation. Close releases the remaining
// tables.
//
// Sizes follow one model, SizeModel, and use the sizes that the dump declares.
// Real layouts are up to 16 bytes larger per array. The package treats
// Android's classes specially only where the runtime treats their references
// specially.
package heap
