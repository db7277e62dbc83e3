package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
)

// A diagnosis removes what an earlier, crashed diagnosis left on the phone, and
// nothing else: a dump that another host is currently taking is not removed.
func TestDiagnoseRemovesOldDumps(t *testing.T) {
	t.Parallel()
	phone := shop("phone-a")
	const left, other = "/data/local/tmp/leakgate-abc-def.hprof", "/data/local/tmp/mine.hprof"
	const now = "/data/local/tmp/leakgate-0a1b2c3d-abc-def.hprof"
	for _, name := range []string{left, other, now} {
		if name == now {
			phone.StepClock(3 * time.Hour)
		}
		w, err := phone.Create(name, 0o644)
		if err == nil {
			_, err = io.WriteString(w, "x")
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	code, out, errOut := typed(t,
		serve(t, phone), "diagnose", "--process", "com.shop", "--kind", "thread", "--out",
		filepath.Join(t.TempDir(), "now"))
	if code != exitOK || !strings.Contains(errOut, left) || strings.Contains(errOut, other) ||
		!strings.Contains(out, "threads: ") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	if r, err := phone.Open(left); err == nil {
		t.Error("the old dump was not removed", r.Close())
	}
	for _, name := range []string{other, now} {
		r, err := phone.Open(name)
		if err != nil {
			t.Fatal("a dump that should stay was removed:", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// clinging is a phone that does not remove heap dumps.
type clinging struct{ *androidsim.Phone }

func (p clinging) Shell(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) int {
	if strings.Contains(command, " 'left'; ") {
		return adbd.NoExit
	}
	return p.Phone.Shell(ctx, command, stdin, stdout, stderr)
}

// The name of a dump that could not be removed from the phone is reported, and
// the next diagnosis finds it.
func TestDiagnoseReportsLeftovers(t *testing.T) {
	t.Parallel()
	phone := shop("phone-a")
	env := serve(t, clinging{phone})
	java := func() (int, string) {
		code, _, errOut := typed(t,
			env, "diagnose", "--process", "com.shop", "--kind", "java", "--out",
			filepath.Join(t.TempDir(), "now"))
		return code, errOut
	}
	code, errOut := java()
	_, name, told := strings.Cut(errOut, "leakgate diagnose: /data/local/tmp/leakgate-")
	name, _, _ = strings.Cut("/data/local/tmp/leakgate-"+name, " ")
	if code != exitOK || !told ||
		!strings.Contains(errOut, name+" may be left on the device; the next diagnosis tries to remove it\n") {
		t.Fatalf("exit %d\n%s", code, errOut)
	}
	if r, err := phone.Open(name); err != nil || r.Close() != nil {
		t.Errorf("%s does not exist: %v", name, err)
	}
	if code, errOut = java(); code != exitOK ||
		!strings.Contains(errOut, "removed what an earlier diagnosis left on the device: "+name+"\n") {
		t.Errorf("exit %d\n%s", code, errOut)
	}
}

// If Ctrl-C is pressed between the two readings, the output of the first
// reading is complete, and its directory is printed.
func TestDiagnoseInterruptedBetweenReadings(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "now")
	var env []string
	for name, value := range serve(t, shop("phone-a")) {
		env = append(env, name+"="+value)
	}
	ctx := minute(t)
	cmd := program(t, ctx, env, "diagnose", "--process", "com.shop", "--kind", "gpu", "--for", "48h", "--out", dir)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if !strings.Contains(lines.Text(), "read once; reading again in") {
			continue
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Skipf("signals: %v", err) // Windows has none
		}
	}
	_ = cmd.Wait() // the exit code reports the error
	if code := cmd.ProcessState.ExitCode(); code != 130 ||
		!strings.Contains(text.String(), "interrupted before the second reading: no comparison; "+
			"the evidence from the first one is in "+dir) {
		t.Errorf("exit %d\n%s", code, text.String())
	}
	if found, err := filepath.Glob(filepath.Join(dir, "artifacts", "*", "*", "summary.txt")); err != nil ||
		len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
}

// If two processes have the same name, the message lists both, and --pid
// chooses one.
func TestDiagnoseSelectsByPID(t *testing.T) {
	t.Parallel()
	twin := func(pkg string) androidsim.App {
		return androidsim.App{
			Package:   pkg,
			Processes: []androidsim.ProcessSpec{{Name: "com.shop", Models: []androidsim.Model{androidsim.Typical()}}},
		}
	}
	phone := androidsim.New(androidsim.Options{
		Serial: "phone-a", Root: true, Apps: []androidsim.App{twin("com.shop"), twin("com.other")},
	})
	env := serve(t, phone)
	args := func(more ...string) []string {
		return append([]string{
			"diagnose", "--process", "com.shop", "--kind", "thread", "--out", filepath.Join(t.TempDir(), "run"),
		}, more...)
	}
	code, _, errOut := typed(t, env, args()...)
	pids := regexp.MustCompile(`com\.shop \(pid (\d+), uid \d+\)`).FindAllStringSubmatch(errOut, -1)
	if code != exitUsage || len(pids) != 2 || !strings.Contains(errOut, "com.shop matches 2 processes: ") ||
		!strings.Contains(errOut, "choose one with --pid") {
		t.Fatalf("exit %d\n%s", code, errOut)
	}
	for _, pid := range pids {
		code, _, errOut := typed(t, env, args("--pid", pid[1], "--verbose")...)
		if code != exitOK || !strings.Contains(errOut, "com.shop (pid "+pid[1]+")") {
			t.Errorf("exit %d\n%s", code, errOut)
		}
	}
	if code, _, errOut := typed(t, env, args("--pid", "1")...); code != exitUsage ||
		!strings.Contains(errOut,
			"no process com.shop with pid 1 on phone-a; the processes with that name are com.shop (pid ") {
		t.Errorf("exit %d\n%s", code, errOut)
	}
}
