package ksh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"mvdan.cc/sh/v3/syntax"
)

// Limits on one call of Run.
const (
	maxDepth     = 60        // nested subshells, eval and programs that run others
	maxJobs      = 64        // concurrent parts of pipelines and background jobs
	maxWords     = 1 << 20   // bytes of the arguments of one command
	maxVariables = 256 << 10 // bytes of the variables of one shell
	maxCapture   = 1 << 20   // bytes of one $(...)
	maxFD        = 10        // file descriptors that redirections may name
)

// session holds what all shells of one call of Run share.
type session struct {
	sys      System
	leader   Process
	notFound string
	jobs     atomic.Int32
}

// shell evaluates commands. The interpreter of mvdan.cc/sh is not used because
// parts of it access the host (named pipes for <(...), stat for `type`), its
// pipes are those of the operating system, which a synctest bubble cannot see,
// and its recursion is unbounded.
type shell struct {
	*session
	ctx    context.Context
	cancel context.CancelCauseFunc
	cred   Cred
	dir    string
	name   string
	params []string
	fds    [maxFD]end
	vars   map[string]string
	size   int // size of vars in bytes

	status  int
	job     int // pid of the last background job
	depth   int
	running sync.WaitGroup
	// loops is the number of loops around the current command; breaks and skips
	// are the numbers of loops to which a break or a continue still applies.
	loops, breaks, skips int
	exiting              bool
	// keepFDs means that exec has changed the redirections of the shell itself.
	keepFDs bool
	// substituted means that a $(...) has set the status of this command.
	substituted bool
	// outside means that a builtin runs as the program with the same name.
	outside bool
}

// script runs a script in this shell. A syntax error ends the shell, unless the
// caller sets stays, as eval does.
func (s *shell) script(text string, stays bool) {
	list, err := parse(text)
	if err != nil {
		s.errorf("%v", err)
		s.status = 1
		s.exiting = s.exiting || !stays
		return
	}
	s.stmts(list)
}

// interactive runs the standard input line by line.
func (s *shell) interactive(prompt string) {
	in := bufio.NewReader(reader{s.ctx, s.fds[0].source})
	var text strings.Builder
	show := prompt
	for !s.exiting && s.ctx.Err() == nil {
		s.write(2, show)
		line, err := readLine(in)
		text.WriteString(line)
		if err != nil && text.Len() == 0 {
			return
		}
		var syntaxError parseError
		_, perr := parse(text.String())
		if err == nil && errors.As(perr, &syntaxError) && syntax.IsIncomplete(syntaxError.error) {
			show = "> "
			continue
		}
		s.script(text.String(), true)
		s.breaks, s.skips = 0, 0
		text.Reset()
		show = prompt
	}
}

// finish waits for the background jobs and returns the exit status of the
// shell.
func (s *shell) finish() int {
	s.running.Wait()
	if s.ctx.Err() != nil {
		return Status(s.ctx)
	}
	return s.status
}

// errorf reports an error, prefixed with the name of the shell.
func (s *shell) errorf(format string, args ...any) {
	s.write(2, s.name+": "+fmt.Sprintf(format, args...)+"\n")
}

// fail reports an error in an expansion; the command is not run.
func (s *shell) fail(err error) {
	if s.ctx.Err() != nil {
		return
	}
	s.errorf("%v", err)
	s.status = 1
	var fatal fatalError
	s.exiting = s.exiting || errors.As(err, &fatal)
}

// fatalError is an error that ends the shell, as with ${x?text}.
type fatalError struct{ error }

func (s *shell) write(fd int, text string) { io.WriteString(s.writer(fd), text) }

func (s *shell) writer(fd int) io.Writer {
	return writer{s.ctx, s.fds[fd].sink, func() { s.cancel(Signal(SIGPIPE)) }}
}

func (s *shell) clone() *shell {
	ctx, cancel := context.WithCancelCause(s.ctx)
	return &shell{
		session: s.session, ctx: ctx, cancel: cancel, cred: s.cred, dir: s.dir, name: s.name, params: s.params,
		fds:  s.fds,
		vars: maps.Clone(s.vars), size: s.size, status: s.status, job: s.job, depth: s.depth + 1,
	}
}

// tooDeep reports whether the nesting limit is reached, and prints a message if
// it is.
func (s *shell) tooDeep() bool {
	if s.depth < maxDepth {
		return false
	}
	s.errorf("recursion too deep")
	s.status, s.exiting = 1, true
	return true
}

// stopped reports whether the following statements must be skipped.
func (s *shell) stopped() bool {
	return s.exiting || s.breaks > 0 || s.skips > 0 || s.ctx.Err() != nil
}

func (s *shell) stmts(list []*syntax.Stmt) {
	for _, st := range list {
		if s.stopped() {
			return
		}
		s.stmt(st)
	}
}

func (s *shell) stmt(st *syntax.Stmt) {
	if st.Background {
		s.background(st)
		return
	}
	saved := s.fds
	err := s.redirect(st.Redirs)
	switch {
	case err != nil:
		s.fail(err)
	case st.Cmd != nil:
		s.command(st.Cmd)
	default:
		s.status = 0
	}
	if !s.keepFDs {
		s.fds = saved
	}
	s.keepFDs = false
	if st.Negated {
		s.status = statusOf(s.status != 0)
	}
}

func statusOf(ok bool) int {
	if ok {
		return 0
	}
	return 1
}

// spawn runs f in the subshell c on a separate goroutine and then calls done;
// finish waits for the goroutine.
func (s *shell) spawn(c *shell, f func(*shell), done func()) bool {
	if s.jobs.Add(1) > maxJobs {
		s.jobs.Add(-1)
		c.cancel(nil)
		s.errorf("can't fork - try again")
		s.status = 254
		return false
	}
	s.running.Go(func() {
		defer s.jobs.Add(-1)
		defer c.cancel(nil)
		f(c)
		c.finish()
		done()
	})
	return true
}

// background runs a statement as a job with a pid, in the group of the leader.
func (s *shell) background(st *syntax.Stmt) {
	if s.tooDeep() {
		return
	}
	c := s.clone()
	ctx, p := s.sys.Start(c.ctx, Process{PID: s.leader.PID, Group: s.leader.Group, UID: s.cred.UID})
	c.ctx, c.cancel = ctx, p.Cancel
	c.fds[0] = end{source: &content{r: strings.NewReader("")}}
	front := *st
	front.Background = false
	s.status = 0
	if !s.spawn(c, func(c *shell) { c.stmt(&front) }, p.End) {
		p.End()
		return
	}
	s.job = p.PID
}

func (s *shell) command(cm syntax.Command) {
	switch cm := cm.(type) {
	case *syntax.CallExpr:
		s.call(cm)
	case *syntax.Block:
		s.stmts(cm.Stmts)
	case *syntax.Subshell:
		if s.tooDeep() {
			return
		}
		c := s.clone()
		defer c.cancel(nil)
		c.stmts(cm.Stmts)
		s.status = c.finish()
	case *syntax.BinaryCmd:
		if cm.Op == syntax.Pipe {
			s.pipeline(cm)
			return
		}
		s.stmt(cm.X)
		if !s.stopped() && (s.status == 0) == (cm.Op == syntax.AndStmt) {
			s.stmt(cm.Y)
		}
	case *syntax.IfClause:
		s.ifClause(cm)
	case *syntax.WhileClause:
		s.whileClause(cm)
	case *syntax.ForClause:
		s.forClause(cm)
	case *syntax.CaseClause:
		s.caseClause(cm)
	}
}

// pipeline runs both sides concurrently, each in a subshell, and waits for
// both.
func (s *shell) pipeline(cm *syntax.BinaryCmd) {
	if s.tooDeep() {
		return
	}
	p := newPipe()
	left, right := s.clone(), s.clone()
	defer right.cancel(nil)
	left.fds[1], right.fds[0] = end{sink: p}, end{source: p}
	leftDone := make(chan struct{})
	if !s.spawn(left, func(c *shell) { c.stmt(cm.X) }, func() { p.closeWriter(); close(leftDone) }) {
		return
	}
	right.stmt(cm.Y)
	status := right.finish()
	p.closeReader()
	<-leftDone
	s.status = status
}

func (s *shell) ifClause(cm *syntax.IfClause) {
	for ; cm != nil; cm = cm.Else {
		s.stmts(cm.Cond)
		switch {
		case len(cm.Cond) > 0 && s.stopped():
			return
		case len(cm.Cond) == 0 || s.status == 0: // no condition: else
			s.stmts(cm.Then)
			return
		}
		s.status = 0
	}
}

// loop runs the body of a loop; more is false when the loop has ended.
func (s *shell) loop(list []*syntax.Stmt) (more bool) {
	s.loops++
	s.stmts(list)
	s.loops--
	switch {
	case s.skips > 0:
		s.skips--
		return s.skips == 0 && !s.stopped()
	case s.breaks > 0:
		s.breaks--
		return false
	}
	return !s.stopped()
}

func (s *shell) whileClause(cm *syntax.WhileClause) {
	status := 0
	for s.loop(cm.Cond) && (s.status == 0) != cm.Until {
		more := s.loop(cm.Do)
		if status = s.status; !more {
			break
		}
	}
	if !s.exiting {
		s.status = status
	}
}

func (s *shell) forClause(cm *syntax.ForClause) {
	words := cm.Loop.(*syntax.WordIter)
	items := s.params
	if words.InPos.IsValid() {
		var err error
		if items, err = s.fields(words.Items); err != nil {
			s.fail(err)
			return
		}
	}
	s.status = 0
	for _, item := range items {
		if err := s.set(words.Name.Value, item); err != nil {
			s.fail(err)
			return
		}
		if !s.loop(cm.Do) {
			return
		}
	}
}

func (s *shell) caseClause(cm *syntax.CaseClause) {
	word, err := s.text(cm.Word)
	s.status = 0
	for _, item := range cm.Items {
		for _, p := range item.Patterns {
			var hit bool
			if err == nil {
				hit, err = s.matches(p, word)
			}
			if err != nil {
				s.fail(err)
				return
			}
			if hit {
				s.stmts(item.Stmts)
				return
			}
		}
	}
}

func (s *shell) redirect(list []*syntax.Redirect) error {
	for _, rd := range list {
		target, err := s.text(rd.Word)
		if err != nil {
			return err
		}
		fd := 1
		if rd.Op == syntax.RdrIn || rd.Op == syntax.DplIn {
			fd = 0
		}
		if rd.N != nil {
			fd = int(rd.N.Value[0] - '0')
		}
		if s.fds[fd], err = s.open(rd.Op, target); err != nil {
			return err
		}
	}
	return nil
}

func (s *shell) open(op syntax.RedirOperator, target string) (end, error) {
	at := s.sys.Clean(s.dir, target)
	switch op {
	case syntax.DplIn, syntax.DplOut:
		switch {
		case target == "-":
			return end{}, nil
		case len(target) != 1 || target[0] < '0' || target[0] > '9':
			return end{}, fmt.Errorf("%s: bad file descriptor", target)
		}
		return s.fds[target[0]-'0'], nil
	case syntax.RdrIn:
		r, err := s.sys.Open(at, s.cred)
		if err != nil {
			return end{}, fmt.Errorf("can't open %s: %s", target, ErrorText(err))
		}
		return end{source: &content{r: r}}, nil
	}
	w, err := s.sys.Create(at, s.cred, op == syntax.AppOut)
	if err != nil {
		return end{}, fmt.Errorf("can't create %s: %s", target, ErrorText(err))
	}
	return end{sink: file{w}}, nil
}

// call runs a simple command.
func (s *shell) call(cm *syntax.CallExpr) {
	s.substituted = false
	args, err := s.fields(cm.Args)
	if err != nil {
		s.fail(err)
		return
	}
	var restore []func()
	for _, a := range cm.Assigns {
		name := a.Name.Value
		old, ok := s.vars[name]
		value, err := s.text(a.Value)
		if err == nil {
			if a.Append {
				value = old + value
			}
			err = s.set(name, value)
		}
		if err != nil {
			s.fail(err)
			return
		}
		restore = append(restore, func() {
			if s.unset(name); ok {
				s.set(name, old)
			}
		})
	}
	if len(args) == 0 {
		if !s.substituted {
			s.status = 0
		}
		return
	}
	s.status = s.run(args)
	for _, f := range slices.Backward(restore) {
		f()
	}
}

// run runs a builtin or a program and returns its exit status.
func (s *shell) run(args []string) int {
	if s.ctx.Err() != nil {
		return s.status
	}
	if b := builtinNamed(args[0]); b != nil {
		return b(s, args)
	}
	return s.execute(args)
}

// execute runs a program and returns its exit status.
func (s *shell) execute(args []string) int {
	name := args[0]
	if strings.Contains(name, "/") {
		name = s.sys.Clean(s.dir, name)
	}
	program, ok := s.sys.Program(name)
	if !ok {
		if i, err := s.sys.Stat(name, s.cred); strings.Contains(name, "/") && err == nil && !i.IsDir() {
			s.errorf("%s: can't execute: %s", args[0], "Permission denied")
			return 126
		}
		s.errorf("%s: %s", args[0], s.notFound)
		return 127
	}
	name = name[strings.LastIndexByte(name, '/')+1:]
	out := bufio.NewWriterSize(s.writer(1), 8<<10)
	status := program(&Call{
		Ctx: s.ctx, Leader: s.leader, Cred: s.cred, Dir: s.dir, Args: append([]string{name}, args[1:]...),
		In: reader{s.ctx, s.fds[0].source}, Out: out, Errs: s.writer(2), shell: s,
	})
	if err := out.Flush(); err != nil && !errors.Is(err, errPipe) && s.ctx.Err() == nil {
		s.write(2, fmt.Sprintf("%s: write: %s\n", name, ErrorText(err)))
		return 1
	}
	return status
}

// set sets a variable.
func (s *shell) set(name, value string) error {
	size := s.size + len(value) - len(s.vars[name])
	if _, ok := s.vars[name]; !ok {
		size += len(name) + 32
	}
	if size > maxVariables {
		return errMemory
	}
	s.vars[name], s.size = value, size
	return nil
}

func (s *shell) unset(name string) {
	if value, ok := s.vars[name]; ok {
		s.size -= len(name) + 32 + len(value)
		delete(s.vars, name)
	}
}
