package hostdevice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/internal/hostdevice/proctable"
	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// killed is the exit code of a command killed by signal 9.
const killed = 128 + int(syscall.SIGKILL)

// Shell runs a command line. As on a phone, background processes outlive the
// command, and a process that keeps the outputs open prevents the command from
// ending. When ctx is canceled, everything that the command started is killed.
func (d *Device) Shell(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) (exit int) {
	if !d.enter() {
		return killed
	}
	defer d.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	if ctx.Err() != nil {
		return killed
	}
	token := fmt.Sprintf("%s/%d", d.dir, d.commands.Add(1))
	cmd := exec.Command("/bin/sh")
	if command != "" {
		cmd.Args = append(cmd.Args, "-c", d.local(command))
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", stdout, stderr
	cmd.Env = append(d.env[:len(d.env):len(d.env)], state.CommandVariable+"="+token)
	if stdin != nil {
		in, err := cmd.StdinPipe()
		if err != nil {
			return d.notStarted(stderr, err)
		}
		// Copying ends when stdin ends, possibly after the command has ended.
		go func() {
			defer in.Close()
			io.Copy(in, stdin)
		}()
	}
	if err := d.starter.start(cmd, d.options.ShellUID, os.Getuid()); err != nil {
		if in, ok := cmd.Stdin.(io.Closer); ok {
			in.Close()
		}
		return d.notStarted(stderr, err)
	}
	return d.await(ctx, cmd, token)
}

func (d *Device) notStarted(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "/system/bin/sh: %v\n", err)
	return 126
}

// killAgain is the interval at which a canceled command is killed again until
// it has exited. A single kill is not enough, because the command may start
// processes in the meantime.
const killAgain = 20 * time.Millisecond

func (d *Device) await(ctx context.Context, cmd *exec.Cmd, token string) int {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return exitCode(err)
	case <-ctx.Done():
	}
	for {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		proctable.KillWithVariable(state.CommandVariable, token)
		select {
		case <-ended:
			// The command has ended. Processes that have left its group, do not
			// hold its output open, and were started after the last kill may
			// still be running.
			proctable.KillWithVariable(state.CommandVariable, token)
			return killed
		case <-time.After(killAgain):
		}
	}
}

// exitCode converts an exit status to the shell's exit code.
func exitCode(err error) int {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

// local replaces /data/local/tmp in the text of a command with the device's own
// directory.
func (d *Device) local(command string) string {
	return replacePath(command, state.SharedDir, d.dir.Shared())
}

// shown reverses local for use in messages.
func (d *Device) shown(text string) string { return replacePath(text, d.dir.Shared(), state.SharedDir) }

// replacePath replaces only entire path elements: /data/local/tmpfile is a
// different file.
func replacePath(text, from, to string) string {
	var b strings.Builder
	rest := text
	for {
		before, after, found := strings.Cut(rest, from)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if endsInName(text[:len(text)-len(from)-len(after)]) || startsInName(after) {
			b.WriteString(from)
		} else {
			b.WriteString(to)
		}
		rest = after
	}
}

func endsInName(s string) bool   { return s != "" && inName(s[len(s)-1]) }
func startsInName(s string) bool { return s != "" && inName(s[0]) }

func inName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}
