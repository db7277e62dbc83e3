// Package hostmemory measures how much memory this host has left for the analysis of heap
// dumps, inside a container as well.
package hostmemory
