// Package jvmtest runs real Java programs that leak in known ways, and dumps their
// heaps: compiled by javac, renamed by ProGuard, run by a JVM and dumped by jcmd.
//
// Leaks.java has a class for each way to leak, ShopLeaks says what must be found there.
// Steady.java does the same work and keeps nothing. Depot.java starts threads that never
// end. Market.java has six leaks, whose holders Refactorings change. Mall.java has many
// leaks at once, and Variants rebuilds it twenty times: the same leaks under other names,
// numbers and addresses.
//
// A test that needs a tool that this machine lacks ends as package recorded says. It
// refuses to look into a dump. Tests of heap analysis and of the gate use it.
package jvmtest
