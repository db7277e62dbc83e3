// Package meminfo sorts the memory of a Linux process into Android's rows: it
// reads smaps and returns the values that androidtext prints as `dumpsys
// meminfo` and `showmap`.
//
// It is written for the memory layout of a HotSpot Java virtual machine, so
// that such a process can stand in for an Android app: the reserved range of
// its heap is the Dalvik Heap, and blocks behind a guard page are the stacks of
// its threads. It is not a measuring tool: values that Android reads from
// inside a process (allocator statistics, framework objects) are unknown.
package meminfo
