package diagnose

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/text"
)

const (
	// dumpDir is the directory to which am dumpheap may write for the shell
	// (ActivityManagerShellCommand.runDumpHeap).
	dumpDir = "/data/local/tmp"
	// dumpPrefix and dumpSuffix mark the files that Sweep may remove. The name
	// between them consists of the owner, the run and a unique word.
	dumpPrefix, dumpSuffix = "leakgate-", ".hprof"

	// maxRun is the maximum length of the run's name in the name of a file.
	maxRun = 40

	// reserve is the number of bytes that must stay free on the disk of the
	// device and on that of the host.
	reserve = 50 * mebibyte
	// helpTimeout is the maximum time for am to print its help. Before Android
	// 8, am starts a separate Java VM for this.
	helpTimeout = 10 * time.Second
	// settle is the device time between the GC signal and the dump. ART
	// collects when it receives the signal (signal_catcher.cc, HandleSigUsr1);
	// the remaining time is for the finalizers. The procedure in
	// docs/article.md waits half a minute, during which the app keeps leaking.
	settle = 5 * time.Second
	// pollEvery is the device time between two polls of a dump that is being
	// written.
	pollEvery = time.Second
	// leastPoll is the minimum wall-clock time between two polls.
	leastPoll = 50 * time.Millisecond
	// stablePolls is the number of polls during which the size must stay the
	// same if the end of the dump is not reported.
	stablePolls = 3
	// emptyPolls is the number of polls after which a dump that is still empty
	// or too short counts as finished.
	emptyPolls = 60
	// pullRate is the speed of the slowest supported connection, in bytes per
	// second: poor Wi-Fi.
	pullRate = 2 * mebibyte
	// pullGrowth is the number of bytes by which a dump may grow while it is
	// being pulled, in addition to a quarter of its size.
	pullGrowth = 16 * mebibyte
	// pullStart is the wall-clock time allowed for each pull in addition to the
	// transfer time.
	pullStart = time.Minute
	// cleanUp is the maximum wall-clock time for removing a file. The removal
	// is attempted even if the caller's context is done.
	cleanUp = 10 * time.Second
)

// heapDump is one heap dump in progress.
type heapDump struct {
	*diagnosing
	method Method
	// remote is the path of the file on the device.
	remote string
	help   dumpsys.AmHelp
	// bound is an upper bound on the size of this process's Java heap, in
	// bytes; 0 if unknown.
	bound int64
	// free is the lowest free space seen on the device; unknown if it was never
	// read.
	free known.Int
	// settled reports whether the dump was already complete when the command
	// ended.
	settled bool
	// size is the size of the file at the last poll.
	size int64
	// silent is the number of consecutive polls to which the device has not
	// responded.
	silent int
	result result
}

// heap takes a heap dump: it checks the free space, collects garbage, writes
// the dump, pulls it, and verifies that it is complete. In every case it
// removes the dump from the device.
func (d *diagnosing) heap(ctx context.Context, s Step, w Method) (result, error) {
	if n := len(d.req.Run); n == 0 || n > maxRun ||
		strings.Trim(d.req.Run, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
		return result{}, fmt.Errorf("invalid run name %q: want 1 to %d letters and digits",
			shell.Clip(d.req.Run), maxRun)
	}
	name := dumpPrefix + owner(d.dev) + "-" + d.req.Run + "-" + strings.TrimPrefix(string(shell.NewMarker()), "@") +
		dumpSuffix
	h := &heapDump{diagnosing: d, method: w, remote: path.Join(dumpDir, name)}
	err := h.make(ctx, s.File)
	return h.result, err
}

func (h *heapDump) make(ctx context.Context, file string) error {
	if err := h.readHelp(ctx); err != nil {
		return err
	}
	status, err := h.checkSpace(ctx)
	if err != nil {
		return err
	}
	if err := h.checkHostSpace(h.req.Expect); err != nil {
		return err
	}
	if h.help.GC != dumpsys.Yes {
		if err := h.collect(ctx, status); err != nil {
			return err
		}
	}
	defer h.remove(ctx)
	if err := h.dump(ctx); err != nil {
		return err
	}
	return h.fetch(ctx, file)
}

// readHelp reads the help of am, to learn which options this release supports.
// It is also the cheapest way to detect that system_server hangs, before the
// process is stopped for the dump.
func (h *heapDump) readHelp(ctx context.Context) error {
	a, err := shell.Ask(ctx, h.dev, h.scaled(helpTimeout), "am help </dev/null")
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("am did not respond within %v: system_server hangs", h.scaled(helpTimeout))
	case err != nil:
		return fmt.Errorf("run am: %w", err)
	}
	h.help, err = dumpsys.ParseAmHelp(append(a.Stdout, a.Stderr...))
	var e dumpsys.DeviceError
	switch {
	case err == nil:
	case errors.As(err, &e) && e.Kind == dumpsys.NoCommand:
		return notAllowed{"this build has no am: " + e.Error()}
	case errors.As(err, &e) && e.Kind == dumpsys.NoService:
		return fmt.Errorf("system_server is not running: %w", err)
	default:
		h.result.reasons = append(h.result.reasons, fmt.Sprintf("the help of am does not list its options: %v", err))
	}
	return nil
}

func (d *diagnosing) scale() float64 {
	if d.facts.TimeScale > 0 {
		return d.facts.TimeScale
	}
	return 1
}

func (d *diagnosing) wait(ctx context.Context, t time.Duration) error {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// command returns the command line that writes the dump.
func (h *heapDump) command() string {
	options := ""
	if h.req.Process.User != 0 && h.help.User != dumpsys.No {
		options += "--user " + strconv.Itoa(h.req.Process.User) + " "
	}
	if h.help.GC == dumpsys.Yes {
		options += "-g "
	}
	return fmt.Sprintf("am dumpheap %s%d %s", options, h.req.Process.PID, text.ShellQuote(h.remote))
}

// dump runs am dumpheap until the dump is written. The process is stopped
// during the dump. The process is polled while am runs, because am waits
// forever if the process has died.
func (h *heapDump) dump(ctx context.Context) error {
	h.result.command = h.command()
	if h.req.Paused != nil {
		h.req.Paused(true)
		defer h.req.Paused(false)
	}
	limit := h.scaled(h.method.Limit)
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := h.run(within)
	if err == nil && !h.settled {
		err = h.stable(within)
	}
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("the dump was not finished in %v: the process or system_server hangs", limit)
	}
	return err
}

// ended holds the output and the error of a command that has ended.
type ended struct {
	output shell.Output
	err    error
}

// run runs am, and polls the dump and the process at the same time.
func (h *heapDump) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	m, done := shell.NewMarker(), make(chan ended, 1)
	go func() {
		a, err := shell.Ask(ctx, h.dev, h.method.Limit+slack, h.result.command+" </dev/null 2>&1"+closing(m))
		done <- ended{a, err}
	}()
	// run returns only after the command has ended.
	finished := false
	defer func() {
		cancel()
		if !finished {
			<-done
		}
	}()
	ticker := time.NewTicker(h.interval())
	defer ticker.Stop()
	for {
		select {
		case e := <-done:
			finished = true
			return h.answered(ctx, e, m)
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			if err := h.poll(ctx); err != nil {
				return err
			}
		}
	}
}

func (h *heapDump) interval() time.Duration {
	return max(time.Duration(float64(pollEvery)/h.scale()), leastPoll)
}

// answered returns the error that the output and exit code of am indicate.
func (h *heapDump) answered(ctx context.Context, e ended, m shell.Marker) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case e.err != nil:
		return fmt.Errorf("dump heap: %w", e.err)
	}
	n, exit, whole := closed(m, e.output.Stdout)
	if !whole {
		// Without the marker, the exit code is unreliable; only the file shows
		// whether the dump is complete.
		return nil
	}
	text := e.output.Stdout[:n]
	if said, ok := dumpsys.ClassifyError(text); ok {
		return h.refused(said)
	}
	if exit != 0 || strings.Contains(string(text), "HEAP DUMP FAILED") {
		return fmt.Errorf("am dumpheap ended with exit status %d: %s", exit, shell.Clip(string(text)))
	}
	// Since Android 11 am waits, and prints that it does; earlier releases
	// return while the dump is still being written (Am.java,
	// ActivityManagerShellCommand.runDumpHeap).
	h.settled = strings.Contains(string(text), "Waiting for dump to finish")
	return nil
}

// refused converts an error message of am to an error with advice.
func (h *heapDump) refused(e dumpsys.DeviceError) error {
	p := h.req.Process
	switch e.Kind {
	case dumpsys.NotDebuggable:
		return notAllowed{
			p.Package() + " is not debuggable: use a debuggable build, a userdebug image or an emulator",
		}
	case dumpsys.NoProcess:
		return notAllowed{fmt.Sprintf("am does not know process %d: it does not belong to an app (%v)", p.PID, e)}
	case dumpsys.NoSpace:
		return fmt.Errorf("the device's disk is full: %w", e)
	case dumpsys.NoCommand, dumpsys.Permission, dumpsys.UnknownOption:
		return notAllowed{e.Error()}
	}
	return fmt.Errorf("dump heap: %w", e)
}
