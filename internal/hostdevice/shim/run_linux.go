package shim

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/hostdevice/control"
	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// command is one invocation of a command: its arguments and outputs, and the
// directory of the device.
type command struct {
	dir  state.Dir
	args []string
	out  io.Writer
	err  io.Writer
}

// commands holds the commands that run in the shell; services lists those that
// run in the device.
var commands = map[string]func(command) int{
	"cat":     cat,
	"getprop": getprop,
	"logcat":  logcat,
	"monkey":  monkey,
	"pidof":   pidof,
	"ps":      ps,
	"showmap": showmap,
}

var services = []string{"am", "dumpsys", "pm", "run-as"}

// Names returns the names of the commands to install. cat replaces the real cat
// only to show the device's clock, so a device at scale 1 does not need it.
func Names(scale float64) []string {
	names := slices.Clone(services)
	for name := range commands {
		if name != "cat" || scale != 1 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Tools returns the programs of this machine that also exist on a phone (toybox
// in system/core shell_and_utilities/README.md) and are useful for finding
// leaks. Other programs, such as su, are not available.
func Tools() []string {
	return []string{
		"awk", "basename", "cat", "chmod", "chown", "cmp", "cp", "cut", "date", "dd", "df", "dirname", "du",
		"echo", "egrep", "env", "expr", "false", "fgrep", "find", "grep", "gunzip", "gzip", "head", "hostname", "id",
		"kill", "ln", "ls", "md5sum", "mkdir", "mkfifo", "mktemp", "mv", "nice", "nohup", "od", "printenv",
		"printf", "pwd", "readlink", "realpath", "renice", "rm", "rmdir", "sed", "seq", "setsid", "sh",
		"sha1sum", "sha256sum", "sleep", "sort", "split", "stat", "strings", "sync", "tail", "tar", "tee",
		"test", "time", "timeout", "touch", "tr", "true", "uname", "uniq", "uptime", "wc", "which", "whoami",
		"xargs", "xxd", "yes", "zcat",
	}
}

// IsCommand reports whether a program started under the given name must act as
// a command.
func IsCommand(name string) bool {
	return commands[name] != nil || slices.Contains(services, name)
}

// Run acts as the command args[0] and returns its exit code. It may replace
// this process with another program.
func Run(args []string) int {
	name := filepath.Base(args[0])
	dir, err := state.Current()
	if err != nil {
		return fail(os.Stderr, name, err)
	}
	if run := commands[name]; run != nil {
		return run(command{dir: dir, args: args[1:], out: os.Stdout, err: os.Stderr})
	}
	exit, err := control.Call(dir.Control(), control.Request{
		Token: os.Getenv(state.CommandVariable), Args: append([]string{name}, args[1:]...),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	})
	if err != nil {
		return fail(os.Stderr, name, err)
	}
	return exit
}

func fail(w io.Writer, name string, err error) int {
	fmt.Fprintf(w, "%s: %v\n", name, err)
	return 1
}

// option returns the value of an option, from the same word or the next one.
func option(args []string, name string) (value string, rest []string, ok bool) {
	word := args[0]
	if value, found := strings.CutPrefix(word, name); found && value != "" {
		return value, args[1:], true
	}
	if word == name && len(args) > 1 {
		return args[1], args[2:], true
	}
	return "", args, false
}
