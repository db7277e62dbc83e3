//go:build unix

package main

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// bankSecret is what another app logs; bankName is its package.
	bankSecret = "token=ghp_SECRET password=hunter2"
	bank       = "com.bank"
	// pin and password are strings that users typed into the app.
	pin, password = "481516", "alice-the-user"
)

// A run that finds a leak and keeps a stripped dump leaves no file that other
// users can read, and no data about the host or about other apps.
func TestRunIsPrivate(t *testing.T) {
	for name, c := range map[string]struct {
		umask int
		// dirMode is the mode of the directory if it exists before the run,
		// otherwise 0.
		dirMode fs.FileMode
	}{"umask 022": {0o022, 0}, "umask 077": {0o077, 0},
		"umask 022 in a directory that others may enter": {0o022, 0o755}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newPrivateHost(t)
				dir := filepath.Join(h.home, "runs", "tonight")
				if c.dirMode != 0 {
					dir = filepath.Join(h.home, "there")
					if err := os.Mkdir(dir, c.dirMode); err != nil {
						t.Fatal(err)
					}
				}
				h.run(t, c.umask, dir, deviceWork)
				h.assertPrivateRun(t, dir, c.dirMode)
			})
		})
	}
}

// This shows that the other tests would detect a violation.
func TestRunThatKeepsAllIsNotPrivate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPrivateHost(t)
		dir := filepath.Join(h.home, "run")
		h.run(t, 0o022, dir, deviceWork, "--keep", "raw", "--logcat", "all")
		found := false
		for path, content := range h.contents(t, dir) {
			found = found || strings.HasSuffix(path, "logcat.txt") && bytes.Contains(content, []byte(bankSecret))
		}
		if !found {
			t.Error("the log of the phone does not contain the secret")
		}
		if dumps, texts := h.textsOfDumps(t, dir); dumps == 0 || texts == 0 {
			t.Errorf("got %d dumps, %d strings with a hash code, want some of each", dumps, texts)
		}
	})
}

// Errors of a workload do not contain paths of the host.
func TestRunOfMissingWorkloadIsPrivate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPrivateHost(t)
		dir := filepath.Join(h.home, "run")
		phones := attach(t, shop("phone-a"))
		config := write(t, "version: 1\napp: { package: com.shop }\nworkload: { command: ["+
			filepath.Join(h.home, "secret-project", "run.sh")+"] }\nduration: 2m\n")
		if code, out, errOut := phones.typed(t, "run", config, "--out", dir); code == exitOK {
			t.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		for path, content := range h.contents(t, dir) {
			h.assertClean(t, path, content)
			if bytes.Contains(content, []byte("secret-project")) {
				t.Errorf("%s contains the path of the workload", path)
			}
		}
	})
}

// privateHost is a host whose names must not be in a run.
type privateHost struct {
	home, temp string
	secrets    []string
}

func newPrivateHost(t *testing.T) *privateHost {
	t.Helper()
	h := &privateHost{
		home: filepath.Join(t.TempDir(), "home-of-alice"), temp: filepath.Join(t.TempDir(), "temp-of-alice"),
	}
	for _, dir := range []string{h.home, h.temp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", h.home)
	t.Setenv("TMPDIR", h.temp)
	t.Setenv("USER", "alice-the-user")
	t.Setenv("LOGNAME", "alice-the-user")
	h.secrets = []string{
		h.home, h.temp, filepath.Dir(h.home), "-of-alice", "alice-the-user", "ghp_SECRET", "hunter2", bank,
	}
	names := []string{}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	if u, err := user.Current(); err == nil {
		names = append(names, u.Username, u.HomeDir)
	}
	for _, name := range names {
		if len(name) > 5 { // root and vm are common words
			h.secrets = append(h.secrets, name)
		}
	}
	return h
}

// These are the workloads of a run with a leak: one on the device, with the
// clock of a synctest bubble, and one on the host. Each takes about 50 minutes
// of device time.
const (
	deviceWork = "{ device_command: 'echo a step; sleep 3000' }"
	hostWork   = "{ command: [/bin/sh, -c, 'echo a step; sleep 7.5'] }"
)

// run executes a run with a leak, on a phone on which another app logs secrets.
func (h *privateHost) run(t *testing.T, umask int, dir, workload string, flags ...string) {
	t.Helper()
	apps := func(name string, models ...androidsim.Model) androidsim.App {
		models = append([]androidsim.Model{androidsim.Typical(), androidsim.Noise(2, 0.3)}, models...)
		return androidsim.App{
			Package: name, Debuggable: true,
			Processes: []androidsim.ProcessSpec{{Name: name, RestartAfter: time.Second, Models: models}},
		}
	}
	phone := androidsim.New(androidsim.Options{
		Serial: "phone-a", API: 30, Scale: 400, Seed: 5, Root: true, BuildType: "userdebug",
		Apps: []androidsim.App{apps("com.shop", androidsim.Leak(androidsim.Java, 300, 0)), apps(bank)},
		// The dump is small, and the key of a map in it is a PIN, whose hash
		// code is therefore set.
		DumpHeap: func(w io.Writer, d androidsim.Heap) error {
			heap := hproftest.Android(hproftest.Phone{SDK: d.API, Process: d.Process})
			heap.Hold("com.shop.Screens", "sAll",
				heap.ArrayList(heap.Activity("com.shop.DetailActivity", hproftest.Destroyed).Ref).Ref)
			heap.Hold("com.shop.Login", "sPins", heap.HashMap(heap.String(pin), heap.String(password)))
			_, err := io.Copy(w, heap.Reader(hproftest.Form{}))
			return err
		},
	})
	phone.Shell(t.Context(), "log -t Bank '"+bankSecret+" of com.shop'; log -t ActivityManager 'START u0 {dat="+bank+
		"?"+bankSecret+"}'", strings.NewReader(""), io.Discard, io.Discard)
	phone.Kill(bank)
	phones := attach(t, phone)
	config := write(t, "version: 1\napp: { package: com.shop }\nworkload: "+workload+"\nduration: 1h\n")
	before := syscall.Umask(umask)
	code, out, errOut := phones.typed(t, append([]string{"run", config, "--out", dir}, flags...)...)
	syscall.Umask(before)
	if code != record.ExitLeak || !strings.Contains(out, "heap") {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
}

// assertPrivateRun expects no files that other users may read, no data about
// the host or other apps, and nothing that users typed.
func (h *privateHost) assertPrivateRun(t *testing.T, dir string, dirMode fs.FileMode) {
	t.Helper()
	assertOwnersAlone(t, dir, dirMode)
	for path, content := range h.contents(t, dir) {
		h.assertClean(t, path, content)
	}
	if dumps, texts := h.textsOfDumps(t, dir); dumps == 0 || texts > 0 {
		t.Errorf("%d strings in %d dumps have a hash code, which reveals short strings", texts, dumps)
	}
}

// assertOwnersAlone expects that other users cannot read or enter anything. If
// the directory existed before the run, dirMode is its mode; otherwise it is 0.
func assertOwnersAlone(t *testing.T, dir string, dirMode fs.FileMode) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if path == dir && dirMode != 0 {
			if err == nil && info.Mode().Perm() != dirMode {
				t.Errorf("the mode of %s changed to %v, want %v", path, info.Mode(), dirMode)
			}
			return err
		}
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// contents returns the contents of the files in a directory, both as they are
// and decompressed.
func (h *privateHost) contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if out[path], err = os.ReadFile(path); err != nil {
			return err
		}
		if !strings.HasSuffix(path, spool.PackedSuffix) {
			return nil
		}
		f, err := spool.Open(t.Context(), path, nil, spool.Options{})
		if err != nil {
			return err
		}
		defer f.Close()
		out[path+" unpacked"], err = io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
		return err
	})
	if err != nil || len(out) < 3 {
		t.Fatalf("%d files, %v", len(out), err)
	}
	return out
}

func (h *privateHost) assertClean(t *testing.T, path string, content []byte) {
	t.Helper()
	utf16 := func(s string) []byte {
		var b []byte
		for _, c := range []byte(s) {
			b = append(b, 0, c)
		}
		return b
	}
	for _, secret := range h.secrets {
		at := bytes.Index(content, []byte(secret))
		if at < 0 {
			at = bytes.Index(content, utf16(secret))
		}
		if at >= 0 {
			t.Errorf("%s contains %q: %q", path, secret, content[max(0, at-60):min(len(content), at+len(secret)+20)])
		}
	}
}

// textsOfDumps counts the dumps of a run and the Strings in these dumps that
// have a hash code. A hash code reveals numbers of up to six digits, and allows
// words and names to be guessed.
func (h *privateHost) textsOfDumps(t *testing.T, dir string) (dumps, texts int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "artifacts", "*", "*", "heap.hprof*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, ".txt") {
			continue
		}
		dumps++
		code, out, errOut := typed(t,
			nil, "objects", path, "--class", "java.lang.String", "--where", "hash!=0", "--json")
		if code != 0 {
			t.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		texts += strings.Count(out, `"object":`)
	}
	return dumps, texts
}
