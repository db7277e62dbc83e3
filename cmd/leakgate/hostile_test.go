package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

// evil is text that a device may return in any text field.
const evil = "\x1b]0;owned\x07\x1b[2J\u009b31m$(touch /data/local/tmp/canary);reboot'\"`\\ " +
	"\u202e\u2066\u200b\u2028\U000e0041\x7f\tduration: 8h"

// hostilePhone is a simulated phone that returns hostile text where a real
// phone returns names, numbers and errors.
type hostilePhone struct {
	*androidsim.Phone
	serial string
}

func (p *hostilePhone) Serial() string { return p.serial }

// lies are the hostile responses of the phone.
var lies = strings.NewReplacer(
	"Permission denied", evil+"\xff\xfe"+strings.Repeat("x", 1<<10), "Native Heap", evil+" Heap", "Unknown", evil,
	"TOTAL SWAP PSS", evil,
	"Pixel 7", evil+"\xff", "Google", strings.Repeat("\u0301", 1<<10), "inaccessible or not found", evil,
	"Events injected", evil)

func (p *hostilePhone) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	if strings.Contains(command, "leakgate:mark") {
		return p.Phone.Shell(ctx, command, strings.NewReader(""), stdout, stderr), ctx.Err()
	}
	var out, errOut bytes.Buffer
	exit := p.Phone.Shell(ctx, command, strings.NewReader(""), &out, &errOut)
	_, err := lies.WriteString(stdout, out.String())
	_, err2 := lies.WriteString(stderr, errOut.String())
	return exit, errors.Join(err, err2, ctx.Err())
}

func (*hostilePhone) Pull(context.Context, string, io.Writer) (int64, error) {
	return 0, errors.ErrUnsupported
}

func (*hostilePhone) Push(context.Context, io.Reader, string, fs.FileMode) error {
	return errors.ErrUnsupported
}

// In an entire run on a hostile phone, no injected command is executed, every
// line of every file is complete and bounded, and no text for people contains
// terminal control sequences.
func TestRunOnAHostilePhone(t *testing.T) {
	good := []string{
		"com.x", "com.x:push", "com.x:duration:", "com.x:yes", "com.x:1e3", "com.x:$HOME/y@z",
		"com.x:" + strings.Repeat("n", 240), "com.x;reboot", "com.x:$(id)", "com.x: - a", "com.x:中文",
	}
	bad := []string{
		"com.x" + evil, "com.x\nPss: 1 kB", "com.x\xff", "com.x#2", "com.x:\xc3\r\n'\xfe", "com.x:y\r\nz",
		"com.x" + strings.Repeat("n", 4<<10),
	}
	var specs []androidsim.ProcessSpec
	for _, name := range slices.Concat(good, bad) {
		specs = append(specs,
			androidsim.ProcessSpec{
				Name: name, Models: []androidsim.Model{androidsim.Typical(), androidsim.Leak(androidsim.Java, 600, 0)},
			})
	}
	// Without root all levels are tried; with root the memory of all processes
	// is read, and their leaks are found in time.
	for root, duration := range map[bool]time.Duration{false: 5 * time.Minute, true: 30 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			phone := &hostilePhone{serial: "S1" + evil + "\xff", Phone: androidsim.New(androidsim.Options{
				Root: root, Apps: []androidsim.App{{Package: "com.x", Processes: specs}},
			})}
			facts, err := capture.ReadFacts(t.Context(), phone)
			if err != nil {
				t.Fatal(err)
			}
			var screen bytes.Buffer
			o := monitor.Options{
				Devices: []monitor.Device{{Device: phone, Facts: facts}}, Patterns: []capture.Pattern{"com.x*"},
				Policy: detector.ArticlePolicy(),
				Dir:    filepath.Join(t.TempDir(), "run"), Tool: "test " + evil, Duration: duration,
				Workload: monitor.DeviceCommand{
					Command: "echo leakgate:mark " + text.ShellQuote(evil+"\xff\r") + "; echo leakgate:mark " +
						strings.Repeat("m", 100<<10) + "; sleep 7200",
				},
			}
			s := newScreen(console{err: &screen}, o)
			o.Observer = s
			run, err := monitor.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			s.close()
			checkRun(t, o.Dir, run, good, root)
			checkLines(t, "screen", screen.String())
			if _, err := phone.Stat("/data/local/tmp/canary"); err == nil {
				t.Error("a command in a name was executed")
			}
		})
	}
}

// checkRun reads a run and checks that it has exactly the processes with valid
// names, that with root their leaks were found, and that each file is
// well-formed.
func checkRun(t *testing.T, dir string, run record.Run, names []string, root bool) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "samples.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if !json.Valid(line) || !utf8.Valid(line) || len(line) > 8<<10 {
			t.Errorf("%d bytes: %.300q", len(line), line)
		}
	}
	seen, marks := map[string]bool{}, 0
	var header record.Header
	warnings, err := record.ReadSamples(bytes.NewReader(text), record.Lines{
		Header: func(h record.Header) error { header = h; return nil },
		Sample: func(s record.Sample) error { seen[s.Process] = true; return nil },
		Event: func(e record.Event) error {
			if e.Event == "mark" {
				marks++
			}
			return nil
		},
	})
	if err != nil || len(warnings) > 0 || marks != 2 {
		t.Errorf("got %d marks, warnings %v, %v", marks, warnings, err)
	}
	slices.Sort(names)
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, names) {
		t.Errorf("got samples of %q, want %q", got, names)
	}
	read, err := record.ReadRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := read.Devices[0].Device; d != header.Devices[0].Device ||
		d != strings.ToValidUTF8(run.Devices[0].Device, "\ufffd") {
		t.Errorf("got the device names %q, %q and %q", d, header.Devices[0].Device, run.Devices[0].Device)
	}
	for _, p := range read.Processes {
		if !slices.Contains(names, p.Process) || root != (p.Gate == detector.Leak) {
			t.Errorf("%.80q: gate %s, %.200q", p.Process, p.Gate, p.Warnings)
		}
	}
	// Read the file as it was written, and as a file from an untrusted source.
	forged := read
	forged.Processes = append(slices.Clone(read.Processes), record.Process{
		Process: strings.Repeat(evil, 1000), Device: evil + "\n", Source: evil, State: 99, Worst: 98, Gate: evil,
		Kind:        99,
		Transitions: []record.Transition{{From: 99, To: 98, Reason: evil}},
	})
	forged.Workload = &record.Workload{Kind: evil}
	for _, r := range []record.Run{run, read, forged} {
		var out bytes.Buffer
		if err := reporters.WriteRun(&out, r); err != nil {
			t.Fatal(err)
		}
		checkLines(t, "text", out.String())
	}
}

// checkLines expects lines of printable text of bounded length.
func checkLines(t *testing.T, what, told string) {
	t.Helper()
	if told == "" {
		t.Errorf("%s is empty", what)
	}
	for line := range strings.SplitSeq(told, "\n") {
		if text.Printable(line) != line || len(line) > 8<<10 {
			t.Errorf("%s: %d bytes: %.300q", what, len(line), line)
		}
	}
}
