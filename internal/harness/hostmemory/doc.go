// Package hostmemory measures how much memory this host has left for the
// analysis of heap dumps, also inside a container.
package hostmemory
