// Package jvmtest runs real Java programs that leak in known ways, and dumps
// their heaps. The programs are compiled by javac, renamed by ProGuard, run by
// a JVM and dumped by jcmd.
//
// Leaks.java contains a class for each kind of leak, and ShopLeaks lists the
// leaks that must be found in it. Steady.java does the same work without
// leaking. Depot.java starts threads that never end. Market.java contains six
// leaks, and Refactorings changes the objects that hold them. Mall.java
// contains many leaks at once, and Variants rebuilds it twenty times: the same
// leaks with other names, numbers and addresses.
//
// If this machine lacks a tool, recorded.Missing ends each test that needs the
// tool.
package jvmtest
