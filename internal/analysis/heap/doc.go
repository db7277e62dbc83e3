// Package heap is the graph of a heap dump: who references whom, who is reachable,
// who dominates whom, and what each object retains, exactly.
//
// Load reads a dump twice. The first pass learns which objects there are, the
// second resolves their references; both use all cores. Then one depth-first search
// numbers what the GC roots reach, Lengauer and Tarjan's algorithm finds the
// immediate dominators, and the sizes are summed up the tree.
//
// Objects are numbered by address, from 0. All tables are flat arrays of integers
// outside the garbage collector's heap, so that each is gone when its phase is over
// and no object costs an allocation. Close gives the last of them back.
//
// Sizes follow one model, SizeModel: what the dump declares. Real layouts are up to
// 16 bytes larger per array.
//
// It refuses to know what an Android class means, beyond the references that the
// runtime treats in their own way. It is fed by package hprof.
package heap
