// Package trace finds out why objects are still in a heap: the shortest path of
// references from a GC root to each object that should be gone, the suspect
// references on it, and the memory that the object costs. The rules are those
// of LeakCanary's Shark 3, so that the results look familiar to its users.
//
// Search follows the references of a heap.Outbound, breadth first. Package
// android decides whether objects on the paths are needed, and which references
// a platform is known to leak by; this package knows only classes in java.
package trace
