package jvmtest

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestLeaksGrow(t *testing.T) {
	t.Parallel()
	j := New(t)
	var names []string
	for _, leak := range ShopLeaks() {
		names = append(names, leak.Name)
	}
	p := j.Start(t, j.Compile(t, Shop()), ShopMain, names...)
	done := 0
	for _, n := range []int{1, 4, 5} {
		p.Do(t, n)
		done += n
		checkLeaks(t, load(t, p.Dump(t)), ShopLeaks(), done, asWritten)
	}
}

// TestLeaksByName checks that each leak also occurs when only that leak is
// selected.
func TestLeaksByName(t *testing.T) {
	t.Parallel()
	j := New(t)
	jar := j.Compile(t, Shop())
	for i, leak := range ShopLeaks() {
		p := j.Start(t, jar, ShopMain, leak.Name)
		p.Do(t, 2)
		g := load(t, p.Dump(t))
		p.Stop(t)
		checkLeaks(t, g, []Leak{leak}, 2, asWritten)
		for k, other := range ShopLeaks() {
			if n := len(g.Exactly(other.Class)); k != i && n > 0 {
				t.Errorf("%s creates %d objects of %s", leak.Name, n, other.Class)
			}
		}
	}
}

func TestSteadyDoesNotGrow(t *testing.T) {
	t.Parallel()
	j := New(t)
	p := j.Start(t, j.Compile(t, Shop()), SteadyMain)
	p.Do(t, 5)
	before := counts(load(t, p.Dump(t)))
	const iterations = 50
	p.Do(t, iterations)
	after := load(t, p.Dump(t))
	if before["com.example.steady.Image"] == 0 {
		t.Error("no image is reachable")
	}
	for class, n := range counts(after) {
		grown := n - before[class]
		if strings.HasPrefix(class, "com.example.") && grown != 0 {
			t.Errorf("number of objects of %[2]s changed by %+[1]d", grown, class)
		}
		// The number of the JVM's own objects may change slightly, but must not
		// grow with each iteration.
		if grown >= iterations {
			t.Errorf("%+d objects of %s in %d iterations", grown, class, iterations)
		}
	}
}

func TestProcessLeavesNothing(t *testing.T) {
	t.Parallel()
	j := New(t)
	jar := j.Compile(t, Shop())
	p := j.Start(t, jar, SteadyMain)
	dump := p.Dump(t)
	pid := p.cmd.Process.Pid
	p.Stop(t)
	p.Stop(t)
	if info, err := os.Stat(dump); err != nil || info.Size() > 8<<20 {
		t.Errorf("dump after Stop: %v, %v", info, err)
	}
	if p.cmd.ProcessState == nil || p.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("the program ended with %v", p.cmd.ProcessState)
	}
	files, err := os.ReadDir(p.dir)
	if err != nil || len(files) != 1 {
		t.Errorf("files left after the program ended: %v, %v", files, err)
	}
	pattern := "/tmp/*" + strconv.Itoa(pid)
	if left, err := filepath.Glob(pattern); err != nil || len(left) != 0 {
		t.Errorf("process %d left %q, %v", pid, left, err)
	}
}

// The program is stopped at the end of the test.
func TestProcessEndsWithItsContext(t *testing.T) {
	t.Parallel()
	j := New(t)
	ctx, cancel := context.WithCancel(t.Context())
	p, err := j.start(ctx, t.TempDir(), nil, j.Compile(t, Shop()), ShopMain, []string{"running-thread"})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.do(ctx, 3); err != nil {
		t.Error(err)
	}
	cancel()
	if _, ok := <-p.lines; ok {
		t.Error("the program printed unexpected output")
	}
	if err := p.close(); err != nil || !p.cmd.ProcessState.Success() {
		t.Errorf("%v, %v", err, p.cmd.ProcessState)
	}
}

func TestProcessSaysWhatFailed(t *testing.T) {
	t.Parallel()
	j := New(t)
	jar := j.Compile(t, Shop())
	if _, err := j.start(t.Context(), t.TempDir(), nil, jar, "com.example.Nobody", nil); err == nil ||
		!strings.Contains(err.Error(), "ClassNotFoundException") {
		t.Errorf("missing program: %v", err)
	}
	p, err := j.start(t.Context(), t.TempDir(), nil, jar, ShopMain, []string{"no-such-leak"})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.do(t.Context(), 1); err == nil {
		t.Error("an unknown leak was run")
	}
	if err := p.close(); err == nil || !strings.Contains(err.Error(), "no-such-leak") {
		t.Errorf("close: %v", err)
	}
	if _, err := p.dump(t.Context()); err == nil {
		t.Error("a program that ended was dumped")
	}
}
