package shim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

var properties = []state.Property{
	{Key: "ro.a", Value: "1"}, {Key: "ro.build.version.sdk", Value: "34"},
	{Key: state.PackageProperty, Value: "com.example.leaky"},
}

// call runs a command of a device that consists only of its files.
func call(t *testing.T, name string, args ...string) (out, errs string, exit int) {
	t.Helper()
	dir := state.Dir(t.TempDir())
	if err := dir.WriteProperties(properties); err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteClock(state.Clock{Scale: 20}); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	exit = commands[name](command{dir: dir, args: args, out: &o, err: &e})
	return o.String(), e.String(), exit
}

func TestGetprop(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"ro.a"}, "1\n"},
		{[]string{"ro.b"}, "\n"},
		{[]string{"ro.b", "other"}, "other\n"},
		{nil, "[ro.a]: [1]\n[ro.build.version.sdk]: [34]\n[leakgate.package]: [com.example.leaky]\n"},
	} {
		if out, _, exit := call(t, "getprop", c.args...); out != c.want || exit != 0 {
			t.Errorf("%q: %q, exit %d; want %q", c.args, out, exit, c.want)
		}
	}
}

// TestMonkey checks that 1000 events of 300 ms take 300 s of device time, which
// is 15 s at scale 20.
func TestMonkey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		args := strings.Fields("-p com.example.leaky -s 7 --throttle 300 --ignore-crashes --pct-touch 50 -v 1000")
		out, errs, exit := call(t, "monkey", args...)
		if exit != 0 || errs != "" {
			t.Errorf("exit %d, %q", exit, errs)
		}
		if took := time.Since(began); took != 15*time.Second {
			t.Errorf("took %v", took)
		}
		for _, want := range []string{
			":Monkey: seed=7 count=1000\n", ":AllowPackage: com.example.leaky\n", "    // Sending event #900\n",
			"Events injected: 1000\n", "elapsed time=300000ms", "// Monkey finished\n",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("output lacks %q:\n%s", want, out)
			}
		}
	})
}

func TestMonkeyRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		exit int
		want string
	}{
		{[]string{"-p", "com.other", "5"}, 252, "No activities found"},
		{[]string{"-v"}, 255, "Count not specified"},
		{nil, 255, "Count not specified"},
		{[]string{"-x", "1", "5"}, 255, "Unknown option: -x"},
		{[]string{"-s", "5"}, 255, "Count not specified"},
		{[]string{"5", "-s"}, 255, "needs a value"},
		{[]string{"-s", "1", "x"}, 255, "Count is not a number"},
		{[]string{"--throttle", "-5", "5"}, 255, "out of range"},
	} {
		out, errs, exit := call(t, "monkey", c.args...)
		if exit != c.exit || !strings.Contains(out+errs, c.want) {
			t.Errorf("%q: exit %d, %q", c.args, exit, out+errs)
		}
	}
}

func TestPidof(t *testing.T) {
	self := os.Args[0]
	if out, _, exit := call(t, "pidof", self); exit != 0 ||
		!strings.Contains(" "+strings.TrimSpace(out)+" ", fmt.Sprintf(" %d ", os.Getpid())) {
		t.Errorf("%q, exit %d", out, exit)
	}
	if out, _, exit := call(t, "pidof", "no.such.process"); out != "" || exit != 1 {
		t.Errorf("missing process: %q, exit %d", out, exit)
	}
}

func TestPs(t *testing.T) {
	pid := fmt.Sprint(os.Getpid())
	for _, args := range [][]string{
		{"-A", "-o", "PID,UID,NAME"}, {"-A", "-oPID,UID", "-o", "NAME"}, {"-o", "pid,uid,name", "-p", pid},
	} {
		out, errs, exit := call(t, "ps", args...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if exit != 0 || errs != "" || strings.Join(strings.Fields(lines[0]), " ") != "PID UID NAME" {
			t.Fatalf("%q: %q, %q, exit %d", args, lines[0], errs, exit)
		}
		found := false
		for _, line := range lines[1:] {
			f := strings.Fields(line)
			found = found || len(f) == 3 && f[0] == pid && f[1] == fmt.Sprint(os.Getuid()) && f[2] == os.Args[0]
		}
		if !found {
			t.Errorf("%q does not list %s %s:\n%s", args, pid, os.Args[0], out)
		}
	}
	if _, errs, exit := call(t, "ps", "-A", "-o", "PID,NOPE"); exit != 1 || !strings.Contains(errs, "NOPE") {
		t.Errorf("invalid column: %q, exit %d", errs, exit)
	}
	if _, errs, exit := call(t, "ps", "-Z"); exit != 1 || errs == "" {
		t.Errorf("invalid option: %q, exit %d", errs, exit)
	}
}

func TestUserName(t *testing.T) {
	for uid, want := range map[int]string{
		0: "root", 2000: "shell", 10123: "u0_a123", 1010005: "u10_a5", 4000000000: "4000000000",
	} {
		if got := userName(uid); got != want {
			t.Errorf("%d: %s, want %s", uid, got, want)
		}
	}
}

func TestShowmapRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"x"}, {"-1"}, {"1", "2"}} {
		if _, errs, exit := call(t, "showmap", args...); exit != 1 || !strings.Contains(errs, "PID") {
			t.Errorf("%q: %q, exit %d", args, errs, exit)
		}
	}
	if _, errs, exit := call(t, "showmap", "1073741824"); exit != 1 ||
		errs != "Failed to parse file /proc/1073741824/smaps\n" {
		t.Errorf("missing process: %q, exit %d", errs, exit)
	}
}

// TestNames checks that the real cat is used at scale 1, and that commands do
// not hide tools of this machine other than cat and ps.
func TestNames(t *testing.T) {
	if slices.Contains(Names(1), "cat") || !slices.Contains(Names(20), "cat") || len(Names(20)) != len(Names(1))+1 {
		t.Errorf("got names %q at scale 1 and %q at scale 20", Names(1), Names(20))
	}
	for _, tool := range Tools() {
		if IsCommand(tool) && tool != "cat" {
			t.Errorf("%s is both a tool and a command", tool)
		}
		if tool == "su" || tool == "adb" {
			t.Errorf("Tools contains %s, which the shell of a phone lacks", tool)
		}
	}
}

func TestOutsideDevice(t *testing.T) {
	t.Setenv(state.Variable, "")
	if exit := Run([]string{filepath.Join("x", "getprop")}); exit != 1 {
		t.Errorf("exit %d", exit)
	}
}
