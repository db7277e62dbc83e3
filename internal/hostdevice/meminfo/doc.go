// Package meminfo sorts the memory of a Linux process into Android's rows: it
// reads smaps and returns the values that androidtext prints as `dumpsys
// meminfo` and `showmap`.
//
// It is written for the memory layout of a HotSpot Java virtual machine, which
// can then stand in for an Android app: the reserved range of its heap becomes
// the Dalvik Heap, and blocks after a guard page are the stacks of its threads.
// It is not a measuring tool: values that Android reads from inside a process
// (allocator statistics, framework objects) are unknown.
package meminfo
