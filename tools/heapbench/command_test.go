package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMeasure(t *testing.T) {
	measured := func(act string) figure {
		f, err := command{argv: []string{actor(t, act)}, limit: time.Minute}.measure(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", act, err)
		}
		if f.wall <= 0 || f.cpu < 0 {
			t.Errorf("%s: %+v", act, f)
		}
		return f
	}
	small, large := measured("nothing"), measured("grow")
	if small.peak == 0 {
		t.Skip("the memory of a process is unknown on this system")
	}
	if more := large.peak - small.peak; more < grownBytes*9/10 || more > 3*grownBytes {
		t.Errorf("peak memory grew by %d bytes, from %d to %d, want an increase of about %d", more, small.peak,
			large.peak, grownBytes)
	}
}

func TestMeasureFails(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("STARTED", filepath.Join(dir, "started"))
	for _, c := range []struct {
		act, says string
		limit     time.Duration
	}{
		{"fail", "exit status 6: read dump: it is   broken", time.Minute},
		{"hang", "timed out after 1s", time.Second},
	} {
		_, err := command{argv: []string{actor(t, c.act)}, limit: c.limit}.measure(t.Context())
		if err == nil || err.Error() != c.says {
			t.Errorf("%s: %v", c.act, err)
		}
	}
	if _, err := (command{argv: []string{filepath.Join(dir, "none")}, limit: time.Minute}).
		measure(t.Context()); err == nil {
		t.Error("measuring a missing program returns no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (command{argv: []string{actor(t, "nothing")}, limit: time.Minute}).measure(ctx); err == nil {
		t.Error("measuring an interrupted run returns no error")
	}
}

func TestTail(t *testing.T) {
	var s tail
	for range 3 {
		if n, err := s.Write([]byte(strings.Repeat("x", 3000) + "\n")); n != 3001 || err != nil {
			t.Fatal(n, err)
		}
	}
	if len(s) != tailBytes {
		t.Errorf("tail keeps %d bytes, want %d", len(s), tailBytes)
	}
	for text, want := range map[string]string{
		"":                             "it: EOF",
		"a\nb\r\n\x1b[0m\n":            "it: EOF: b",
		strings.Repeat("é", 201):       "it: EOF: " + strings.Repeat("é", 200) + "...",
		"error: a | b\nerror: c\td\n ": "it: EOF: error: c d",
	} {
		s := tail(text)
		if got := "it: " +
			s.explain(os.ErrClosed).Error(); got != strings.Replace(want, "EOF", os.ErrClosed.Error(), 1) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestPhases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "phases.json")
	if takePhases(path) != nil {
		t.Error("takePhases returns phases without a file")
	}
	for text, want := range map[string]bool{
		`{"objects":1,"edges":2,"phases":[{"name":"read","seconds":1.5,"rss_bytes":3}]}`: true,
		`{"objects":1,"phases":[]}`: false,
		`{"objects":`:               false,
		``:                          false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := takePhases(path)
		if (p != nil) != want {
			t.Errorf("%s: %+v", text, p)
		}
		if p != nil && (p.Objects != 1 || p.Edges != 2 || p.Phases[0] != (phase{"read", 1.5, 3})) {
			t.Errorf("%s: %+v", text, p)
		}
		// The next run must not read the phases of this run.
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: the phases file still exists", text)
		}
	}
}
