// Package trace finds out why objects are still in a heap: the shortest path of
// references from a GC root to each object that should be gone, which of its references
// are suspect, and what is lost by it. The rules are those of LeakCanary's Shark 3, so
// that its users find what they know.
//
// Search goes over the references of a heap.Outbound, breadth first. Package android
// says of objects on the paths whether they are needed, and which references a platform
// is known to leak by; this package refuses to know any class that is not in java.
package trace
