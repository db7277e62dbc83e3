// Package hostmemory measures how much memory this host has left for the
// analysis of heap dumps. It also works inside a container.
package hostmemory
