// Package jvmtest runs real Java programs that leak in known ways, and dumps
// their heaps: compiled by javac, renamed by ProGuard, run by a JVM and dumped
// by jcmd.
//
// Leaks.java has a class for each kind of leak, and ShopLeaks lists what must
// be found in it. Steady.java does the same work and keeps nothing. Depot.java
// starts threads that never end. Market.java has six leaks, whose holders are
// changed by Refactorings. Mall.java has many leaks at once, and Variants
// rebuilds it twenty times: the same leaks with other names, numbers and
// addresses.
//
// A test that needs a tool that is missing on this machine ends as defined by
// package recorded.
package jvmtest
