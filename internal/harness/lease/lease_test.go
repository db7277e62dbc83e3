package lease

//unit:program a lock is released when its process is killed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// childVariable is the environment variable that makes the test binary a
// process that uses leases.
const childVariable = "LEASE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "hold":
		os.Exit(hold(os.Args[1], os.Args[2:]))
	case "contend":
		os.Exit(contend(os.Args[1], os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// hold acquires the keys of the devices with the given serials, reports this,
// and keeps the keys until its input ends.
func hold(folder string, serials []string) int {
	l, err := Take(context.Background(),
		Request{Folder: folder, Keys: devices(serials...), Holder: NewHolder("watch", "runs/of child")})
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return 1
	}
	fmt.Fprintln(os.Stdout, "held")
	_, _ = io.Copy(io.Discard, os.Stdin) // only the end of the input matters
	if err := l.Release(); err != nil {
		fmt.Fprintln(os.Stdout, err)
		return 1
	}
	return 0
}

// contend runs as one of many processes that want the same key. Each of its
// four goroutines acquires the key several times.
func contend(folder, oracle, times string) int {
	n, err := strconv.Atoi(times)
	if err != nil {
		return 1
	}
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() { errs <- holdInTurn(folder, oracle, n) }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			fmt.Fprintln(os.Stdout, err)
			return 1
		}
	}
	return 0
}

// holdInTurn acquires one key n times while all other processes compete for it.
// The oracle is a file that only one process at a time can create.
func holdInTurn(folder, oracle string, n int) error {
	for n > 0 {
		l, err := Take(context.Background(), Request{Folder: folder, Keys: devices("S1"), Holder: NewHolder("run", "")})
		var held HeldError
		if errors.As(err, &held) {
			continue
		}
		if err != nil {
			return err
		}
		f, err := os.OpenFile(oracle, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("two processes hold the lease: %w", err)
		}
		time.Sleep(rand.N(time.Millisecond)) // simulates the holder's work
		if err := errors.Join(f.Close(), os.Remove(oracle), l.Release()); err != nil {
			return err
		}
		n--
	}
	return nil
}

func devices(serials ...string) []Key {
	var out []Key
	for _, s := range serials {
		out = append(out, DeviceKey("127.0.0.1:5037", s))
	}
	return out
}

// child starts this test binary as another process.
func child(t *testing.T, mode string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), childVariable+"="+mode)
	return cmd
}

// holder starts a process that holds devices, and waits until the process holds
// them. release makes the process exit normally.
func holder(t *testing.T, folder string, serials ...string) (cmd *exec.Cmd, release func()) {
	t.Helper()
	cmd = child(t, "hold", append([]string{folder}, serials...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "held\n" {
		t.Fatalf("the child printed %q, %v", line, err)
	}
	return cmd, func() {
		t.Helper()
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	}
}

func taken(t *testing.T, r Request) *Lease {
	t.Helper()
	l, err := Take(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

// assertEmpty fails the test unless the folder is empty.
func assertEmpty(t *testing.T, folder string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) > 0 {
		t.Errorf("files remain in the folder: %v, %v", entries, err)
	}
}

func mine(folder string, serials ...string) Request {
	return Request{
		Folder: folder, Keys: devices(serials...), Holder: Holder{Verb: "run", PID: 7, User: "anna", Dir: "out"},
	}
}

func TestSecondRunIsRefusedWithTheNameOfTheFirst(t *testing.T) {
	folder := t.TempDir()
	cmd, let := holder(t, folder, "S1", "S2")
	_, err := Take(t.Context(), mine(folder, "S0", "S2"))
	var held HeldError
	if !errors.As(err, &held) {
		t.Fatal(err)
	}
	if h := held.Holder; held.Key != devices("S2")[0] || h.PID != cmd.Process.Pid || h.Verb != "watch" ||
		h.Dir != "runs/of child" || h.Started.IsZero() {
		t.Errorf("%+v", held)
	}
	if text := err.Error(); !strings.HasPrefix(text, `device "S2" is in use by leakgate watch (pid `) ||
		!strings.HasSuffix(text, `writing to "runs/of child")`) {
		t.Error(text)
	}
	// Either all keys are acquired or none: the keys that were free are still
	// free.
	release(t, taken(t, mine(folder, "S0")))
	let()
	assertEmpty(t, folder)
	release(t, taken(t, mine(folder, "S0", "S2")))
	assertEmpty(t, folder)
}

func TestKilledHolderBlocksNobody(t *testing.T) {
	folder := t.TempDir()
	cmd, _ := holder(t, folder, "S1")
	waiting := make(chan HeldError, 1)
	got := make(chan error, 1)
	go func() {
		r := mine(folder, "S1")
		r.Wait, r.Waiting = true, func(h HeldError) { waiting <- h }
		l, err := Take(t.Context(), r)
		if err == nil {
			err = l.Release()
		}
		got <- err
	}()
	if h := <-waiting; h.Holder.PID != cmd.Process.Pid {
		t.Errorf("reported holder %v, want the child", h)
	}
	if err := cmd.Process.Kill(); err != nil { // SIGKILL, TerminateProcess
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if err := <-got; err != nil {
		t.Error(err)
	}
	// The dead process has left its file, and the next holder has removed it.
	assertEmpty(t, folder)
}

// The note of a dead holder is longer than the new one; no part of it remains.
func TestNoteOfADeadHolderIsNotShown(t *testing.T) {
	folder := t.TempDir()
	cmd, _ := holder(t, folder, "S1")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	r := mine(folder, "S1")
	l := taken(t, r)
	_, err := Take(t.Context(), r)
	var held HeldError
	if !errors.As(err, &held) || held.Holder != r.Holder {
		t.Errorf("%v", err)
	}
	release(t, l)
	release(t, l) // the second call has no effect
	assertEmpty(t, folder)
}

func TestTwentyContendersOneHolder(t *testing.T) {
	folder, oracle, times := t.TempDir(), filepath.Join(t.TempDir(), "oracle"), 40
	if os.Getenv("LEAKGATE_E2E") == "long" {
		times = 1000
	}
	var children sync.WaitGroup
	for range 4 {
		cmd := child(t, "contend", folder, oracle, strconv.Itoa(times))
		children.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	for range 4 {
		children.Go(func() {
			if err := holdInTurn(folder, oracle, times); err != nil {
				t.Error(err)
			}
		})
	}
	children.Wait()
	assertEmpty(t, folder)
}

// The goroutines want overlapping sets of keys in different orders, and all of
// them get their keys.
func TestSeveralKeysWithoutDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		var users sync.WaitGroup
		var using sync.Mutex
		for _, serials := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "c", "a", "b"}, {"a", "c"}} {
			users.Go(func() {
				for range 10 {
					r := mine(folder, serials...)
					r.Wait = true
					l, err := Take(t.Context(), r)
					if err != nil {
						t.Error(err)
						return
					}
					if !using.TryLock() {
						t.Error("two goroutines hold the lease")
					} else {
						time.Sleep(time.Second)
						using.Unlock()
					}
					release(t, l)
				}
			})
		}
		users.Wait()
		assertEmpty(t, folder)
	})
}

func TestReleaseWakesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		first := taken(t, mine(folder, "S1"))
		var told []HeldError
		r := mine(folder, "S1")
		r.Wait, r.Waiting = true, func(h HeldError) { told = append(told, h) }
		var after time.Duration
		done := make(chan struct{})
		go func() {
			defer close(done)
			began := time.Now()
			l := taken(t, r)
			after = time.Since(began)
			release(t, l)
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		release(t, first)
		<-done
		if len(told) != 1 || told[0].Holder != r.Holder {
			t.Errorf("reported %v", told)
		}
		if after < time.Minute || after > time.Minute+2*pollEvery {
			t.Errorf("got the lease after %v, want 1m0s to %v", after, time.Minute+2*pollEvery)
		}
		assertEmpty(t, folder)
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		defer release(t, taken(t, mine(folder, "S1")))
		why := errors.New("Ctrl-C")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, why)
		defer cancel()
		r := mine(folder, "S0", "S1")
		r.Wait = true
		_, err := Take(ctx, r)
		var held HeldError
		if !errors.Is(err, why) || !errors.As(err, &held) || held.Key != r.Keys[1] {
			t.Error(err)
		}
		if _, err := Take(ctx, mine(folder, "S0")); !errors.Is(err, why) {
			t.Errorf("Take with an ended context: got error %v, want %v", err, why)
		}
		release(t, taken(t, mine(folder, "S0")))
	})
}

// If a lock file is removed and recreated after it was opened and before it is
// locked, the lock is recognized as useless.
func TestLockOfRemovedFileIsDetected(t *testing.T) {
	folder := t.TempDir()
	path := devices("S1")[0].path(folder)
	old, err := try(path)
	if err != nil || old == nil {
		t.Fatal(old, err)
	}
	if err := os.Remove(path); err != nil {
		t.Skipf("this system cannot remove an open file: %v", err)
	}
	l := taken(t, mine(folder, "S1"))
	if err := old.Unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(t.Context(), mine(folder, "S1")); !errors.As(err, new(HeldError)) {
		t.Error(err)
	}
	release(t, l)
	assertEmpty(t, folder)
}

func TestFolderThatCannotBeUsed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := Take(t.Context(), mine(missing, "S1")); err == nil || !strings.Contains(err.Error(), FolderVariable) {
		t.Error(err)
	}
}
