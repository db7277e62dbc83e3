// Package trace determines why objects are still in a heap: for each object
// that should be gone, it finds the shortest path of references from a GC root,
// the suspect references on it, and the memory that the object costs. The rules
// are those of LeakCanary's Shark 3, so that the results look familiar to its
// users.
//
// Search follows the references of a heap.Outbound, breadth first. Package
// android decides whether objects on the paths are needed, and which references
// are known leaks of a platform; package trace treats only Java's own classes
// specially.
package trace
