// Package meminfo sorts the memory of a Linux process into Android's rows: it
// reads smaps and returns the values that androidtext prints as `dumpsys
// meminfo` and `showmap`.
//
// It knows the layout of a HotSpot Java virtual machine, so that such a process
// can stand in for an Android app: the reserved range of its heap is the Dalvik
// Heap, and blocks behind a guard page are the stacks of its threads. It is not
// a measuring tool: what Android learns from inside a process (allocator
// statistics, framework objects) stays unknown.
package meminfo
