package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// runTimeout is the timeout of one run. The slowest peer needs two minutes for
// the largest dump.
const runTimeout = 10 * time.Minute

// command is a process to measure.
type command struct {
	argv []string
	// limit is the timeout of the process.
	limit time.Duration
}

// measure runs a process to completion. It discards the output so that no
// reader delays the process. A process that fails has no figure.
//
// On Linux the peak memory of a child is never less than the memory of the
// process that started it (exec_mmap in fs/exec.c). Therefore this program
// holds no data in memory.
func (c command) measure(ctx context.Context) (figure, error) {
	limited, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	var said tail
	cmd := exec.CommandContext(limited, c.argv[0], c.argv[1:]...)
	cmd.Stderr = &said
	cmd.WaitDelay = 5 * time.Second
	began := time.Now()
	err := cmd.Run()
	wall := time.Since(began)
	if limited.Err() != nil && ctx.Err() == nil {
		return figure{}, fmt.Errorf("timed out after %v", c.limit)
	}
	if err != nil {
		return figure{}, said.explain(err)
	}
	s := cmd.ProcessState
	return figure{wall: wall, cpu: s.UserTime() + s.SystemTime(), peak: peak(s)}, nil
}

// output runs a process without measuring it, and returns its output.
func output(ctx context.Context, dir string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t := tail(out)
		return string(out), fmt.Errorf("run %s: %w", argv[0], t.explain(err))
	}
	return string(out), nil
}

// tail is a writer that keeps the end of its input.
type tail []byte

const tailBytes = 4096

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if over := len(*t) - tailBytes; over > 0 {
		*t = append((*t)[:0], (*t)[over:]...)
	}
	return len(p), nil
}

// explain adds the last output line of a process to its error.
func (t *tail) explain(err error) error {
	lines := bytes.FieldsFunc(*t, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(plain(lines[i])); line != "" {
			return fmt.Errorf("%w: %s", err, line)
		}
	}
	return err
}

// plain returns at most 200 characters of a line, without colors and without
// characters that would break a table.
func plain(line []byte) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == '|' {
			return ' '
		}
		return r
	}, strings.ReplaceAll(string(line), "\x1b[0m", ""))
	if r := []rune(text); len(r) > 200 {
		return string(r[:200]) + "..."
	}
	return text
}

// find returns the path of a program, or an error if it is not in PATH.
func find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", errors.New(program + " is not installed")
	}
	return path, nil
}
