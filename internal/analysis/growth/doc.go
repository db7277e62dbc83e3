// Package growth finds what grows in a series of heap dumps of one process, taken
// between repetitions of a scenario: the way of LeakCanary 3's ObjectGrowthDetector,
// which goes back to BLeak (Vilk and Berger, "BLeak: automatically debugging memory
// leaks in web applications", PLDI 2018).
//
// All objects that the same shortest path leads to, as far as classes and fields tell
// paths apart, are one node of a tree. Objects have other addresses in each dump, and
// the nodes are the same. A node of which there are more objects in every dump than in
// the one before has grown, and the node above it holds what grows.
//
// Merge makes the tree of one dump, Add compares it with what is left of the ones
// before. No dump is kept, and of their trees only what may still grow.
//
// It refuses to open dumps and to know the classes of Android, beyond the references in
// Ignored. It is fed by package analysis.
package growth
