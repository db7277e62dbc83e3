package androidsim

import (
	"context"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/ksh"
)

// Shell runs one command line like the shell of the phone. An empty command
// line runs the lines of stdin, with a prompt. Shell returns when everything
// that the command started has ended, including background jobs, because adbd
// waits for their output. It returns adbd.NoExit if adbd exited before the
// command did, or if a fault suppresses the exit status.
//
// A goroutine reads stdin: it starts when a command first reads, and it ends
// with the input, so the owner of stdin must end the input after Shell has
// returned.
func (p *Phone) Shell(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) int {
	born, uid := p.session.Load(), p.shellUID()
	if !p.answers(Request{CommandRequest, command, 0}) {
		<-ctx.Done() // adb kills the command that requested its restart
		return adbd.NoExit
	}
	if stdout == nil {
		stdout = io.Discard
	}
	ctx, leader := p.startTask(ctx, "sh", uid, 0, 0)
	defer p.endTask(leader)
	o := ksh.Options{
		System: system{p}, Cred: ksh.Cred{UID: uid, PID: leader.pid}, Leader: p.entry(leader), Command: command,
		Prompt: "androidsim:/ $ ", Stdin: stdin, Stdout: stdout, Stderr: stderr, NotFound: "not found",
		Variables: map[string]string{
			"PATH": "/product/bin:/apex/com.android.runtime/bin:/system/bin:/system/xbin:/vendor/bin", "HOME": "/",
			"USER":  userName(uid),
			"SHELL": "/system/bin/sh", "TMPDIR": "/data/local/tmp", "ANDROID_DATA": "/data", "ANDROID_ROOT": "/system",
		},
	}
	if uid == uidRoot {
		o.Prompt = "androidsim:/ # "
	}
	if p.opt.API >= 29 {
		o.NotFound = "inaccessible or not found"
	}
	spoiled := p.faultyOutput(stdout, func() { leader.kill(sigKill) })
	if spoiled != nil {
		if ksh.SameWriter(stdout, stderr) {
			o.Stderr = spoiled
		}
		o.Stdout = spoiled
	}
	status := ksh.Run(ctx, o)
	if spoiled != nil {
		spoiled.floods(ctx, p)
	}
	switch {
	case p.session.Load() != born:
		return adbd.NoExit
	case spoiled != nil && spoiled.done.Load():
		return spoiled.truncation.exit
	case ctx.Err() != nil:
		return ksh.Status(ctx)
	}
	return status
}

type system struct{ phone *Phone }

var _ ksh.System = system{}

func (s system) Clean(dir, name string) string { return clean(dir, name) }

func (s system) Stat(path string, c ksh.Cred) (ksh.FileInfo, error) {
	return s.phone.stat(path, c)
}

func (s system) ReadDir(path string, c ksh.Cred) ([]ksh.FileInfo, error) {
	list, err := s.phone.readDir(path, c)
	out := make([]ksh.FileInfo, len(list))
	for i, f := range list {
		out[i] = f
	}
	return out, err
}

func (s system) Open(path string, c ksh.Cred) (io.Reader, error) {
	return s.phone.readAll(path, c)
}

func (s system) Create(path string, c ksh.Cred, add bool) (io.Writer, error) {
	w, err := s.phone.openWrite(path, c, 0o666, add, false)
	return w, err
}

func (s system) Mkdir(path string, c ksh.Cred) error { return s.phone.mkdir(path, c) }

func (s system) Remove(path string, c ksh.Cred, all bool) error {
	return s.phone.remove(path, c, all, all)
}

func (s system) Signal(c ksh.Cred, pid, signal int) error {
	return s.phone.signal(c, pid, signal)
}

func (s system) UserName(uid int) string { return userName(uid) }

func (s system) Now() time.Time { return s.phone.wall() }

func (s system) Sleep(ctx context.Context, d time.Duration) error { return s.phone.now().wait(ctx, d) }

func (s system) Start(ctx context.Context, leader ksh.Process) (context.Context, ksh.Process) {
	ctx, t := s.phone.startTask(ctx, "sh", leader.UID, leader.PID, leader.Group)
	return ctx, s.phone.entry(t)
}

// entry returns a task of the process table in the form that the shell uses.
func (p *Phone) entry(t *task) ksh.Process {
	return ksh.Process{
		PID: t.pid, Group: t.group, Parent: t.parent, UID: t.uid, Cancel: t.cancel, End: func() { p.endTask(t) },
	}
}

// Program returns a program of the phone by its name or path.
func (s system) Program(name string) (ksh.Program, bool) {
	if strings.Contains(name, "/") {
		base, ok := s.phone.toolAt(name)
		if !ok {
			return nil, false
		}
		name = base
	}
	return s.phone.tool(name)
}

// call is a running program of Android.
type call struct {
	*ksh.Call
	phone *Phone
}

// tool implements an Android program; it returns the exit status.
type tool func(c *call) int

func (p *Phone) program(t tool) ksh.Program {
	return func(k *ksh.Call) int { return t(&call{k, p}) }
}

// program is a tool of Android and the API level that added it: toolbox had few
// programs before Android 6.0 (system/core shell_and_utilities/README.md).
type program struct {
	run   ksh.Program
	since int
}

func (p *Phone) programTable() map[string]program {
	out := map[string]program{}
	for name, run := range ksh.Programs() {
		out[name] = program{run: run}
	}
	for name, run := range map[string]tool{
		"am": am, "df": df, "dumpsys": dumpsysTool, "getprop": getprop, "id": id, "input": input, "log": logTool,
		"logcat": logcat,
		"monkey": monkey, "pidof": pidof, "pm": pm, "ps": ps, "run-as": runAs, "showmap": showmap, "su": su,
		"uname": uname,
	} {
		out[name] = program{run: p.program(run)}
	}
	if p.opt.API < 23 {
		// These programs of toolbox differ from those of toybox.
		out["ls"], out["md5"] = program{run: p.program(oldLS)}, program{run: ksh.Programs()["md5sum"]}
	}
	for name, since := range map[string]int{
		"md5sum": 23, "nice": 23, "pidof": 23, "sha256sum": 26, "stat": 23, "uname": 23,
	} {
		out[name] = program{out[name].run, since}
	}
	return out
}

// tool returns a program, if this phone has it.
func (p *Phone) tool(name string) (ksh.Program, bool) {
	t, ok := p.programs[name]
	switch {
	case !ok || t.since > p.opt.API || name == "su" && !p.opt.SU,
		// At first, only debuggable builds included showmap
		// (system/extras/showmap/Android.mk).
		name == "showmap" && p.opt.API < showmapEverywhere && p.opt.BuildType == "user" && !p.opt.Root:
		return nil, false
	}
	return t.run, true
}

// folder returns the directory that contains a program.
func (p *Phone) folder(name string) string {
	if name == "su" || name == "showmap" && p.opt.API < showmapEverywhere {
		return "/system/xbin/"
	}
	return "/system/bin/"
}

// toolAt returns the program at a clean path, and whether there is one.
func (p *Phone) toolAt(at string) (string, bool) {
	name := at[strings.LastIndexByte(at, '/')+1:]
	_, ok := p.tool(name)
	return name, ok && p.folder(name)+name == at
}

func (p *Phone) tools() []string {
	var out []string
	for name := range p.programs {
		if _, ok := p.tool(name); ok {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

// oldLS is the ls of toolbox (system/core/toolbox/ls.c).
func oldLS(c *call) int {
	var long, all, self bool
	names, ok := c.Getopt("lad", func(o byte, _ string) {
		long, all, self = long || o == 'l', all || o == 'a', self || o == 'd'
	})
	if !ok {
		return 1
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	show := func(name string, i info) {
		if !long {
			c.Printf("%s\n", name)
			return
		}
		size := strconv.FormatInt(i.size, 10)
		if !i.mode.IsRegular() {
			size = ""
		}
		if i.link != "" {
			name += " -> " + i.link
		}
		owner := userName(i.uid)
		c.Printf("%s %-8s %-8s %8s %s %s\n", ksh.ModeText(i.mode), owner, owner, size,
			i.mod.UTC().Format("2006-01-02 15:04"), name)
	}
	failed := 0
	for _, name := range names {
		i, err := c.phone.stat(clean(c.Dir, name), c.Cred)
		if err != nil {
			c.Out.Flush()
			fmt.Fprintf(c.Errs, "%s: %s\n", name, ksh.ErrorText(err))
			failed = 1
			continue
		}
		if !i.IsDir() || self {
			show(name, i)
			continue
		}
		entries, err := c.phone.readDir(clean(c.Dir, name), c.Cred)
		if err != nil {
			c.Out.Flush()
			fmt.Fprintf(c.Errs, "opendir failed, %s\n", ksh.ErrorText(err))
			failed = 1
		}
		for _, e := range entries {
			if all || !strings.HasPrefix(e.name, ".") {
				show(e.name, e)
			}
		}
	}
	return failed
}

func uname(c *call) int {
	release, machine := kernelRelease(c.phone.opt.API), "aarch64"
	if c.phone.opt.Bits32 {
		machine = "armv7l"
	}
	text := "Linux"
	_, ok := c.Getopt("asrmnvo", func(o byte, _ string) {
		switch o {
		case 'a':
			text = "Linux localhost " + release + " #1 SMP PREEMPT " + machine
		case 'r':
			text = release
		case 'm':
			text = machine
		case 'n':
			text = "localhost"
		}
	})
	c.Printf("%s\n", text)
	return map[bool]int{false: 1}[ok]
}
