// Package ksh implements the shell of a simulated machine, with the small
// programs that scripts expect: an evaluator over the syntax trees and word
// expansions of mvdan.cc/sh/v3, which parses mksh, the shell of Android. A
// System provides files, a clock and processes; nothing on the host is read,
// written or started.
//
// The shell supports what leakgate and its tests send: pipes, redirections,
// background jobs, if, for, while, until and case, expansions and globs.
// Everything else that the parser accepts is rejected before the script starts.
// Variables, words, captured output, recursion and jobs are bounded, so a
// hostile script cannot exhaust memory. A script that never ends is stopped
// when its context is canceled.
package ksh

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"time"
)

// System is the machine on which a shell runs. Paths are absolute and clean,
// except the argument of Clean. Its methods may be called concurrently.
type System interface {
	// Clean resolves name against dir and returns an absolute path without
	// symbolic links.
	Clean(dir, name string) string
	Stat(path string, c Cred) (FileInfo, error)
	// ReadDir lists a directory, sorted by name.
	ReadDir(path string, c Cred) ([]FileInfo, error)
	Open(path string, c Cred) (io.Reader, error)
	// Create opens a file for writing, and truncates it unless add is set.
	Create(path string, c Cred, add bool) (io.Writer, error)
	Mkdir(path string, c Cred) error
	// Remove removes a file; if all is set, it also removes a directory and its
	// contents.
	Remove(path string, c Cred, all bool) error

	// Program returns the program with the given path, or the program with that
	// name in PATH.
	Program(name string) (Program, bool)
	// Start adds a process to the group of its leader. When the process is
	// killed, its context is canceled with a Signal as the cause.
	Start(ctx context.Context, leader Process) (context.Context, Process)
	// Signal sends a signal to a process or, if pid is negative, to the group
	// -pid.
	Signal(c Cred, pid, signal int) error
	UserName(uid int) string

	Now() time.Time
	// Sleep waits until the machine's clock has advanced by d or ctx is done.
	Sleep(ctx context.Context, d time.Duration) error
}

// Cred identifies who accesses a file. PID identifies the process that
// /proc/self refers to; it is 0 if there is none.
type Cred struct{ UID, PID int }

// Process is an entry of the process table.
type Process struct {
	PID, Group, Parent, UID int
	// Cancel cancels the process's context; End removes it from the table.
	Cancel context.CancelCauseFunc
	End    func()
}

// FileInfo describes a file. Owner is a uid; Target is the target of a symbolic
// link, or "" for other files.
type FileInfo interface {
	fs.FileInfo
	Owner() int
	Target() string
}

// Program is a program in PATH; it returns the exit status.
type Program func(*Call) int

// Call holds the arguments and the environment of one run of a program.
type Call struct {
	Ctx context.Context
	// Leader is the shell that received the command line.
	Leader Process
	Cred   Cred
	Dir    string
	Args   []string
	In     io.Reader
	Out    *bufio.Writer
	Errs   io.Writer
	shell  *shell
	lines  *bufio.Reader
}

// Failf reports an error with the program's name and returns exit status 1.
func (c *Call) Failf(format string, args ...any) int {
	c.Out.Flush()
	fmt.Fprintf(c.Errs, c.Args[0]+": "+format+"\n", args...)
	return 1
}

// Printf writes to the standard output.
func (c *Call) Printf(format string, args ...any) { fmt.Fprintf(c.Out, format, args...) }

// Run runs another program in place of this one, as another user and, unless
// dir is empty, with dir as its home and working directory. It returns the exit
// status.
func (c *Call) Run(uid int, dir string, args []string) int {
	c.Out.Flush()
	if c.shell.tooDeep() {
		return 1
	}
	sub := c.shell.clone()
	defer sub.cancel(nil)
	sub.cred.UID = uid
	if dir != "" {
		sub.dir = dir
		sub.set("HOME", dir)
	}
	sub.status = sub.execute(args)
	return sub.finish()
}

// Getopt parses options like toybox. spec lists the letters of the options; a
// letter is followed by a colon if the option has a value. Options may follow
// operands unless spec begins with ^. ok is false after an error, which has
// been reported.
func (c *Call) Getopt(spec string, each func(opt byte, value string)) (operands []string, ok bool) {
	spec, first := strings.CutPrefix(spec, "^")
	args := c.Args[1:]
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return append(operands, args[i+1:]...), true
		case len(a) < 2 || a[0] != '-':
			if first {
				return append(operands, args[i:]...), true
			}
			operands = append(operands, a)
			continue
		}
		for j := 1; j < len(a); j++ {
			at := strings.IndexByte(spec, a[j])
			if at < 0 || a[j] == ':' {
				c.Failf("Unknown option '%s' (see \"%s --help\")", a[j:], c.Args[0])
				return nil, false
			}
			if !strings.HasPrefix(spec[at+1:], ":") {
				each(a[j], "")
				continue
			}
			value := a[j+1:]
			if value == "" && i+1 < len(args) {
				i++
				value = args[i]
			} else if value == "" {
				c.Failf("Missing argument to -%c", a[j])
				return nil, false
			}
			each(a[j], value)
			break
		}
	}
	return operands, true
}

// The signals that the shell itself handles.
const (
	SIGHUP  = 1
	SIGPIPE = 13
	SIGTERM = 15
)

// Signal is the cancellation cause of a process's context after a signal has
// terminated the process.
type Signal int

func (s Signal) Error() string { return fmt.Sprintf("ended by signal %d", int(s)) }

// Status returns the exit status of a command whose context is done.
func Status(ctx context.Context) int {
	var s Signal
	if errors.As(context.Cause(ctx), &s) {
		return 128 + int(s)
	}
	return 128 + SIGHUP
}

// ErrorText returns the strerror text for an error returned by a System.
func ErrorText(err error) string {
	for _, e := range []struct {
		err  error
		text string
	}{
		// EPERM and ESRCH come first: EPERM also matches fs.ErrPermission.
		{syscall.EPERM, "Operation not permitted"}, {syscall.ESRCH, "No such process"},
		{syscall.EISDIR, "Is a directory"}, {syscall.EFBIG, "File too large"}, {syscall.ENOTDIR, "Not a directory"},
		{syscall.ENOSPC, "No space left on device"}, {syscall.EROFS, "Read-only file system"},
		{syscall.ENAMETOOLONG, "File name too long"}, {syscall.ENOTEMPTY, "Directory not empty"},
		{fs.ErrNotExist, "No such file or directory"}, {fs.ErrPermission, "Permission denied"},
		{fs.ErrExist, "File exists"},
	} {
		if errors.Is(err, e.err) {
			return e.text
		}
	}
	return "I/O error"
}

// Options describe one command line.
type Options struct {
	System System
	Cred   Cred
	Leader Process
	// Command is the command line. If it is empty, Run reads lines from Stdin
	// and writes Prompt to Stderr before each.
	Command, Prompt string
	// Variables are set before the command line runs, in addition to HOME, IFS
	// and PWD.
	Variables map[string]string
	Stdin     io.Reader
	// Stdout and Stderr may be the same writer; they are never written
	// concurrently.
	Stdout, Stderr io.Writer
	// NotFound is printed after an unknown command's name; default "not found".
	NotFound string
}

// Run runs a command line and returns its exit status once everything that it
// started has ended, including background jobs. ctx is the context of the
// leader. A goroutine reads Stdin, from the first read by a command until the
// input ends, so the owner of Stdin must end the input after Run has returned.
func Run(ctx context.Context, o Options) int {
	in := &stdin{r: o.Stdin, pipe: newPipe()}
	defer in.pipe.closeReader()
	s := &shell{
		session: &session{sys: o.System, leader: o.Leader, notFound: cmp.Or(o.NotFound, "not found")},
		ctx:     ctx, cancel: o.Leader.Cancel, cred: o.Cred, dir: "/", name: "/system/bin/sh",
		vars: map[string]string{},
	}
	out := newOutlet(o.Stdout)
	errs := out
	if !SameWriter(o.Stdout, o.Stderr) {
		errs = newOutlet(o.Stderr)
	}
	s.fds[0], s.fds[1], s.fds[2] = end{source: in}, end{sink: out}, end{sink: errs}
	for name, value := range o.Variables {
		s.set(name, value)
	}
	s.set("IFS", " \t\n")
	s.set("PWD", "/")
	if o.Command == "" {
		s.interactive(o.Prompt)
	} else {
		s.script(o.Command, false)
	}
	return s.finish()
}

// SameWriter reports whether two writers are identical. Writers of a type that
// cannot be compared count as different.
func SameWriter(a, b io.Writer) (equal bool) {
	defer func() {
		if recover() != nil {
			equal = false
		}
	}()
	return a == b
}
