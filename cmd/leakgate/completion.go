package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func completionCommand(c *console) *cobra.Command {
	shells := map[string]func(*cobra.Command) error{
		"bash":       func(root *cobra.Command) error { return root.GenBashCompletionV2(c.out, true) },
		"zsh":        func(root *cobra.Command) error { return root.GenZshCompletion(c.out) },
		"fish":       func(root *cobra.Command) error { return root.GenFishCompletion(c.out, true) },
		"powershell": func(root *cobra.Command) error { return root.GenPowerShellCompletionWithDesc(c.out) },
	}
	names := []string{"bash", "zsh", "fish", "powershell"}
	cmd := &cobra.Command{
		Use: "completion SHELL", GroupID: groupHost, DisableFlagsInUseLine: true,
		Short: "print a shell completion script",
		Long: `Print a script for shell completion of commands, flags, their values and file names.
SHELL is bash, zsh, fish or powershell.

Load it when the shell starts:

  bash        source <(leakgate completion bash)
  zsh         source <(leakgate completion zsh)
  fish        leakgate completion fish | source
  powershell  leakgate completion powershell | Out-String | Invoke-Expression`,
		Example: `  leakgate completion bash > /etc/bash_completion.d/leakgate
  leakgate completion fish > ~/.config/fish/completions/leakgate.fish`,
		Annotations: manual{exits: "0 the script was printed\n2 the command line is invalid"}.annotations(),
		ValidArgs:   names,
	}
	cmd.RunE = c.run(func(c console, args []string) int {
		var shell string
		if len(args) != 1 {
			return c.usage(fmt.Errorf("want one shell: %s", alternatives(names)))
		}
		if err := choice(&shell, "SHELL", names...).Set(args[0]); err != nil {
			return c.usage(err)
		}
		if err := shells[shell](cmd.Root()); err != nil {
			c.problem("print the script: %v", err)
			return exitUsage
		}
		return exitOK
	})
	return cmd
}

// completeFiles returns a function that completes arguments with the names of
// files with these extensions.
func completeFiles(extensions ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(extensions, cobra.ShellCompDirectiveFilterFileExt)
}

// completeDump completes the first argument, a heap dump.
func completeDump(cmd *cobra.Command, args []string, to string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeFiles(dumpExtensions...)(cmd, args, to)
}

// completeFolders completes arguments with the names of directories.
var completeFolders = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)

// dumpExtensions are the extensions of heap dumps.
var dumpExtensions = []string{"hprof", "hprof.gz", "hprof.zst", "bin"}

// completeChoices completes the values of flags: words, files and directories.
func completeChoices(cmd *cobra.Command) {
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		var complete cobra.CompletionFunc
		switch v, ok := f.Value.(*value); {
		case !ok:
			return
		case len(v.choices) > 0:
			complete = cobra.FixedCompletions(v.choices, cobra.ShellCompDirectiveNoFileComp)
		case v.placeholder == "DIR":
			complete = completeFolders
		case v.placeholder == "FILE":
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
		default:
			return
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
			panic(err) // unknown flag, or registered twice
		}
	})
	for _, sub := range cmd.Commands() {
		completeChoices(sub)
	}
}
