//go:build realtime

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
	"github.com/leakgate/leakgate/internal/stall"
	"github.com/leakgate/leakgate/reporters/record"
)

// demanded is the result of one `leakgate diagnose`.
type demanded struct {
	out, errs string
	exit      int
	// dir is the directory of the diagnosis; record is its JSON, if it exists.
	dir    string
	record record.Diagnosis
}

// demandWithin is the timeout of one `leakgate diagnose`.
const demandWithin = time.Minute

// demand runs `leakgate diagnose` on the device.
func demand(t *testing.T, r *hostdevicetest.Running, args ...string) demanded {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), demandWithin)
	defer cancel()
	d := demanded{dir: filepath.Join(t.TempDir(), "demanded")}
	cmd := onHostDevice(t, ctx, r, append([]string{"diagnose", "--out", d.dir}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	d.out, d.errs, d.exit = out.String(), errs.String(), cmd.ProcessState.ExitCode()
	d.read(t)
	return d
}

// read reads the record in the latest directory. With --json the record is also
// printed on stdout.
func (d *demanded) read(t *testing.T) {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(d.dir, "artifacts", "*", "*", "diagnosis.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []record.Diagnosis
	for _, name := range records {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, decodeRecord(t, text))
	}
	for _, one := range list {
		if one.Recipe != "snapshot" {
			d.record = one
		}
	}
	if strings.HasPrefix(d.out, "{") {
		printed := decodeRecord(t, []byte(d.out))
		if printed.Folder != d.record.Folder || printed.Outcome != d.record.Outcome ||
			len(printed.Findings) != len(d.record.Findings) {
			t.Errorf("printed %+v, written %+v", printed, d.record)
		}
	}
}

func decodeRecord(t *testing.T, text []byte) (d record.Diagnosis) {
	t.Helper()
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(&d); err != nil || d.Schema != record.DiagnosisSchema || d.Trigger != "demand" || d.T != 0 {
		t.Fatalf("%v: %s", err, text)
	}
	return d
}

// file returns the path of an artifact.
func (d demanded) file(name string) string {
	return filepath.Join(d.dir, filepath.FromSlash(d.record.Folder), name)
}

// assert compares the exit code and the output with the expected ones.
func (d demanded) assert(t *testing.T, exit int, out ...string) {
	t.Helper()
	if d.exit != exit {
		t.Errorf("exit %d, want %d", d.exit, exit)
	}
	for _, part := range out {
		if !strings.Contains(d.out+d.errs, part) {
			t.Errorf("the output does not contain %q", part)
		}
	}
	if t.Failed() {
		t.Logf("exit %d\n%s\n%s", d.exit, d.out, d.errs)
	}
}

// Each kind of leak is diagnosed on demand on a build where everything may be
// read, and invalid command lines are rejected.
func TestDiagnoseOnTheHostDevice(t *testing.T) {
	if testing.Short() {
		t.Skip("this test takes ten seconds")
	}
	t.Parallel()
	hostdevicetest.RequireJava(t)
	const scale = 20
	r := hostdevicetest.StartNested(t, hostdevice.Options{Scale: scale, AppUID: appUser})
	r.Must(t, "shell", "am start -n "+r.Package()+"/.All --es mb_per_h 1500")
	of := func(name string) string { return r.Package() + ":" + name }

	t.Run("java", func(t *testing.T) {
		d := demand(t, r, "--process", of("java"), "--kind", "java")
		d.assert(t, 0, "held by Leaky.OPEN_SESSIONS", "↓ static Leaky.OPEN_SESSIONS")
		assertSteps(t, d.record, "meminfo complete", "heap complete", "logcat complete", "exit_info complete")
		assertStripped(t, d.file("heap.hprof.zst"), true)
		if f := found(t, d.record, "suspect"); !strings.Contains(f.Name,
			"Leaky$Session, held by Leaky.OPEN_SESSIONS") || d.record.Outcome != record.DiagnosisComplete {
			t.Errorf("%s, found %+v", d.record.Outcome, f)
		}
	})
	t.Run("raw", func(t *testing.T) {
		d := demand(t, r, "--process", of("java"), "--kind", "java", "--keep", "raw", "--json")
		d.assert(t, 0)
		assertStripped(t, d.file("heap.hprof.zst"), false)
	})
	t.Run("none", func(t *testing.T) {
		d := demand(t, r, "--process", of("java"), "--kind", "java", "--keep", "none", "--json")
		d.assert(t, 0)
		for _, name := range []string{"heap.hprof", "heap.hprof.zst"} {
			if _, err := os.Stat(d.file(name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s exists: %v", name, err)
			}
		}
		if _, err := os.Stat(d.file("analysis.json")); err != nil {
			t.Error(err)
		}
		found(t, d.record, "suspect")
	})
	t.Run("native", func(t *testing.T) {
		stalls := stall.Measure(t)
		d := demand(t, r, "--process", of("native"), "--kind", "native", "--for", "60s", "--json")
		d.assert(t, 0, "read once; reading again in 3s")
		f := found(t, d.record, "mapping")
		if f.Name != "[heap]" && f.Name != "(anonymous)" || f.Share == nil || *f.Share < 0.8 {
			t.Errorf("%+v grew", f)
		}
		const rate = 1500.0 / 3600 // MB per second of device time; a stall also stops the leaking process
		stalled := stalls.Total().Seconds() * scale
		assertMB(t, f.Name, f.BytesDelta, rate*(30-stalled), rate*(90+stalled)) // over slightly more than 60 s
	})
	t.Run("thread", func(t *testing.T) {
		d := demand(t, r, "--process", of("thread"), "--kind", "thread", "--for", "60s", "--json")
		d.assert(t, 0)
		if f := found(t, d.record, "threads"); f.Name != "pool-3-thread-*" || *f.CountDelta < 10 {
			t.Errorf("%+v grew", f)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		d := demand(t, r, "--process", of("control"), "--json")
		d.assert(t, 0)
		assertSteps(t, d.record, "status complete", "smaps complete", "showmap complete", "maps complete",
			"meminfo complete", "heap complete", "logcat complete", "exit_info complete")
	})
	t.Run("gpu", func(t *testing.T) {
		d := demand(t, r, "--process", of("control"), "--kind", "gpu", "--json")
		d.assert(t, 0)
		// This machine renders no graphics, and the report says so.
		assertSteps(t, d.record, "meminfo complete", "gfxinfo skipped", "gpu skipped", "surfaceflinger skipped",
			"logcat complete", "exit_info complete")
	})
	for name, c := range map[string]struct {
		args []string
		exit int
		says []string
	}{
		"unknown process": {
			[]string{"--process", "com.example.leeky"}, 2,
			[]string{"no process com.example.leeky on ", "running apps: " + r.Package()},
		},
		"four": {
			[]string{"--process", of("*")}, 2, []string{"matches 4 processes: ", of("java") + " (pid ", "; name one"},
		},
		"invalid kind": {
			[]string{"--process", of("java"), "--kind", "jav"}, 2,
			[]string{`--kind: invalid value "jav": want java, native, gpu, thread or unknown (did you mean java?)`},
		},
		"invalid value of --keep": {
			[]string{"--process", of("java"), "--keep", "all"}, 2,
			[]string{`--keep: invalid value "all": want stripped, raw or none`},
		},
		"no process":    {nil, 2, []string{"no process to diagnose: add --process NAME"}},
		"no such phone": {[]string{"--process", of("java"), "--device", "phone-b"}, 3, []string{"phone-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := demand(t, r, c.args...)
			d.assert(t, c.exit, c.says...)
			if _, err := os.Stat(d.dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a directory was created: %v", err)
			}
		})
	}
	t.Run("private", func(t *testing.T) { diagnosePrivate(t, r) })
	t.Run("interrupted", func(t *testing.T) { interruptDump(t, r, of("java")) })
	assertNothingLeft(t, r)
}

// diagnosePrivate diagnoses a process whose map keys, strings and thread names
// contain personal data: the kept files contain none of it unless requested.
func diagnosePrivate(t *testing.T, r *hostdevicetest.Running) {
	r.Must(t, "shell", "am start -n "+r.Package()+"/.Private --es mb_per_h 1500")
	process := r.Package() + ":private"
	for _, kind := range []string{"java", "thread"} {
		d := demand(t, r, "--process", process, "--kind", kind, "--for", "60s", "--json")
		d.assert(t, 0)
		assertPrivate(t, d.dir, d.out+d.errs)
	}
	d := demand(t, r, "--process", process, "--kind", "thread", "--show-texts")
	d.assert(t, 0)
	if shown, err := os.ReadFile(d.file("threads.txt")); err != nil || !aboutPeople.Match(shown) {
		t.Errorf("threads.txt does not contain the thread name despite --show-texts: %v", err)
	}
}

// aboutPeople is the personal data in the map keys, strings and thread names of
// .Private.
var aboutPeople = regexp.MustCompile(`alice\d*@|4917612\d`)

// assertPrivate checks that neither the output nor any file in the directory,
// except heap dumps, contains personal data.
func assertPrivate(t *testing.T, dir, printed string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(e.Name(), ".hprof") && !strings.HasSuffix(e.Name(), ".txt") {
			return err
		}
		text, err := os.ReadFile(path)
		if at := aboutPeople.FindIndex(text); at != nil {
			t.Errorf("%s has %q", path, text[max(at[0]-60, 0):at[1]])
		}
		files++
		return err
	})
	if err != nil || files < 4 {
		t.Errorf("%d files: %v", files, err)
	}
	if aboutPeople.MatchString(printed) {
		t.Errorf("printed\n%s", printed)
	}
}

// interruptDump interrupts a diagnosis while the heap is being dumped.
func interruptDump(t *testing.T, r *hostdevicetest.Running, process string) {
	ctx, cancel := context.WithTimeout(t.Context(), demandWithin)
	defer cancel()
	d := demanded{dir: filepath.Join(t.TempDir(), "demanded")}
	temp := t.TempDir()
	cmd := onHostDevice(t, ctx, r, "diagnose", "--out", d.dir, "--process", process, "--kind", "java", "--json")
	cmd.Env = append(cmd.Env, "TMPDIR="+temp)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for ctx.Err() == nil {
		if files, _ := filepath.Glob(filepath.Join(r.Dir(), "tmp", "leakgate-*.hprof")); len(files) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code reports the error
	d.out, d.errs, d.exit = out.String(), errs.String(), cmd.ProcessState.ExitCode()
	d.read(t)
	d.assert(t, 130)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("took %v", took)
	}
	if d.record.Outcome != record.DiagnosisInterrupted {
		t.Errorf("got the record %+v", d.record)
	}
	assertNothingLeft(t, r)
	known := []string{"diagnosis.json", "summary.txt", "meminfo.txt", "meminfo.txt.summary.txt"}
	for _, dir := range []string{d.file(""), temp} {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !slices.Contains(known, f.Name()) {
				t.Errorf("%s was not removed", f.Name())
			}
		}
	}
}

// On a user build, a debuggable app is read with run-as, and its heap is
// dumped.
func TestDiagnoseADebuggableApp(t *testing.T) {
	if testing.Short() {
		t.Skip("this test takes ten seconds")
	}
	t.Parallel()
	hostdevicetest.RequireJava(t)
	r := hostdevicetest.StartNested(t,
		hostdevice.Options{Scale: 20, ShellUID: shellUser, AppUID: appUser, BuildType: "user"})
	r.Must(t, "shell", "am start -n "+r.Package()+"/.All --es mb_per_h 1500")
	of := func(name string) string { return r.Package() + ":" + name }
	t.Run("java", func(t *testing.T) {
		d := demand(t, r, "--process", of("java"), "--kind", "java", "--json")
		d.assert(t, 0)
		assertSteps(t, d.record, "meminfo complete", "heap complete", "logcat complete", "exit_info complete")
		found(t, d.record, "suspect")
	})
	t.Run("native", func(t *testing.T) {
		d := demand(t, r, "--process", of("native"), "--kind", "native", "--for", "60s", "--json")
		d.assert(t, 0)
		assertSteps(t, d.record, "status complete", "smaps complete", "showmap complete", "maps complete",
			"meminfo complete", "logcat complete", "exit_info complete")
		if f := found(t, d.record, "mapping"); f.Share == nil || *f.Share < 0.8 {
			t.Errorf("%+v grew", f)
		}
	})
	t.Run("thread", func(t *testing.T) {
		d := demand(t, r, "--process", of("thread"), "--kind", "thread", "--for", "60s", "--json")
		d.assert(t, 0)
		if f := found(t, d.record, "threads"); f.Name != "pool-3-thread-*" || *f.CountDelta < 10 {
			t.Errorf("%+v grew", f)
		}
	})
	assertNothingLeft(t, r)
}

// A released build is not debuggable: the diagnosis reports everything that is
// available, and fails if a requested heap dump is missing.
func TestDiagnoseAReleasedApp(t *testing.T) {
	if testing.Short() {
		t.Skip("this test takes ten seconds")
	}
	t.Parallel()
	hostdevicetest.RequireJava(t)
	r := hostdevicetest.StartNested(t,
		hostdevice.Options{Scale: 20, ShellUID: shellUser, AppUID: appUser, BuildType: "user", Released: true})
	r.Must(t, "shell", "am start -n "+r.Package()+"/.All --es mb_per_h 1500")
	of := func(name string) string { return r.Package() + ":" + name }
	t.Run("java", func(t *testing.T) {
		d := demand(t, r, "--process", of("java"), "--kind", "java")
		d.assert(t, 6, "heap skipped: ", "is not debuggable: use a debuggable build")
		assertSteps(t, d.record, "meminfo complete", "heap skipped", "logcat complete", "exit_info complete")
	})
	t.Run("native", func(t *testing.T) {
		d := demand(t, r, "--process", of("native"), "--kind", "native", "--for", "60s")
		d.assert(t, 0, "the library is unknown")
		if f := found(t, d.record, "meminfo"); f.Name != "Native Heap" {
			t.Errorf("%+v grew", f)
		}
	})
	assertNothingLeft(t, r)
}
