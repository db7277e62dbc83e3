// Package trace determines why objects are still in a heap: for each object
// that should no longer exist, it finds the shortest path of references from a
// GC root, the suspect references on this path, and the memory that the object
// retains. The rules are those of LeakCanary's Shark 3, so its users will find
// the results familiar.
//
// Search follows the references of a heap.Outbound, breadth first. Package
// android decides whether objects on the paths are needed, and which references
// are known leaks of a platform; package trace treats only Java's own classes
// specially.
package trace
