package main

import "github.com/leakgate/leakgate/reporters"

// The words of reporters for what a dump holds.

// shown is a name of a dump in a line: its end, where it is endless.
func shown(name string) string { return tail(printable(name), 240) }

func printable(text string) string { return reporters.Printable(text) }

func simpleName(class string) string { return reporters.SimpleName(class) }

func amount(n int64) string { return reporters.Amount(n) }

func grouped(n int64) string { return reporters.Grouped(n) }

func short(identity string) string { return reporters.Short(identity) }

func signed(n int64) string { return reporters.Signed(n) }

func signedAmount(n int64) string { return reporters.SignedAmount(n) }
