package androidsim

import (
	"bufio"
	"bytes"
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

	"github.com/leakgate/leakgate/internal/adbd"
)

// Caps of one call of Shell, against command lines that want to fill the host.
const (
	// maxCommand is the kernel's MAX_ARG_STRLEN.
	maxCommand = 128 << 10
	// maxOpeners bounds each thing that can nest in a command line: the parser
	// recurses, and a level takes about 4 kB of stack.
	maxOpeners = 4000
	// maxDepth bounds functions, subshells and eval within each other.
	maxDepth = 60
	// maxJobs bounds what runs at the same time.
	maxJobs = 64
	// maxWords bounds the arguments of one command, in bytes.
	maxWords = 1 << 20
	// maxVariables bounds the variables of one shell, in bytes.
	maxVariables = 256 << 10
	// maxCapture bounds the output that $(...) takes.
	maxCapture = 1 << 20
	// maxFunctions bounds the functions of one shell.
	maxFunctions = 256
)

// session is one call of Shell.
type session struct {
	phone  *Phone
	leader *task
	jobs   atomic.Int32
	stdin  *stdin
}

// enter counts one more thing that runs; leave must follow if it is true.
func (s *session) enter() bool {
	if s.jobs.Add(1) > maxJobs {
		s.jobs.Add(-1)
		return false
	}
	return true
}

func (s *session) leave() { s.jobs.Add(-1) }

// end is one open file of a shell.
type end struct {
	source
	sink
}

// maxFD is the number of files that redirections may name.
const maxFD = 10

// variable is a shell variable. A nil *variable is unset.
type variable struct {
	value    string
	exported bool
	readonly bool
}

// shell evaluates commands: the syntax tree of mvdan.cc/sh with the meaning that
// mksh gives it. That package has an interpreter too; it is not used because
// parts of it reach the host (named pipes for <(...), stat for `type`, `cd` on
// Windows), because its pipes are those of the system, which a synctest bubble
// cannot see, and because nothing bounds its recursion or its memory.
type shell struct {
	*session
	ctx    context.Context
	cancel context.CancelCauseFunc
	cred   cred
	cwd    string
	name   string
	params []string
	fds    [maxFD]end
	vars   map[string]*variable
	size   int
	funcs  map[string]*syntax.Stmt

	last     int
	job      int
	errexit  bool
	noglob   bool
	nounset  bool
	checked  int
	depth    int
	running  sync.WaitGroup
	loops    int
	breaks   int
	skips    int
	leaving  bool
	exiting  bool
	keepFDs  bool
	calls    int // functions that are running
	sourcing int
	// substituted: a $(...) has set the status since the command began.
	substituted bool
	// outside: a builtin runs as the tool of its name.
	outside bool
}

// Shell runs one command line as the phone's shell would. An empty one runs the
// lines of stdin, with a prompt. It returns when everything that the command
// started has ended, also what it put in the background, because adbd waits for
// the output of that too. It is adbd.NoExit for a command that lost its adbd, and
// where a fault says so.
//
// stdin is read by a goroutine once a command reads it; the goroutine ends with
// the input, so the owner of stdin must end it after Shell has returned.
func (p *Phone) Shell(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) int {
	in := newStdin(stdin)
	defer in.pipe.closeReader()
	born, uid := p.session.Load(), p.shellUID()
	if !p.answers(Request{CommandRequest, command, 0}) {
		<-ctx.Done() // adb ends what it was asked to run
		return adbd.NoExit
	}
	ctx, leader := p.startTask(ctx, "sh", uid, 0, 0)
	defer p.endTask(leader)
	s := &shell{
		session: &session{phone: p, leader: leader, stdin: in},
		ctx:     ctx, cancel: leader.cancel, cred: cred{uid: uid, pid: leader.pid}, cwd: "/", name: "/system/bin/sh",
		vars: map[string]*variable{}, funcs: map[string]*syntax.Stmt{},
	}
	// Two writers that are one must not be written to at the same time.
	one := same(stdout, stderr)
	spoiled := p.spoil(stdout, func() { leader.kill(sigKill) })
	if spoiled != nil && stdout != nil {
		stdout = spoiled
	}
	out := newOutlet(stdout)
	errs := out
	if !one {
		errs = newOutlet(stderr)
	}
	s.fds[0], s.fds[1], s.fds[2] = end{source: in}, end{sink: out}, end{sink: errs}
	for name, value := range map[string]string{
		"PATH": "/product/bin:/apex/com.android.runtime/bin:/system/bin:/system/xbin:/vendor/bin", "HOME": "/", "USER": userName(s.cred.uid),
		"SHELL": "/system/bin/sh", "TMPDIR": "/data/local/tmp", "ANDROID_DATA": "/data", "ANDROID_ROOT": "/system", "PWD": "/", "IFS": " \t\n", "PS4": "+ ",
	} {
		s.set(name, value)
		s.vars[name].exported = name != "IFS" && name != "PS4"
	}
	if command == "" {
		s.interactive()
	} else {
		s.script(command, false)
	}
	status := s.finish()
	if spoiled != nil {
		spoiled.floods(p, func(b []byte) (int, error) { return out.write(ctx, b) })
	}
	switch {
	case p.session.Load() != born:
		return adbd.NoExit
	case spoiled != nil && spoiled.done.Load():
		return spoiled.torn.exit
	case ctx.Err() != nil:
		return statusOf(ctx)
	}
	return status
}

func newStdin(r io.Reader) *stdin { return &stdin{r: r, pipe: newPipe()} }

func same(a, b io.Writer) (equal bool) {
	// Writers of a type that cannot be compared are two.
	defer func() {
		if recover() != nil {
			equal = false
		}
	}()
	return a == b
}

// finish ends a shell and waits for what still runs in the background.
func (s *shell) finish() int {
	s.running.Wait()
	if s.ctx.Err() != nil {
		return statusOf(s.ctx)
	}
	return s.last
}

// errSyntax is a command line that is none.
type errSyntax struct{ error }

func (e errSyntax) Error() string { return plain(e.error.Error()) }

// parse reads a script as mksh.
func parse(text string) (f *syntax.File, err error) {
	if len(text) > maxCommand {
		return nil, errors.New("argument list too long")
	}
	if tooDeep(text) {
		return nil, errSyntax{errors.New("nested too deeply")}
	}
	// The parser is not ours: what it cannot take is an error like any other.
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, errSyntax{fmt.Errorf("%v", r)}
		}
	}()
	source := opaqueScript(text)
	f, err = syntax.NewParser(syntax.Variant(syntax.LangMirBSDKorn)).Parse(strings.NewReader(source), "")
	if err != nil {
		return nil, errSyntax{err}
	}
	if source != text {
		plainTree(f)
	}
	return f, nil
}

// openers are all that can take the parser one level deeper.
var openers = []string{
	"(", "{", "[", "`", "?", "-", "+", "~", "!", "|", "&", "if", "for", "while", "until", "case", "do", "time", "function",
}

// tooDeep counts openers whether they nest or not: no honest command line has as
// many.
func tooDeep(text string) bool {
	for _, o := range openers {
		if strings.Count(text, o) > maxOpeners {
			return true
		}
	}
	return false
}

// script runs a text in this shell. In an interactive shell and in eval, a
// syntax error does not end it.
func (s *shell) script(text string, stays bool) {
	f, err := parse(text)
	if err != nil {
		s.errorf("%v", err)
		s.last = 1
		s.exiting = s.exiting || !stays
		return
	}
	s.stmts(f.Stmts)
}

// interactive runs stdin line by line.
func (s *shell) interactive() {
	in := bufio.NewReader(reader{s.ctx, s.fds[0].source})
	prompt := "androidsim:/ $ "
	if s.cred.uid == uidRoot {
		prompt = "androidsim:/ # "
	}
	var text strings.Builder
	show := prompt
	for !s.exiting && s.ctx.Err() == nil {
		s.write(2, show)
		line, err := readLine(in)
		text.WriteString(line)
		if err != nil && text.Len() == 0 {
			return
		}
		_, perr := parse(text.String())
		if err == nil && perr != nil && incomplete(perr) {
			show = "> "
			continue
		}
		s.script(text.String(), true)
		s.breaks, s.skips, s.leaving = 0, 0, false
		text.Reset()
		show = prompt
	}
}

// readLine reads a line of bounded length, with its end.
func readLine(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) || len(line) > maxCommand {
			return string(line), err
		}
	}
}

func incomplete(err error) bool {
	var e errSyntax
	return errors.As(err, &e) && syntax.IsIncomplete(e.error)
}

// errorf reports an error in the shell's name.
func (s *shell) errorf(format string, args ...any) {
	s.write(2, s.name+": "+fmt.Sprintf(format, args...)+"\n")
}

func (s *shell) write(fd int, text string) {
	io.WriteString(s.writer(fd), text)
}

func (s *shell) writer(fd int) io.Writer {
	return writer{s.ctx, s.fds[fd].sink, func() { s.cancel(signalled(sigPipe)) }}
}

// clone makes a subshell with a context of its own.
func (s *shell) clone() *shell {
	ctx, cancel := context.WithCancelCause(s.ctx)
	c := &shell{
		session: s.session, ctx: ctx, cancel: cancel, cred: s.cred, cwd: s.cwd, name: s.name, params: s.params, fds: s.fds,
		vars: make(map[string]*variable, len(s.vars)), size: s.size, funcs: maps.Clone(s.funcs),
		last: s.last, job: s.job, errexit: s.errexit, noglob: s.noglob, nounset: s.nounset, checked: s.checked, depth: s.depth + 1,
	}
	for name, v := range s.vars {
		own := *v
		c.vars[name] = &own
	}
	return c
}

// deep tells, with a message, whether the next level of nesting is one too many.
func (s *shell) deep() bool {
	if s.depth < maxDepth {
		return false
	}
	s.errorf("recursion too deep")
	s.last, s.exiting = 1, true
	return true
}

// in runs f in a subshell and takes over its status.
func (s *shell) in(f func(*shell)) {
	if s.deep() {
		return
	}
	c := s.clone()
	defer c.cancel(nil)
	f(c)
	s.last = c.finish()
}

// stopped tells whether the statements that follow are not to be run.
func (s *shell) stopped() bool {
	return s.exiting || s.leaving || s.breaks > 0 || s.skips > 0 || s.ctx.Err() != nil
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
	switch {
	case s.stopped():
		return
	case st.Coprocess || st.Disown:
		s.refuse("coprocesses")
		return
	case st.Background:
		s.background(st)
		return
	}
	saved := s.fds
	err := s.redirect(st.Redirs)
	switch {
	case err != nil:
		s.errorf("%v", err)
		s.last = 1
	case st.Cmd != nil:
		s.command(st.Cmd)
	default:
		s.last = 0
	}
	if s.keepFDs {
		s.keepFDs = false
	} else {
		s.fds = saved
	}
	if st.Negated {
		s.last = truth(s.last != 0)
	} else if s.errexit && s.last != 0 && s.checked == 0 && !isList(st.Cmd) {
		s.exiting = true
	}
}

// truth is the exit status of a yes or no.
func truth(yes bool) int {
	if yes {
		return 0
	}
	return 1
}

func isList(c syntax.Command) bool {
	b, ok := c.(*syntax.BinaryCmd)
	return ok && (b.Op == syntax.AndStmt || b.Op == syntax.OrStmt)
}

// refuse reports what this shell does not have.
func (s *shell) refuse(what string) {
	s.errorf("%s: not supported by this shell", what)
	s.last = 1
}

// spawn runs f in a subshell of its own goroutine. done is called at its end;
// the shell waits for it in finish.
func (s *shell) spawn(c *shell, f func(*shell), done func(status int)) bool {
	if !s.enter() {
		c.cancel(nil)
		s.errorf("can't fork - try again")
		s.last = 254
		return false
	}
	s.running.Go(func() {
		defer s.leave()
		defer c.cancel(nil)
		f(c)
		done(c.finish())
	})
	return true
}

// background runs a statement as a job with a pid, in the shell's group.
func (s *shell) background(st *syntax.Stmt) {
	if s.deep() {
		return
	}
	c := s.clone()
	ctx, t := s.phone.startTask(c.ctx, "sh", s.cred.uid, s.leader.pid, s.leader.group)
	c.ctx, c.cancel = ctx, t.cancel
	front := *st
	front.Background = false
	c.fds[0] = end{source: &content{rest: strings.NewReader("")}}
	s.last = 0
	if !s.spawn(c, func(c *shell) { c.stmt(&front) }, func(int) { s.phone.endTask(t) }) {
		s.phone.endTask(t)
		return
	}
	s.job = t.pid
}

func (s *shell) command(cm syntax.Command) {
	switch cm := cm.(type) {
	case *syntax.CallExpr:
		s.call(cm)
	case *syntax.Block:
		s.stmts(cm.Stmts)
	case *syntax.Subshell:
		s.in(func(c *shell) { c.stmts(cm.Stmts) })
	case *syntax.BinaryCmd:
		s.binary(cm)
	case *syntax.IfClause:
		s.ifClause(cm)
	case *syntax.WhileClause:
		s.whileClause(cm)
	case *syntax.ForClause:
		s.forClause(cm)
	case *syntax.CaseClause:
		s.caseClause(cm)
	case *syntax.FuncDecl:
		s.declare(cm)
	case *syntax.DeclClause:
		s.declClause(cm)
	default:
		s.refuse("this kind of command")
	}
}

func (s *shell) binary(cm *syntax.BinaryCmd) {
	switch cm.Op {
	case syntax.AndStmt, syntax.OrStmt:
		s.condition(func() { s.stmt(cm.X) })
		if !s.stopped() && (s.last == 0) == (cm.Op == syntax.AndStmt) {
			s.stmt(cm.Y)
		}
	case syntax.Pipe:
		s.pipeline(cm)
	default:
		s.refuse("coprocesses")
	}
}

// condition runs f without set -e.
func (s *shell) condition(f func()) {
	s.checked++
	f()
	s.checked--
}

// pipeline runs both sides at once, each in a subshell, and waits for both.
func (s *shell) pipeline(cm *syntax.BinaryCmd) {
	if s.deep() {
		return
	}
	p := newPipe()
	left, right := s.clone(), s.clone()
	left.fds[1], right.fds[0] = end{sink: p}, end{source: p}
	leftDone := make(chan struct{})
	started := s.spawn(left, func(c *shell) { c.stmt(cm.X) }, func(int) {
		p.closeWriter()
		close(leftDone)
	})
	if !started {
		right.cancel(nil)
		return
	}
	right.stmt(cm.Y)
	status := right.finish()
	right.cancel(nil)
	p.closeReader()
	<-leftDone
	s.last = status
}

func (s *shell) ifClause(cm *syntax.IfClause) {
	for ; cm != nil; cm = cm.Else {
		if len(cm.Cond) == 0 { // else
			s.stmts(cm.Then)
			return
		}
		s.condition(func() { s.stmts(cm.Cond) })
		if s.stopped() {
			return
		}
		if s.last == 0 {
			s.stmts(cm.Then)
			return
		}
		s.last = 0
	}
}

// loop runs one round of a body; more is false when the loop has ended.
func (s *shell) loop(body []*syntax.Stmt) (more bool) {
	s.loops++
	s.stmts(body)
	s.loops--
	if s.skips > 0 {
		s.skips--
		return s.skips == 0 && !s.stopped()
	}
	if s.breaks > 0 {
		s.breaks--
		return false
	}
	return !s.stopped()
}

func (s *shell) whileClause(cm *syntax.WhileClause) {
	status := 0
	for more := true; more; {
		s.loops++
		s.condition(func() { s.stmts(cm.Cond) })
		s.loops--
		if s.breaks > 0 {
			s.breaks--
			break
		}
		if s.skips > 0 {
			s.skips--
			more = s.skips == 0
			continue
		}
		if s.stopped() {
			return
		}
		if (s.last == 0) == cm.Until {
			break
		}
		more = s.loop(cm.Do)
		status = s.last
	}
	if !s.exiting && !s.leaving {
		s.last = status
	}
}

func (s *shell) forClause(cm *syntax.ForClause) {
	words, ok := cm.Loop.(*syntax.WordIter)
	if !ok || cm.Select {
		s.refuse("select and C loops")
		return
	}
	items := s.params
	if words.InPos.IsValid() {
		var err error
		if items, err = s.fields(words.Items); err != nil {
			s.fail(err)
			return
		}
	}
	s.last = 0
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
	if err != nil {
		s.fail(err)
		return
	}
	s.last = 0
	through := false
	for _, item := range cm.Items {
		hit := through
		for _, p := range item.Patterns {
			if hit {
				break
			}
			pat, err := s.pattern(p)
			if err != nil {
				s.fail(err)
				return
			}
			hit = matches(pat, word)
		}
		if !hit {
			continue
		}
		s.stmts(item.Stmts)
		switch item.Op {
		case syntax.Fallthrough:
			through = true
		case syntax.Resume, syntax.ResumeKorn:
			through = false
		default:
			return
		}
	}
}

func (s *shell) declare(cm *syntax.FuncDecl) {
	if cm.Name == nil || len(s.funcs) >= maxFunctions {
		s.refuse("this function")
		return
	}
	s.funcs[cm.Name.Value] = cm.Body
	s.last = 0
}

// fail reports an error of an expansion; the command is not run.
func (s *shell) fail(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	s.errorf("%v", err)
	s.last = 1
	var fatal errFatal
	if errors.As(err, &fatal) {
		s.exiting = true
	}
}

// errFatal ends the shell, as ${x?text} and set -u do.
type errFatal struct{ error }

// redirect opens what the redirections name.
func (s *shell) redirect(list []*syntax.Redirect) error {
	for _, rd := range list {
		if err := s.redirectOne(rd); err != nil {
			return err
		}
	}
	return nil
}

func (s *shell) redirectOne(rd *syntax.Redirect) error {
	fd, both := 1, false
	switch rd.Op {
	case syntax.RdrIn, syntax.RdrInOut, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc, syntax.DplIn:
		fd = 0
	case syntax.RdrAll, syntax.RdrAllClob, syntax.AppAll, syntax.AppAllClob:
		both = true
	}
	if rd.N != nil {
		if len(rd.N.Value) != 1 || rd.N.Value[0] < '0' || rd.N.Value[0] > '9' {
			return fmt.Errorf("%s: bad file descriptor", rd.N.Value)
		}
		fd = int(rd.N.Value[0] - '0')
	}
	switch rd.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		text, err := s.document(rd)
		if err != nil {
			return err
		}
		s.fds[fd] = end{source: &content{rest: strings.NewReader(text)}}
		return nil
	}
	target, err := s.text(rd.Word)
	if err != nil {
		return err
	}
	switch rd.Op {
	case syntax.WordHdoc:
		s.fds[fd] = end{source: &content{rest: strings.NewReader(target + "\n")}}
		return nil
	case syntax.DplIn, syntax.DplOut:
		return s.duplicate(fd, target)
	}
	opened, err := s.open(rd.Op, target)
	if err != nil {
		return err
	}
	s.fds[fd] = opened
	if both {
		s.fds[2] = opened
	}
	return nil
}

func (s *shell) duplicate(fd int, target string) error {
	if target == "-" {
		s.fds[fd] = end{}
		return nil
	}
	if len(target) != 1 || target[0] < '0' || target[0] > '9' {
		return fmt.Errorf("%s: bad file descriptor", target)
	}
	s.fds[fd] = s.fds[target[0]-'0']
	return nil
}

func (s *shell) open(op syntax.RedirOperator, target string) (end, error) {
	at := clean(s.cwd, target)
	if op == syntax.RdrIn {
		if e, ok := s.phone.endless(at); ok {
			return end{source: e}, nil
		}
		r, err := s.phone.readAll(at, s.cred)
		if err != nil {
			return end{}, fmt.Errorf("can't open %s: %s", target, errorText(err))
		}
		file := &content{rest: r}
		if i, err := s.phone.stat(at, s.cred); err == nil && i.mode.IsRegular() {
			file.size = i.size
		}
		return end{source: file}, nil
	}
	add := slices.Contains([]syntax.RedirOperator{syntax.AppOut, syntax.AppClob, syntax.AppAll, syntax.AppAllClob, syntax.RdrInOut}, op)
	w, err := s.phone.openWrite(at, s.cred, 0o666, add, false)
	if err != nil {
		return end{}, fmt.Errorf("can't create %s: %s", target, errorText(err))
	}
	return end{sink: toFile{w}}, nil
}

// document expands a here-document.
func (s *shell) document(rd *syntax.Redirect) (string, error) {
	if rd.Hdoc == nil {
		return "", nil
	}
	text, err := s.hereText(rd)
	if err != nil || rd.Op != syntax.DashHdoc {
		return text, err
	}
	var b bytes.Buffer
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, "\t"))
	}
	return b.String(), nil
}
