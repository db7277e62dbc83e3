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

// HostCommand is a workload that runs one command on this machine, once for the
// whole run. What it has started in its process group is ended with it; what has left that group is
// not, and named in the record on Linux. It finds the run directory in LEAKGATE_RUN, the devices in
// LEAKGATE_DEVICES (comma separated), and a single device in ANDROID_SERIAL too.
type HostCommand struct {
	Args []string
	// Windows finds tests in the output; nil for none. Each is checked on every device.
	Windows *WindowRule
}

// grace is the real time that a command has to end after it was asked to.
const grace = 5 * time.Second

// Describe implements Workload.
func (c HostCommand) Describe() record.Workload {
	return record.Workload{Kind: "command", Digest: digestOf("command", append(slices.Clone(c.Args), c.Windows.words()...)...)}
}

// digestOf is the SHA-256 of what a workload is, in hexadecimal digits.
func digestOf(kind string, words ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%s %q", kind, words)))
}

// tokenVariable has the token with which leakgate reads baselines and posts comments. The workload
// is the code of a pull request, and has no business with it.
const tokenVariable = "LEAKGATE_GITHUB_TOKEN"

// withoutToken is an environment without the token.
func withoutToken(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, tokenVariable+"=") })
}

// Run implements Workload.
func (c HostCommand) Run(ctx context.Context, st Stage) (record.Workload, error) {
	rec := c.Describe()
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Env = append(withoutToken(os.Environ()), stageEnv(st)...)
	var serials []string
	for _, d := range st.Devices {
		serials = append(serials, d.Serial())
	}
	tests := c.Windows.watch(ctx, st, serials...)
	out, errOut := st.marking("", tests), st.marking("", tests)
	cmd.Stdout, cmd.Stderr = out, errOut
	cmd.WaitDelay = grace
	groupOf(cmd)
	err := runGroup(cmd, st.Hurry)
	if cmd.Process != nil {
		rec.LeftRunning = leftRunning(runVariable+st.path(), cmd.Process.Pid)
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
		// It has ended well; what it left behind held its output open and was ended.
	case errors.As(err, &exit):
		rec.Exit = new(exit.ExitCode())
		return rec, fmt.Errorf("run workload %s: %w%s", filepath.Base(c.Args[0]), err, st.seeLog())
	case err != nil:
		return rec, fmt.Errorf("run workload %s: %w", filepath.Base(c.Args[0]), causeOf(err))
	}
	rec.Exit = new(0)
	return rec, nil
}

// causeOf returns why a program could not be started, without its path on the host, which is not
// for the record.
func causeOf(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if p, ok := errors.AsType[*exec.Error](err); ok {
		return p.Err
	}
	return err
}

// runGroup runs a command to its end and ends what it has left behind. A command
// that was asked to end has its grace, unless hurry is closed.
func runGroup(cmd *exec.Cmd, hurry <-chan struct{}) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-hurry:
			endGroup(cmd)
		case <-ended:
		}
	})
	err := cmd.Wait()
	close(ended)
	watch.Wait()
	endGroup(cmd)
	return err
}

// runVariable begins the variable that has the path of the run directory.
const runVariable = "LEAKGATE_RUN="

// path is the absolute path of the run directory.
func (st Stage) path() string {
	dir, err := filepath.Abs(st.Dir)
	if err != nil {
		return st.Dir
	}
	return dir
}

func stageEnv(st Stage) []string {
	serials := make([]string, len(st.Devices))
	for i, d := range st.Devices {
		serials[i] = d.Serial()
	}
	env := []string{runVariable + st.path(), "LEAKGATE_DEVICES=" + strings.Join(serials, ",")}
	if len(serials) == 1 {
		env = append(env, "ANDROID_SERIAL="+serials[0])
	}
	return env
}
