// Package meminfo says where the memory of a process is, in Android's words:
// it reads the smaps of any Linux process and prints `dumpsys meminfo` and
// `showmap` of it.
//
// It knows the layout of a HotSpot Java virtual machine, so that such a process
// can stand in for an Android app: the reserved range of its heap is the Dalvik
// Heap, the blocks behind a guard page are the stacks of its threads. It is no
// measuring tool: what Android learns from inside a process (the state of the
// allocators, the objects of the framework) it cannot know. It reads /proc and
// changes nothing; the host device and its showmap feed on it.
package meminfo
