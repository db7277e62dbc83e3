package monitor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

// HostCommand is a workload that runs one command on the host, once for the
// entire run. When the command ends, the remaining processes of its process
// group are killed. On Linux, the record names the processes that have left the
// group. The environment of the command contains the run directory as
// LEAKGATE_RUN and the serials of the devices as LEAKGATE_DEVICES (comma
// separated). If there is only one device, ANDROID_SERIAL is set as well.
type HostCommand struct {
	Args []string
	// Windows finds tests in the output of the command; each test is checked on
	// every device. It may be nil.
	Windows *WindowRule
}

// grace is the wall-clock time within which an interrupted command must exit.
const grace = 5 * time.Second

// Describe implements Workload.
func (c HostCommand) Describe() record.Workload {
	return record.Workload{
		Kind: "command", Digest: digestOf("command", append(slices.Clone(c.Args), c.Windows.digestWords()...)...),
	}
}

// digestOf returns the SHA-256 of a workload's description, in hexadecimal.
func digestOf(kind string, words ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s %q", kind, words)))
}

// tokenVariable is the environment variable with the token that leakgate uses
// to read baselines and post comments. The workload is the code of a pull
// request and must not have access to the token.
const tokenVariable = "LEAKGATE_GITHUB_TOKEN"

// withoutToken returns an environment without the token.
func withoutToken(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ),
		func(v string) bool { return strings.HasPrefix(v, tokenVariable+"=") })
}

// Run implements Workload.
func (c HostCommand) Run(ctx context.Context, st Env) (record.Workload, error) {
	rec := c.Describe()
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Env = append(withoutToken(os.Environ()), environment(st)...)
	var serials []string
	for _, d := range st.Devices {
		serials = append(serials, d.Serial())
	}
	tests := c.Windows.watch(ctx, st, serials...)
	out, errOut := st.newLineReader("", tests), st.newLineReader("", tests)
	cmd.Stdout, cmd.Stderr = out, errOut
	cmd.WaitDelay = grace
	startInGroup(cmd)
	err := runGroup(cmd, st.ForceStop)
	if cmd.Process != nil {
		rec.LeftRunning = leftRunning(runVariable+st.runPath(), cmd.Process.Pid)
	}
	out.end()
	errOut.end()
	tests.finish()
	if ctx.Err() != nil {
		return rec, nil
	}
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrWaitDelay):
		// The command succeeded; only processes that kept its output open were
		// killed.
	case errors.As(err, &exit):
		rec.Exit = new(exit.ExitCode())
		return rec, fmt.Errorf("run workload %s: %w%s", filepath.Base(c.Args[0]), err, st.logHint())
	case err != nil:
		return rec, fmt.Errorf("run workload %s: %w", filepath.Base(c.Args[0]), causeOf(err))
	}
	rec.Exit = new(0)
	return rec, nil
}

// causeOf returns why a program could not be started. The result omits the
// program's path on the host, which must not be recorded.
func causeOf(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if p, ok := errors.AsType[*exec.Error](err); ok {
		return p.Err
	}
	return err
}

// runGroup runs a command until it exits and kills the remaining processes of
// its group. An interrupted command gets its grace period, unless force is
// closed.
func runGroup(cmd *exec.Cmd, force <-chan struct{}) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-force:
			killGroup(cmd)
		case <-ended:
		}
	})
	err := cmd.Wait()
	close(ended)
	watch.Wait()
	killGroup(cmd)
	return err
}

// runVariable is the prefix of the environment entry that contains the path of
// the run directory.
const runVariable = "LEAKGATE_RUN="

// runPath returns the absolute path of the run directory.
func (st Env) runPath() string {
	dir, err := filepath.Abs(st.Dir)
	if err != nil {
		return st.Dir
	}
	return dir
}

func environment(st Env) []string {
	serials := make([]string, len(st.Devices))
	for i, d := range st.Devices {
		serials[i] = d.Serial()
	}
	env := []string{runVariable + st.runPath(), "LEAKGATE_DEVICES=" + strings.Join(serials, ",")}
	if len(serials) == 1 {
		env = append(env, "ANDROID_SERIAL="+serials[0])
	}
	return env
}
