// Package jvmtest runs real Java programs that leak in known ways, and dumps
// their heaps: compiled by javac, renamed by ProGuard, run by a JVM and dumped
// by jcmd.
//
// Leaks.java has a class for each kind of leak, and ShopLeaks lists the leaks
// that must be found in it. Steady.java does the same work without leaking.
// Depot.java starts threads that never end. Market.java has six leaks, whose
// holders Refactorings change. Mall.java has many leaks at once, and Variants
// rebuilds it twenty times: the same leaks with other names, numbers and
// addresses.
//
// If a tool is missing on this machine, a test that needs it ends as package
// recorded defines.
package jvmtest
