package androidsim

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/syntax"
)

// call is a command that is not part of the shell: a tool of /system/bin.
type call struct {
	*shell
	args []string
	in   io.Reader
	out  *bufio.Writer
	errs io.Writer
	// lines is the buffer of eachLine.
	lines *bufio.Reader
}

// failf reports an error in the tool's name; it returns status 1.
func (c *call) failf(format string, args ...any) int {
	c.out.Flush()
	fmt.Fprintf(c.errs, c.args[0]+": "+format+"\n", args...)
	return 1
}

// printf writes to the output of the tool.
func (c *call) printf(format string, args ...any) { fmt.Fprintf(c.out, format, args...) }

// run ends with the status of another command that runs in the tool's place,
// within the given shell.
func (c *call) run(in *shell, args []string) int {
	c.out.Flush()
	defer in.cancel(nil)
	if c.deep() {
		return 1
	}
	in.last = in.execute(args)
	return in.finish()
}

// call runs a simple command.
func (s *shell) call(cm *syntax.CallExpr) {
	s.substituted = false
	args, err := s.fields(cm.Args)
	if err != nil {
		s.fail(err)
		return
	}
	if len(args) == 0 {
		if err := s.assignAll(cm.Assigns); err != nil {
			s.fail(err)
		} else if !s.substituted {
			s.last = 0
		}
		return
	}
	if len(cm.Assigns) == 0 {
		s.run(args)
		return
	}
	saved := map[string]*variable{}
	for _, a := range cm.Assigns {
		if v := s.vars[a.Name.Value]; v != nil {
			own := *v
			saved[a.Name.Value] = &own
		} else {
			saved[a.Name.Value] = nil
		}
	}
	if err := s.assignAll(cm.Assigns); err != nil {
		s.fail(err)
	} else {
		for name := range saved {
			s.vars[name].exported = true
		}
		s.run(args)
	}
	s.restore(saved)
}

// restore puts variables back as they were.
func (s *shell) restore(saved map[string]*variable) {
	for name, v := range saved {
		if now := s.vars[name]; now != nil {
			now.readonly = false
		}
		s.unset(name)
		if v != nil && s.set(name, v.value) == nil {
			s.vars[name].exported, s.vars[name].readonly = v.exported, v.readonly
		}
	}
}

func (s *shell) assignAll(list []*syntax.Assign) error {
	for _, a := range list {
		if a.Array != nil || a.Index != nil || a.Name == nil {
			return errors.New("arrays are not supported by this shell")
		}
		value, err := s.text(a.Value)
		if err != nil {
			return err
		}
		if a.Append {
			old, _ := s.get(a.Name.Value)
			value = old + value
		}
		if err := s.set(a.Name.Value, value); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command that has been expanded: function, builtin or tool.
func (s *shell) run(args []string) {
	if s.ctx.Err() != nil {
		return
	}
	if body := s.funcs[args[0]]; body != nil {
		s.function(body, args[1:])
		return
	}
	if b := s.phone.builtins[args[0]]; b != nil {
		s.last = b(s, args)
		return
	}
	s.last = s.execute(args)
}

func (s *shell) function(body *syntax.Stmt, args []string) {
	if s.deep() {
		return
	}
	params := s.params
	s.params = args
	s.calls++
	s.depth++
	s.stmt(body)
	s.depth--
	s.calls--
	s.params, s.leaving = params, false
}

// execute runs a tool, or a script of the phone's files. It knows nothing of the
// host.
func (s *shell) execute(args []string) int {
	name := args[0]
	if strings.Contains(name, "/") {
		if base, ok := s.phone.toolAt(clean(s.cwd, name)); ok {
			name = base
		}
	}
	if t, ok := s.phone.tool(name); ok {
		out := bufio.NewWriterSize(s.writer(1), 8<<10)
		status := t(&call{shell: s, args: append([]string{name}, args[1:]...), in: reader{s.ctx, s.fds[0].source}, out: out, errs: s.writer(2)})
		if err := out.Flush(); err != nil && !errors.Is(err, errPipe) && s.ctx.Err() == nil {
			s.write(2, fmt.Sprintf("%s: write: %s\n", name, errorText(err)))
			return 1
		}
		return status
	}
	if b := s.phone.builtins[name]; b != nil && slices.Contains(alsoTools, name) {
		s.outside = true
		defer func() { s.outside = false }()
		return b(s, args)
	}
	if strings.Contains(name, "/") {
		return s.executeFile(args)
	}
	return s.notFound(name)
}

func (s *shell) notFound(name string) int {
	what := "not found"
	if s.phone.opt.API >= 29 {
		what = "inaccessible or not found"
	}
	s.errorf("%s: %s", name, what)
	return 127
}

// executeFile runs a shell script.
func (s *shell) executeFile(args []string) int {
	at := clean(s.cwd, args[0])
	i, err := s.phone.stat(at, s.cred)
	n := node{mode: i.mode, uid: i.uid}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.notFound(args[0])
	case err == nil && (i.IsDir() || i.mode&0o111 == 0 || !n.allowed(s.cred.uid, 4)):
		err = fs.ErrPermission
	}
	if err != nil {
		s.errorf("%s: can't execute: %s", args[0], errorText(err))
		return 126
	}
	c := s.clone()
	defer c.cancel(nil)
	return c.scriptFile(args[0], args[1:])
}

// scriptFile makes s the shell of a script.
func (s *shell) scriptFile(name string, params []string) int {
	if s.deep() {
		return 1
	}
	data, err := s.phone.readFile(clean(s.cwd, name), s.cred)
	if err != nil {
		s.errorf("%s: %s", name, errorText(err))
		return 127
	}
	s.name, s.params, s.funcs = name, params, map[string]*syntax.Stmt{}
	s.script(string(data[:min(len(data), maxCommand+1)]), false)
	return s.finish()
}

// builtin is a command of the shell itself; it returns the status.
type builtin func(s *shell, args []string) int

// alsoTools are the builtins that are in /system/bin too.
var alsoTools = []string{"echo", "printf", "true", "false", "test", "[", "kill", "pwd"}

// builtins is the table of a phone: a table of the package could not hold
// functions that look into it.
func builtins() map[string]builtin {
	return map[string]builtin{
		":": status(0), "true": status(0), "false": status(1), "echo": echo, "printf": printf, "cd": cd, "pwd": pwd,
		"exit": exitShell, "return": returnFrom, "break": leaveLoop, "continue": leaveLoop, "shift": shift, "set": setOptions,
		"unset": unset, "read": read, "test": testCommand, "[": testCommand, "eval": eval, "exec": execCommand, "kill": kill, "wait": wait,
		"trap": trap, "umask": status(0), "ulimit": status(0), "type": which, "whence": which, "command": command, "builtin": command,
		".": sourceFile, "source": sourceFile, "alias": status(0), "unalias": status(0), "jobs": status(0), "bg": status(0), "fg": status(0),
	}
}

func status(n int) builtin { return func(*shell, []string) int { return n } }

func echo(s *shell, args []string) int {
	args = args[1:]
	end, raw := "\n", false
	for len(args) > 0 {
		opt, ok := strings.CutPrefix(args[0], "-")
		if !ok || opt == "" || strings.Trim(opt, "neE") != "" {
			break
		}
		for _, c := range opt {
			switch c {
			case 'n':
				end = ""
			case 'E':
				raw = true
			case 'e':
				raw = false
			}
		}
		args = args[1:]
	}
	text := strings.Join(args, " ")
	if !raw {
		before, _, found := strings.Cut(text, `\c`)
		if found {
			text, end = before, ""
		}
		text = unescape(text)
	}
	return s.say(text + end)
}

// say writes to the output of a builtin.
func (s *shell) say(text string) int {
	_, err := io.WriteString(s.writer(1), text)
	if errors.Is(err, syscall.ENOSPC) {
		s.errorf("write: %s", errorText(err))
	}
	return truth(err == nil)
}

func printf(s *shell, args []string) int {
	if len(args) < 2 {
		s.errorf("printf: usage: printf format [arguments ...]")
		return 1
	}
	format, rest := args[1], args[2:]
	var b strings.Builder
	for {
		used, err := formatOnce(&b, format, rest)
		if err != nil {
			s.errorf("printf: %v", err)
			return 1
		}
		rest = rest[used:]
		if used == 0 || len(rest) == 0 {
			break
		}
		if b.Len() > maxWords || s.ctx.Err() != nil {
			s.errorf("printf: %v", errTooLong)
			return 1
		}
	}
	return s.say(b.String())
}

// formatOnce goes through the format once; it returns how many arguments it took.
func formatOnce(b *strings.Builder, format string, args []string) (used int, err error) {
	next := func() string {
		if used < len(args) {
			used++
			return args[used-1]
		}
		return ""
	}
	for i := 0; i < len(format); i++ {
		switch {
		case format[i] == '\\' && i+1 < len(format):
			end := i + 2
			for end < len(format) && end < i+5 && strings.IndexByte("01234567xabcdefABCDEF", format[end]) >= 0 && strings.IndexByte("01234567x", format[i+1]) >= 0 {
				end++
			}
			b.WriteString(unescape(format[i:end]))
			i = end - 1
			continue
		case format[i] != '%':
			b.WriteByte(format[i])
			continue
		}
		end := i + 1
		for end < len(format) && strings.IndexByte("-+ #0123456789.", format[end]) >= 0 {
			end++
		}
		if end == len(format) {
			b.WriteString(format[i:])
			return used, nil
		}
		spec, verb := format[i:end], format[end]
		i = end
		if err := widths(spec); err != nil {
			return used, err
		}
		switch verb {
		case '%':
			b.WriteByte('%')
		case 's':
			fmt.Fprintf(b, spec+"s", next())
		case 'b':
			fmt.Fprintf(b, spec+"s", unescape(next()))
		case 'c':
			fmt.Fprintf(b, spec+".1s", next())
		case 'd', 'i', 'u', 'x', 'X', 'o':
			text := next()
			n, err := strconv.ParseInt(strings.TrimSpace(text), 0, 64)
			if err != nil && text != "" {
				return used, fmt.Errorf("%.80s: not a number", text)
			}
			if verb == 'i' || verb == 'u' {
				verb = 'd'
			}
			fmt.Fprintf(b, spec+string(rune(verb)), n)
		default:
			return used, fmt.Errorf("bad format %%%c", verb)
		}
	}
	return used, nil
}

// widths refuses a width or precision that would fill the memory.
func widths(spec string) error {
	for _, digits := range strings.FieldsFunc(spec, func(r rune) bool { return r < '0' || r > '9' }) {
		if len(strings.TrimLeft(digits, "0")) > 4 {
			return errors.New("width too large")
		}
	}
	return nil
}

func cd(s *shell, args []string) int {
	to, _ := s.get("HOME")
	if len(args) > 1 {
		to = args[1]
	}
	if to == "-" {
		to, _ = s.get("OLDPWD")
		s.say(to + "\n")
	}
	at := clean(s.cwd, to)
	i, err := s.phone.stat(at, s.cred)
	n := node{mode: i.mode, uid: i.uid}
	switch {
	case to == "" || err != nil:
	case !i.IsDir():
		err = syscall.ENOTDIR
	case !n.allowed(s.cred.uid, 1):
		err = fs.ErrPermission
	}
	if to == "" || err != nil {
		if err == nil {
			err = fs.ErrNotExist
		}
		s.errorf("cd: %s: %s", to, errorText(err))
		return 2
	}
	s.set("OLDPWD", s.cwd)
	s.cwd = at
	s.set("PWD", at)
	return 0
}

func pwd(s *shell, _ []string) int { return s.say(s.cwd + "\n") }

// countArg reads the number that exit, return, break, continue and shift take.
func countArg(s *shell, args []string, otherwise int) (int, bool) {
	if len(args) < 2 {
		return otherwise, true
	}
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 0 {
		s.errorf("%s: %s: bad number", args[0], args[1])
		return 0, false
	}
	return n, true
}

func exitShell(s *shell, args []string) int {
	n, ok := countArg(s, args, s.last)
	if !ok {
		n = 1
	}
	s.exiting = true
	return n & 255
}

func returnFrom(s *shell, args []string) int {
	n, ok := countArg(s, args, s.last)
	if !ok {
		return 1
	}
	if s.calls == 0 && s.sourcing == 0 {
		s.exiting = true
	}
	s.leaving = true
	return n & 255
}

func leaveLoop(s *shell, args []string) int {
	n, ok := countArg(s, args, 1)
	if !ok || n == 0 || s.loops == 0 {
		return truth(ok)
	}
	if args[0] == "break" {
		s.breaks = min(n, s.loops)
	} else {
		s.skips = min(n, s.loops)
	}
	return 0
}

func shift(s *shell, args []string) int {
	n, ok := countArg(s, args, 1)
	if !ok || n > len(s.params) {
		return 1
	}
	s.params = s.params[n:]
	return 0
}

func setOptions(s *shell, args []string) int {
	for i := 1; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			s.params = args[i+1:]
			return 0
		}
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			s.params = args[i:]
			return 0
		}
		on, letters := a[0] == '-', a[1:]
		if letters == "o" && i+1 < len(args) {
			i++
			letters = map[string]string{"errexit": "e", "noglob": "f", "nounset": "u"}[args[i]]
		}
		for _, c := range letters {
			switch c {
			case 'e':
				s.errexit = on
			case 'f':
				s.noglob = on
			case 'u':
				s.nounset = on
			}
		}
	}
	return 0
}

func unset(s *shell, args []string) int {
	for _, name := range args[1:] {
		if name == "-f" || name == "-v" {
			continue
		}
		if slices.Contains(args, "-f") {
			delete(s.funcs, name)
		} else {
			s.unset(name)
		}
	}
	return 0
}

// declClause is export and readonly.
func (s *shell) declClause(cm *syntax.DeclClause) {
	exported, readonly := cm.Variant.Value == "export", cm.Variant.Value == "readonly"
	if !exported && !readonly {
		s.refuse(cm.Variant.Value)
		return
	}
	s.last = 0
	for _, a := range cm.Args {
		if a.Name == nil {
			flags, err := s.text(a.Value)
			if err != nil {
				s.fail(err)
				return
			}
			s.refuse(cm.Variant.Value + " " + flags)
			return
		}
		name := a.Name.Value
		if !a.Naked {
			if err := s.assignAll([]*syntax.Assign{a}); err != nil {
				s.fail(err)
				return
			}
		}
		if v := s.vars[name]; v != nil {
			v.exported, v.readonly = v.exported || exported, v.readonly || readonly
		}
	}
}

// read takes one line, byte by byte: what follows belongs to the next command.
func read(s *shell, args []string) int {
	raw := false
	var names []string
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") {
			raw = raw || strings.Contains(a, "r")
			continue
		}
		names = append(names, a)
	}
	if len(names) == 0 {
		names = []string{"REPLY"}
	}
	in := reader{s.ctx, s.fds[0].source}
	var line []byte
	var one [1]byte
	failed := false
	for {
		if _, err := io.ReadFull(in, one[:]); err != nil {
			failed = true
			break
		}
		if one[0] == '\\' && !raw {
			if _, err := io.ReadFull(in, one[:]); err == nil && one[0] != '\n' {
				line = append(line, one[0])
			}
			continue
		}
		if one[0] == '\n' {
			break
		}
		if line = append(line, one[0]); len(line) > maxVariables {
			s.errorf("read: %v", errMemory)
			return 1
		}
	}
	ifs, set := s.get("IFS")
	if !set {
		ifs = " \t\n"
	}
	rest := strings.Trim(string(line), blanksOf(ifs))
	for i, name := range names {
		value := rest
		if at := strings.IndexAny(rest, ifs); i < len(names)-1 && ifs != "" {
			if at < 0 {
				at = len(rest)
			}
			value = rest[:at]
			rest = strings.TrimLeft(rest[min(at+1, len(rest)):], blanksOf(ifs))
		}
		if err := s.set(name, value); err != nil {
			s.errorf("read: %v", err)
			return 1
		}
	}
	return truth(!failed)
}

func eval(s *shell, args []string) int {
	text := strings.Join(args[1:], " ")
	if text == "" || s.deep() {
		return s.last
	}
	s.depth++
	s.last = 0
	s.script(text, true)
	s.depth--
	return s.last
}

func execCommand(s *shell, args []string) int {
	if len(args) == 1 {
		s.keepFDs = true
		return 0
	}
	n := s.execute(args[1:])
	s.exiting = true
	return n
}

// kill is both the builtin and the tool; the tool has no shell's name before it.
func kill(s *shell, args []string) int {
	signal, rest := sigTerm, args[1:]
	if len(rest) > 0 && rest[0] == "-l" {
		names := slices.Sorted(maps.Keys(signalNames))
		slices.SortFunc(names, func(a, b string) int { return signalNames[a] - signalNames[b] })
		return s.say(strings.Join(names, " ") + "\n")
	}
	if len(rest) > 1 && rest[0] == "-s" {
		rest = append([]string{"-" + rest[1]}, rest[2:]...)
	}
	if len(rest) > 0 && strings.HasPrefix(rest[0], "-") && rest[0] != "--" {
		n, ok := signalNumber(rest[0][1:])
		if !ok {
			s.complain("kill: %s: bad signal", rest[0][1:])
			return 1
		}
		signal, rest = n, rest[1:]
	}
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		s.complain("kill: usage: kill [-s signame | -signum | -signame] { job | pid | pgrp } ...")
		return 1
	}
	failed := false
	for _, arg := range rest {
		pid, err := strconv.Atoi(arg)
		if err != nil || pid == 0 {
			s.complain("kill: %s: arguments must be jobs or process IDs", arg)
			failed = true
			continue
		}
		if err := s.phone.signal(s.cred, pid, signal); err != nil {
			s.complain("kill: %s: %s", arg, errorText(err))
			failed = true
		}
	}
	return truth(!failed)
}

// complain is errorf for what is a tool too.
func (s *shell) complain(format string, args ...any) {
	if s.outside {
		s.write(2, fmt.Sprintf(format, args...)+"\n")
		return
	}
	s.errorf(format, args...)
}

func signalNumber(text string) (int, bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return n, n >= 0 && n < 65
	}
	n, ok := signalNames[strings.TrimPrefix(strings.ToUpper(text), "SIG")]
	return n, ok
}

// wait waits for the jobs of the shell; what it cannot tell apart it waits for too.
func wait(s *shell, _ []string) int {
	s.running.Wait()
	return 0
}

// trap accepts that signals are ignored: nothing here sends any to a shell.
func trap(s *shell, args []string) int {
	if len(args) > 1 && args[1] != "" {
		s.refuse("trap with a command")
		return 1
	}
	return 0
}

// locate says what a name means to the shell.
func (s *shell) locate(name string) string {
	switch {
	case s.funcs[name] != nil, s.phone.builtins[name] != nil:
		return name
	case strings.Contains(name, "/"):
		if _, err := s.phone.stat(clean(s.cwd, name), s.cred); err == nil {
			return name
		}
	default:
		if _, ok := s.phone.tool(name); ok {
			return "/system/bin/" + name
		}
	}
	return ""
}

func which(s *shell, args []string) int {
	n := 0
	for _, name := range args[1:] {
		at := s.locate(name)
		switch {
		case at == "":
			s.errorf("%s: %s not found", args[0], name)
			n = 1
		case at == name:
			s.say(name + " is a shell builtin\n")
		default:
			s.say(name + " is " + at + "\n")
		}
	}
	return n
}

func command(s *shell, args []string) int {
	args = args[1:]
	if len(args) > 0 && (args[0] == "-v" || args[0] == "-V") {
		n := 0
		for _, name := range args[1:] {
			if at := s.locate(name); at != "" {
				s.say(at + "\n")
			} else {
				n = 1
			}
		}
		return n
	}
	for len(args) > 0 && (args[0] == "-p" || args[0] == "--") {
		args = args[1:]
	}
	if len(args) == 0 {
		return 0
	}
	if s.deep() {
		return 1
	}
	if b := s.phone.builtins[args[0]]; b != nil {
		s.depth++
		defer func() { s.depth-- }()
		return b(s, args)
	}
	return s.execute(args)
}

func sourceFile(s *shell, args []string) int {
	if len(args) < 2 || s.deep() {
		return 1
	}
	data, err := s.phone.readFile(clean(s.cwd, args[1]), s.cred)
	if err != nil {
		s.errorf("%s: %s: %s", args[0], args[1], errorText(err))
		return 1
	}
	s.depth++
	s.sourcing++
	s.last = 0
	s.script(string(data[:min(len(data), maxCommand+1)]), true)
	s.sourcing--
	s.depth--
	s.leaving = false
	return s.last
}
