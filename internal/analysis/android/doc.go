// Package android says what the classes of a heap dump mean: which phone and process
// it is of, its bitmaps, strings, threads, components, finalizers, and how near the
// process was to each way of running out of memory. Dumps of a JVM have the topics
// that do not need Android.
//
// Each topic has a function of its own, and Read answers all of them together: the
// records that the topics want are collected level by level, so that the file is
// read again at most four times, and only where something wanted is.
//
// An Inspector says which objects are needed and which leak, by what Android's classes
// promise; Matchers are the references by which Android, makers and libraries are known
// to leak.
//
// It refuses to look for who holds what leaks, which is package trace's, and to believe
// what a dump says: texts are cut and made printable, sizes in fields lead to no
// allocation and overflow nothing, lists end and tell how many they left out. What
// a dump does not hold is absent or unknown, never 0. Doubts are in Warnings.
//
// It is fed with a graph of package heap.
package android
