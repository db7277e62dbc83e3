package diagnose

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/androidsim"
)

// TestLogcatOfTheApp: log lines of other apps are kept only if the whole log is
// requested.
func TestLogcatOfTheApp(t *testing.T) {
	for _, api := range []int{21, 34} {
		for mode, secret := range map[KeptLog]bool{"": false, LogcatApp: false, LogcatAll: true, LogcatNone: false} {
			t.Run(fmt.Sprint(api, " ", mode), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { keepLog(t, api, mode, secret) })
			})
		}
	}
}

func keepLog(t *testing.T, api int, mode KeptLog, secret bool) {
	d, facts, r := debuggable(api).begin(t)
	d.Phone.Shell(t.Context(),
		"log -t Bank 'token=ghp_SECRET of com.shop'; log -t ActivityManager 'Killing 77:com.bank/u0a7: ghp_SECRET'",
		strings.NewReader(""), io.Discard, io.Discard)
	time.Sleep(5 * time.Minute) // until each process has logged a garbage collection
	found, err := capture.FindProcesses(t.Context(), d, []capture.Pattern{"com.shop:push"})
	if err != nil || len(found.Processes) != 1 {
		t.Fatal(found, err)
	}
	push := found.Processes[0]
	r.App, r.Logcat = []KnownProcess{{Process: push}}, mode
	got, err := collect(t, t.Context(), d, facts, r, "thread")
	if err != nil {
		t.Fatal(err)
	}
	o := outcome(t, got, "logcat")
	if mode == LogcatNone {
		if o.Ending != Skipped || !strings.Contains(strings.Join(o.Reasons, ""), "logcat: none") {
			t.Errorf("%+v", o)
		}
		return
	}
	text, err := os.ReadFile(filepath.Join(r.Dir, o.File))
	if err != nil {
		t.Fatal(err)
	}
	if has := strings.Contains(string(text), "SECRET"); has != secret || o.Ending != Complete {
		t.Errorf("%+v, contains the secret: %v:\n%s", o, has, text)
	}
	if kept := len(o.Reasons) == 1 &&
		strings.HasSuffix(o.Reasons[0], " lines kept: only those about the app"); kept == secret {
		t.Errorf("reasons %q", o.Reasons)
	}
	for _, p := range []capture.Process{r.Process, push} {
		if !strings.Contains(string(text), fmt.Sprintf(" %5d ", p.PID)) {
			t.Errorf("the log contains no line of %s, pid %d:\n%s", p.Name, p.PID, text)
		}
	}
}

// TestOtherAppsAreNotKept: lines about other apps are removed from all other
// device-wide output, too.
func TestOtherAppsAreNotKept(t *testing.T) {
	for _, api := range []int{28, 34} {
		synctest.Test(t, func(t *testing.T) { keepOwn(t, api) })
	}
}

func keepOwn(t *testing.T, api int) {
	s := debuggable(api)
	s.options.Apps = []androidsim.App{
		{
			Package: "com.bank",
			Processes: []androidsim.ProcessSpec{
				{Name: "com.bank", RestartAfter: time.Second, Models: []androidsim.Model{androidsim.Typical()}},
			},
		},
	}
	d, facts, r := s.begin(t)
	if !d.Kill("com.bank") {
		t.Error("com.bank is not running")
	}
	time.Sleep(time.Minute)
	got, err := collect(t, t.Context(), d, facts, r, "gpu")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range got.Steps {
		if o.File == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(r.Dir, o.File))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "com.bank") {
			t.Errorf("%s contains other apps:\n%s", o.Step, text)
		}
	}
	if api < 31 {
		return
	}
	text, err := os.ReadFile(filepath.Join(r.Dir, "gpu.txt"))
	if err != nil || strings.Count(string(text), "Proc ") != 1 ||
		!strings.Contains(string(text), fmt.Sprintf("Proc %d total: ", r.Process.PID)) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestHeldTextIsNotOnTheDisk: if a run is killed while it reads a log, no part
// of the log remains on the disk.
func TestHeldTextIsNotOnTheDisk(t *testing.T) {
	a, err := newArtifact(t.TempDir(), "x", 100)
	if err != nil {
		t.Fatal(err)
	}
	defer a.discard()
	a.hold()
	if _, err := a.Write([]byte("token=ghp_SECRET")); err != nil || a.size != 16 {
		t.Error(a.size, err)
	}
	if text, err := os.ReadFile(a.file.Name()); err != nil || len(text) > 0 {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := a.Write(make([]byte, 100)); err == nil {
		t.Error("an artifact accepted more bytes than its limit")
	}
}
