package main

import (
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
)

// shown is a name of a dump in a line: its end, where it is endless.
func shown(name string) string { return text.TailColumns(name, 240) }

func simpleName(class string) string { return reporters.SimpleName(class) }

func short(identity string) string { return reporters.Short(identity) }
