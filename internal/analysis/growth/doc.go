// Package growth finds what grows in a series of heap dumps of one process,
// taken between repetitions of a scenario. The method is that of LeakCanary 3's
// ObjectGrowthDetector, which is based on BLeak (Vilk and Berger, "BLeak:
// automatically debugging memory leaks in web applications", PLDI 2018).
//
// All objects with the same shortest path, described by classes and fields,
// form one node of a tree. Objects have different addresses in each dump, but
// the nodes remain the same. A node that has more objects in every dump than in
// the previous one has grown, and the node above it holds what grows.
//
// Merge builds the tree of one dump; Add compares it with the remaining nodes
// of the previous trees. The package does not keep dumps. It keeps only the
// nodes of each tree that may still be growing. Except for the references in
// Ignored, nothing in the package is specific to Android.
package growth
