package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// In every command, a flag that would take the next flag or an empty string as
// its value is rejected, and so is an empty argument: an unset variable in a
// script never selects the default.
func TestFlagsRejectEmptyValues(t *testing.T) {
	t.Chdir(t.TempDir())
	flags, commands := 0, 0
	for _, cmd := range allCommands(newRoot(&console{})) {
		words := strings.Fields(cmd.CommandPath())[1:]
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal != "" {
				return // a switch
			}
			flags++
			for _, c := range []struct {
				args []string
				want string
			}{
				{[]string{"--" + f.Name, ""}, "--" + f.Name + ": "},
				{[]string{"--" + f.Name + "="}, "--" + f.Name + ": "},
				{
					[]string{"--" + f.Name, "--json"},
					"--" + f.Name + " needs a value, and --json is a flag: write --" + f.Name + " ",
				},
				{[]string{"--" + f.Name, "-q"}, "--" + f.Name + " needs a value, and -q is a flag"},
				{[]string{"--" + f.Name, "--"}, "--" + f.Name + " needs a value"},
			} {
				wantRefusal(t, append(words, c.args...), c.want)
			}
			if _, many := f.Value.(list); many {
				wantRefusal(t, append(words, "--"+f.Name, "a.b", "--"+f.Name, ""), "--"+f.Name+": the value is empty")
			}
			if l, _ := f.Value.(list); l.commas {
				wantRefusal(t, append(words, "--"+f.Name, "a.b,"),
					"--"+f.Name+`: the value "a.b," has an empty name between its commas`)
			}
		})
		if cmd.HasSubCommands() || cmd.Name() == "help" {
			continue
		}
		commands++
		wantRefusal(t, append(words, ""), "argument 1 is empty")
		wantRefusal(t, append(words, "a", ""), "argument 2 is empty")
	}
	if flags < 60 || commands < 25 {
		t.Errorf("checked only %d flags and %d commands, want at least 60 and 25", flags, commands)
	}
	// Arguments after -- belong to another program, and a value after = may
	// look like a flag.
	root := newRoot(&console{})
	for _, args := range [][]string{
		{"trip", "--process", "a.b", "--", "cmd", "--out", "--json", ""}, {"watch", "--out=--json"},
		{"analyze", "--top", "-1"},
		{"parse", "meminfo", "-"}, {"watch", "--json", "--strict"}, {"watch", "--out"},
	} {
		if cmd, err := checkValues(root, args); err != nil {
			t.Errorf("%q: %v of %v", args, err, cmd)
		}
	}
	cmd := &cobra.Command{}
	if err := cmd.ParseFlags([]string{"a", "--", ""}); err != nil || checkArguments(cmd, cmd.Flags().Args()) != nil {
		t.Errorf("an empty argument after -- was rejected: %v", err)
	}
}

func wantRefusal(t *testing.T, args []string, want string) {
	t.Helper()
	if code, out, errOut := typed(t, nil, args...); code != exitUsage || out != "" || !strings.Contains(errOut, want) {
		t.Errorf("%q: exit %d, stdout %q, %q, want %q", args, code, out, errOut, want)
	}
}
