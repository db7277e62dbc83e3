package ksh

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
)

// builtin is a command of the shell itself; it returns the exit status.
type builtin func(s *shell, args []string) int

// builtinNamed returns the builtin with the given name, or nil.
func builtinNamed(name string) builtin {
	switch name {
	case ":", "true":
		return exitWith(0)
	case "false":
		return exitWith(1)
	case "echo":
		return echo
	case "printf":
		return printf
	case "cd":
		return cd
	case "pwd":
		return func(s *shell, _ []string) int { return s.say(s.dir + "\n") }
	case "exit":
		return exitShell
	case "break", "continue":
		return leaveLoop
	case "set":
		return setParams
	case "read":
		return read
	case "test", "[":
		return test
	case "eval":
		return eval
	case "exec":
		return execCommand
	case "kill":
		return kill
	case "trap":
		return trap
	case "command":
		return command
	case "wait":
		return func(s *shell, _ []string) int { s.running.Wait(); return 0 }
	}
	return nil
}

func exitWith(status int) builtin { return func(*shell, []string) int { return status } }

func builtinProgram(c *Call) int {
	c.shell.outside = true
	defer func() { c.shell.outside = false }()
	return builtinNamed(c.Args[0])(c.shell, c.Args)
}

// complain is errorf for builtins that also exist as programs.
func (s *shell) complain(format string, args ...any) {
	if s.outside {
		s.write(2, fmt.Sprintf(format, args...)+"\n")
		return
	}
	s.errorf(format, args...)
}

func (s *shell) say(text string) int {
	_, err := io.WriteString(s.writer(1), text)
	if errors.Is(err, syscall.ENOSPC) {
		s.errorf("write: %s", ErrorText(err))
	}
	return statusOf(err == nil)
}

func echo(s *shell, args []string) int {
	args = args[1:]
	end, raw := "\n", false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, c := range args[0][1:] {
			if c == 'n' {
				end = ""
			} else {
				raw = c == 'E'
			}
		}
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if !raw && strings.Contains(text, `\`) {
		var stops bool
		if text, _, stops = strings.Cut(text, `\c`); stops {
			end = ""
		}
		text, _, _ = expand.Format(&expand.Config{}, text, nil)
	}
	return s.say(text + end)
}

// wide matches a printf width that would use too much memory.
var wide = regexp.MustCompile(`%[-+ 0-9]*[0-9]{4}`)

func printf(s *shell, args []string) int {
	if len(args) < 2 {
		s.complain("printf: usage: printf format [arguments ...]")
		return 1
	}
	format, rest := args[1], append([]string{}, args[2:]...)
	if wide.MatchString(format) {
		s.complain("printf: width too large")
		return 1
	}
	for {
		text, used, err := expand.Format(&expand.Config{}, format, rest)
		if err != nil {
			s.complain("printf: %v", err)
			return 1
		}
		if status := s.say(text); status != 0 {
			return status
		}
		if rest = rest[used:]; used == 0 || len(rest) == 0 {
			return 0
		}
	}
}

func cd(s *shell, args []string) int {
	to := s.vars["HOME"]
	if len(args) > 1 {
		to = args[1]
	}
	at := s.sys.Clean(s.dir, to)
	i, err := s.sys.Stat(at, s.cred)
	switch {
	case to == "":
		err = fs.ErrNotExist
	case err == nil && !i.IsDir():
		err = syscall.ENOTDIR
	case err == nil && s.cred.UID != 0 && s.cred.UID != i.Owner() && i.Mode()&1 == 0:
		err = fs.ErrPermission
	}
	if err != nil {
		s.errorf("cd: %s: %s", to, ErrorText(err))
		return 2
	}
	s.set("PWD", at)
	s.dir = at
	return 0
}

// count returns the numeric operand of exit, break or continue.
func count(s *shell, args []string, otherwise int) (int, bool) {
	if len(args) < 2 {
		return otherwise, true
	}
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 0 {
		s.errorf("%s: %s: bad number", args[0], args[1])
		return 1, false
	}
	return n, true
}

func exitShell(s *shell, args []string) int {
	n, _ := count(s, args, s.status)
	s.exiting = true
	return n & 255
}

func leaveLoop(s *shell, args []string) int {
	n, ok := count(s, args, 1)
	switch {
	case !ok || n == 0:
		return statusOf(ok)
	case args[0] == "break":
		s.breaks = min(n, s.loops)
	default:
		s.skips = min(n, s.loops)
	}
	return 0
}

func setParams(s *shell, args []string) int {
	switch {
	case len(args) < 2 || args[1] != "--" && strings.HasPrefix(args[1], "-"):
		s.errorf("set: options are not supported by this shell")
		return 1
	case args[1] == "--":
		args = args[1:]
	}
	s.params = args[1:]
	return 0
}

// read reads one line, byte by byte, because the next command reads what
// follows.
func read(s *shell, args []string) int {
	raw := len(args) > 1 && args[1] == "-r"
	names := args[1:]
	if raw {
		names = args[2:]
	}
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	in := reader{s.ctx, s.fds[0].source}
	var line []byte
	var one [1]byte
	var failed error
	for escaped := false; ; escaped = one[0] == '\\' && !raw && !escaped {
		if _, failed = io.ReadFull(in, one[:]); failed != nil {
			break
		}
		switch {
		case one[0] == '\n' && escaped:
			line = line[:len(line)-1]
			continue
		case one[0] == '\n':
		default:
			if line = append(line, one[0]); len(line) > maxVariables {
				s.errorf("read: %v", errMemory)
				return 1
			}
			continue
		}
		break
	}
	err := s.expand(func(_ *expansion, cfg *expand.Config) error {
		values := expand.ReadFields(cfg, opaque(string(line)), len(names), raw)
		for i, name := range names {
			value := ""
			if i < len(values) {
				value = plain(values[i])
			}
			if err := s.set(name, value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.errorf("read: %v", err)
	}
	return statusOf(failed == nil && err == nil)
}

func eval(s *shell, args []string) int {
	text := strings.Join(args[1:], " ")
	if text == "" || s.tooDeep() {
		return s.status
	}
	s.depth++
	s.status = 0
	s.script(text, true)
	s.depth--
	return s.status
}

func execCommand(s *shell, args []string) int {
	if len(args) == 1 {
		s.keepFDs = true
		return 0
	}
	status := s.execute(args[1:])
	s.exiting = true
	return status
}

// kill supports signals only by number.
func kill(s *shell, args []string) int {
	signal, rest := SIGTERM, args[1:]
	if len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		n, err := strconv.Atoi(rest[0][1:])
		if err != nil || n > 64 {
			s.complain("kill: %s: bad signal", rest[0][1:])
			return 1
		}
		signal, rest = n, rest[1:]
	}
	if len(rest) == 0 {
		s.complain("kill: usage: kill [-s signame | -signum | -signame] { job | pid | pgrp } ...")
		return 1
	}
	status := 0
	for _, arg := range rest {
		pid, err := strconv.Atoi(arg)
		if err != nil || pid == 0 {
			s.complain("kill: %s: arguments must be jobs or process IDs", arg)
			status = 1
		} else if err := s.sys.Signal(s.cred, pid, signal); err != nil {
			s.complain("kill: %s: %s", arg, ErrorText(err))
			status = 1
		}
	}
	return status
}

// trap accepts only requests to ignore signals, because no signal is ever sent
// to a shell here.
func trap(s *shell, args []string) int {
	if len(args) > 1 && args[1] != "" {
		s.errorf("trap: commands are not supported by this shell")
		return 1
	}
	return 0
}

// command supports only -v.
func command(s *shell, args []string) int {
	status := 0
	if len(args) < 2 || args[1] != "-v" {
		s.errorf("command: only -v is supported by this shell")
		return 1
	}
	for _, name := range args[2:] {
		if builtinNamed(name) != nil {
			s.say(name + "\n")
		} else if _, ok := s.sys.Program(name); ok {
			s.say("/system/bin/" + strings.TrimPrefix(name, "/system/bin/") + "\n")
		} else {
			status = 1
		}
	}
	return status
}
