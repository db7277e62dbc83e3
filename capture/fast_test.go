package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/shelltest"
)

func statLine(pid int, comm string, start int) string {
	return fmt.Sprintf("%d (%s) S 1 1 0 0 -1 0 0 0 0 0 100 50 0 0 20 0 30 0 %d 0 0 0\n", pid, comm, start)
}

// lines returns text as grep prints it: each line is preceded by the name of
// its file.
func lines(name, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(name + ":" + line)
	}
	return b.String()
}

func rollupTarget(pid int, start uint64) Target {
	return Target{
		Process: Process{Name: fmt.Sprintf("com.p%d", pid), PID: pid, Start: start}, Level: Level{Source: SmapsRollup},
	}
}

func answering(out, errOut string) *shelltest.Device {
	return &shelltest.Device{Run: func(_ context.Context, _ string, stdout, stderr io.Writer) (int, error) {
		_, err := io.WriteString(stdout, out)
		_, err2 := io.WriteString(stderr, errOut)
		return 0, errors.Join(err, err2)
	}}
}

// end is the last line of complete output.
const end = "uptime:1000.26 2000.00\n"

func TestFastReadsManyFilesOfOneAnswer(t *testing.T) {
	out := "1000.25 2000.00\n" +
		lines("77/stat", statLine(77, "system_server", 9)) +
		lines("5/stat", statLine(5, "five", 500)) +
		lines("5/status", "Threads:\t12\nRssAnon:\t  300 kB\nVmSwap:\t 4 kB\n") +
		lines("5/smaps_rollup", "Pss:      1000 kB\nSwapPss:    24 kB\n") +
		lines("6/stat", statLine(6, "a) S 1 (b\nc", 600)) + lines("6/status", "Threads:\t3\n") +
		lines("6/smaps_rollup", "Pss:      7 kB\n") +
		lines("7/stat", statLine(7, "seven", 999)) +
		lines("8/stat", statLine(8, "eight", 800)) + lines("8/status", "Threads:\t1\n") + end
	errOut := "grep: 8/smaps_rollup: Permission denied\ngrep: 9/stat: No such file or directory\n"
	dev := answering(out, errOut)
	targets := []Target{
		rollupTarget(5, 500), rollupTarget(6, 600), rollupTarget(7, 700), rollupTarget(8, 800), rollupTarget(9, 900),
	}
	rounds, err := NewFast(dev).Read(t.Context(), targets, 77, time.Second)
	if err != nil || len(rounds) != 1 {
		t.Fatal(rounds, err)
	}
	r := rounds[0]
	if r.Up != 1000*time.Second+250*time.Millisecond {
		t.Errorf("clock %v", r.Up)
	}
	if r.SystemServer != known.OfDuration(1500*time.Millisecond) {
		t.Errorf("system_server %+v", r.SystemServer)
	}
	five := r.Readings[0]
	if five.Err != nil || bytesOf(five) != 1024<<10 || five.Threads.N != 12 || five.RSSAnon.N != 300 ||
		five.Swap.N != 4 {
		t.Errorf("five: %+v", five)
	}
	if six := r.Readings[1]; six.Err != nil || bytesOf(six) != 7<<10 || six.SwapPSS.Known {
		t.Errorf("comm with a line break and parentheses: got %+v, want 7 MB, no SwapPss", six)
	}
	if seven := r.Readings[2]; !errors.Is(seven.Err, ErrGone) {
		t.Errorf("reused pid: %v", seven.Err)
	}
	if eight := r.Readings[3]; eight.Err == nil || errors.Is(eight.Err, ErrGone) ||
		!strings.Contains(eight.Err.Error(), "Permission denied") {
		t.Errorf("refused file: %v", eight.Err)
	}
	if nine := r.Readings[4]; !errors.Is(nine.Err, ErrGone) {
		t.Errorf("process that has ended: got error %v, want %v", nine.Err, ErrGone)
	}
	if n := len(dev.Commands); n != 1 {
		t.Errorf("the round took %d round trips, want 1", n)
	}
}

// A round that is truncated at any byte is an error, even if the exit status is
// 0: a value may have lost its last digits, and a missing process would be
// mistaken for one that has ended.
func TestFastRejectsTruncatedOutput(t *testing.T) {
	out := "1000.25 2000.00\n" + lines("5/stat", statLine(5, "five", 500)) +
		lines("5/status", "Threads:\t12\n") + lines("5/smaps_rollup", "Pss:      123456 kB\nSwapPss:    24 kB\n")
	asApp := rollupTarget(5, 500)
	asApp.Level = Level{Source: RunAs, Prefix: shell.RunAs("x", 0)}
	for name, c := range map[string]struct {
		out    string
		target Target
	}{
		"one command": {out + end, rollupTarget(5, 500)},
		"with run-as": {strings.Replace(out, lines("5/smaps_rollup", ""), "", 1) + end + end, asApp},
	} {
		for cut := range len(c.out) {
			rounds, err := NewFast(answering(c.out[:cut], "")).Read(t.Context(), []Target{c.target}, 0, time.Second)
			if err == nil {
				t.Fatalf("%s, truncated at %d: %+v", name, cut, rounds)
			}
		}
		if _, err := NewFast(answering(c.out, "")).Read(t.Context(), []Target{c.target}, 0, time.Second); err != nil {
			t.Errorf("%s, whole: %v", name, err)
		}
	}
}

// A process whose memory map is locked blocks the whole grep. The other
// processes are still read, and only the blocked one is marked.
func TestFastMarksHungProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := &shelltest.Device{Run: func(ctx context.Context, command string, stdout, _ io.Writer) (int, error) {
			if strings.Contains(command, "6/smaps_rollup") {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			_, err := io.WriteString(stdout, "1.00 2.00\n")
			if strings.Contains(command, "5/stat") {
				_, err = io.WriteString(stdout, lines("5/stat", statLine(5, "five", 500))+
					lines("5/smaps_rollup", "Pss: 9 kB\n")+end)
			}
			return 0, err
		}}
		targets := []Target{rollupTarget(5, 500), rollupTarget(6, 600)}
		began := time.Now()
		rounds, err := NewFast(dev).Read(t.Context(), targets, 0, 10*time.Second)
		if err != nil || len(rounds) != 2 {
			t.Fatal(rounds, err)
		}
		if r := rounds[0].Readings[0]; r.Err != nil || r.PSS.N != 9 {
			t.Errorf("healthy process: %+v", r)
		}
		if r := rounds[1].Readings[0]; !errors.Is(r.Err, ErrNoAnswer) {
			t.Errorf("hung process: %v", r.Err)
		}
		if took := time.Since(began); took > 14*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestFastDeviceThatDoesNotAnswerIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := &shelltest.Device{Run: func(ctx context.Context, _ string, _, _ io.Writer) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}}
		rounds, err := NewFast(dev).Read(t.Context(), []Target{rollupTarget(5, 500), rollupTarget(6, 600)}, 0,
			10*time.Second)
		if err == nil || len(rounds) != 0 {
			t.Errorf("%v, %v", rounds, err)
		}
	})
}

func TestFastAnswerIsCapped(t *testing.T) {
	dev := &shelltest.Device{Run: func(_ context.Context, _ string, stdout, _ io.Writer) (int, error) {
		block := make([]byte, 1<<20)
		for n := 0; ; n++ {
			if _, err := stdout.Write(block); err != nil {
				return 0, err
			}
			if n > 1000 {
				return 0, errors.New("the endless output was not stopped")
			}
		}
	}}
	_, err := NewFast(dev).Read(t.Context(), []Target{rollupTarget(5, 500)}, 0, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("endless output: %v", err)
	}
}

func TestFastCommandIsOneGrepForAll(t *testing.T) {
	var targets []Target
	for pid := range 50 {
		targets = append(targets, rollupTarget(10000+pid, 1))
	}
	command := fastCommand(targets, 1500)
	if n := strings.Count(command, "grep"); n != 1 {
		t.Errorf("%d greps", n)
	}
	// adbd before protocol version 0x01000001 accepts service strings of up to
	// 4096 bytes (MAX_PAYLOAD_V1).
	if len(command) > 4000 {
		t.Errorf("the command is %d bytes long, want at most 4000", len(command))
	}
	targets[3].Level = Level{Source: RunAs, Prefix: shell.RunAs("com.x", 0)}
	targets[4].Level = targets[3].Level
	if n := strings.Count(fastCommand(targets, 0), "run-as"); n != 1 {
		t.Errorf("%d run-as commands for two processes of one package, want 1", n)
	}
}

func FuzzFastSort(f *testing.F) {
	f.Add([]byte(lines("5/stat", statLine(5, "five", 500)) + lines("/proc/5/smaps_rollup", "Pss: 1 kB\n")))
	f.Add([]byte("grep: x\n99999999999/stat:1\n5/other:1\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		fast := NewFast(answering("", ""))
		fast.sort(out)
		total := 0
		for k, text := range fast.files {
			total += len(text)
			if k.pid < 0 {
				t.Errorf("pid %d", k.pid)
			}
		}
		if total > len(out) {
			t.Errorf("the parts contain %d bytes, more than the %d bytes of the output", total, len(out))
		}
		r := fast.reading(rollupTarget(5, 500))
		if r.Err == nil && !r.PSS.Known {
			t.Error("sample without a value")
		}
	})
}

func BenchmarkFastRound50(b *testing.B) {
	var out strings.Builder
	out.WriteString("1000.25 2000.00\n")
	var targets []Target
	for i := range 50 {
		pid := 10000 + i
		p := fmt.Sprint(pid)
		out.WriteString(lines(p+"/stat", statLine(pid, "p", 5)))
		out.WriteString(lines(p+"/status", "Threads:\t12\nRssAnon:\t  300 kB\nVmSwap:\t 4 kB\n"))
		out.WriteString(lines(p+"/smaps_rollup", "Pss:      1000 kB\nSwapPss:    24 kB\n"))
		targets = append(targets, rollupTarget(pid, 5))
	}
	fast := NewFast(answering(out.String(), ""))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fast.Read(b.Context(), targets, 0, time.Second); err != nil {
			b.Fatal(err)
		}
	}
}
