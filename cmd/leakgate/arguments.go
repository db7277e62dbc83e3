package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// checkValues rejects a flag that would consume the next flag as its value: the
// parser reads `--out --json` as a directory named --json. The command to which
// the flag belongs is returned with the error; otherwise both are nil.
func checkValues(root *cobra.Command, args []string) (*cobra.Command, error) {
	cmd, args, err := root.Find(args)
	if err != nil {
		return nil, nil // an unknown command; executing it reports the error
	}
	for i := 0; i+1 < len(args) && args[i] != "--"; i++ {
		name, isLong := strings.CutPrefix(args[i], "--")
		f := cmd.Flag(name)
		if !isLong || f == nil || f.NoOptDefVal != "" {
			continue
		}
		i++
		if isFlag(cmd, args[i]) {
			return cmd, fmt.Errorf("--%s needs a value, and %s is a flag: "+
				"write --%[1]s %[3]s, or --%[1]s=%[2]s if %[2]s is the value", name, args[i], f.Value.Type())
		}
	}
	return nil, nil
}

// isFlag reports whether a command parses a word as a flag. Negative numbers
// and the dash for standard input are not flags.
func isFlag(cmd *cobra.Command, word string) bool {
	if strings.HasPrefix(word, "--") {
		return true
	}
	letter, short := strings.CutPrefix(word, "-")
	return short && len(letter) == 1 &&
		(cmd.Flags().ShorthandLookup(letter) != nil || cmd.InheritedFlags().ShorthandLookup(letter) != nil)
}

// checkArguments rejects empty arguments, which result from unset variables in
// a script. The command line of another program, after --, may contain empty
// arguments.
func checkArguments(cmd *cobra.Command, args []string) error {
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args = args[:dash]
	}
	if i := slices.Index(args, ""); i >= 0 {
		return fmt.Errorf("argument %d is empty: remove it, or set the variable that it comes from", i+1)
	}
	return nil
}
