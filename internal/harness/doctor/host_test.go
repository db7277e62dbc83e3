package doctor

//unit:listen what listens at an address is what is examined
//unit:sleep bounds a dial that hangs; nothing is measured

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
)

// listen accepts connections and calls talk for each of them until the test
// ends.
func listen(t *testing.T, talk func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				talk(c)
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

// patient holds limits for peers in this process, which always respond, even on
// a busy machine.
var patient = limits{dial: time.Minute, answer: time.Minute, react: time.Minute, program: time.Minute}

// unanswered holds limits for a peer that never answers host:version; deaf
// holds limits for a peer that never sends anything.
var (
	unanswered = limits{dial: time.Minute, answer: 300 * time.Millisecond, react: time.Minute, program: time.Minute}
	deaf       = limits{
		dial: time.Minute, answer: 300 * time.Millisecond, react: 400 * time.Millisecond, program: time.Minute,
	}
)

func TestListenersAtThePort(t *testing.T) {
	fakeADB(t, version41)
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	phones, err := adbd.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer phones.Close()
	dead := listen(t, func(net.Conn) {})
	for name, c := range map[string]struct {
		address string
		limits  limits
		state   ServerState
		status  Status
		parts   []string
	}{
		"adb": {phones.Addr(), patient, Answers, OK, []string{"version 41"}},
		// Another program may already use a port that was just free.
		"nobody": {
			"127.0.0.1:1", patient, Absent, Warn,
			[]string{
				"no adb server at", "no device was checked",
				"run `adb start-server`, or correct ANDROID_ADB_SERVER_PORT",
			},
		},
		"web server": {
			web.Listener.Addr().String(), unanswered, Foreign, Bad,
			[]string{"not an adb server", "HTTP/1.1 400 Bad Request", "ANDROID_ADB_SERVER_PORT="},
		},
		"speaks first": {
			listen(t, func(c net.Conn) { io.WriteString(c, "SSH-2.0-OpenSSH_9.6\r\n"); io.Copy(io.Discard, c) }),
			patient, Foreign, Bad, []string{"SSH-2.0", "choose another port"},
		},
		"hangs up": {dead, patient, Foreign, Bad, []string{"closed the connection"}},
		"sends nothing": {
			listen(t, func(c net.Conn) { io.Copy(io.Discard, c) }), deaf, Silent, Bad,
			[]string{"does not respond", "adb kill-server"},
		},
		"wrong length": {
			listen(t, func(c net.Conn) { io.WriteString(c, "OKAYzzzz0029"); io.Copy(io.Discard, c) }), patient, Foreign,
			Bad, nil,
		},
		"terminal escapes": {
			listen(t, func(c net.Conn) { io.WriteString(c, "\x1b[2J\u202egood\nready: yes"); io.Copy(io.Discard, c) }),
			patient, Foreign, Bad, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := examine(t, at(t, c.address), Options{limits: c.limits})
			expect(t, r, "server", c.status, c.parts...)
			s := r.Host.Server
			if s.State != c.state || s.From != "ANDROID_ADB_SERVER_PORT" || s.Address != c.address ||
				(s.Protocol != nil) != (c.state == Answers) {
				t.Errorf("%+v", s)
			}
			if r.Outcome != NoDevice {
				t.Errorf("outcome %s", r.Outcome)
			}
			if c.state != Answers && (r.Text != find(t, r, "server").Text || len(r.Devices) != 0) {
				t.Errorf("outcome %q, %d devices", r.Text, len(r.Devices))
			}
		})
	}
}

// If a server accepts a connection but never responds, canceling the context
// ends the probe.
func TestProbeEndsWithItsContext(t *testing.T) {
	asked := make(chan struct{}, 1)
	silent := listen(t, func(c net.Conn) {
		io.ReadFull(c, make([]byte, len(versionRequest)))
		asked <- struct{}{}
		io.Copy(io.Discard, c)
	})
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan serverReply, 1)
	endless := limits{dial: time.Hour, answer: time.Hour, react: time.Hour}
	go func() { got <- endless.probeServer(ctx, endless.dialer(silent)) }()
	<-asked
	cancel()
	select {
	case k := <-got:
		if k.state == Answers || k.state == Foreign {
			t.Errorf("%+v", k)
		}
	case <-time.After(time.Minute):
		t.Error("the check did not respect its time limit")
	}
}

func TestServerOfAnotherVersion(t *testing.T) {
	fakeADB(t, "echo Android Debug Bridge version 1.0.32")
	env := serve(t, androidsim.New(androidsim.Options{Serial: "a", Scale: 400}))
	r := examine(t, env, Options{})
	expect(t, r, "adb", OK, "1.0.32")
	expect(t, r, "server", Warn, "version 41", "32", "kills that server", "one adb")
	if *r.Host.ADB.Protocol != 32 || *r.Host.Server.Protocol != 41 || r.Outcome != Usable {
		t.Errorf("%+v", r.Host)
	}
}

func TestPrograms(t *testing.T) {
	env := serve(t, androidsim.New(androidsim.Options{Serial: "a", Scale: 400}))
	nobody := at(t, "127.0.0.1:1")
	t.Setenv("HOME", t.TempDir())
	t.Run("none", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		r := examine(t, nobody, Options{})
		expect(t, r, "adb", Bad, "no adb program in PATH", "install Android platform-tools")
		if r.Outcome != NoDevice || r.Text != find(t, r, "adb").Text || len(r.Host.ADB.Searched) != 1 {
			t.Errorf("%+v", r)
		}
		expect(t, r, "server", Bad, "no adb server at")
	})
	t.Run("no adb program, but a server", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		r := examine(t, env, Options{})
		expect(t, r, "adb", Warn, "could not be restarted")
		expect(t, r, "server", OK)
		if r.Outcome != Usable {
			t.Errorf("%+v", r)
		}
	})
	t.Run("in the SDK", func(t *testing.T) {
		sdk := t.TempDir()
		program(t, filepath.Join(sdk, "platform-tools"), version41)
		t.Setenv("PATH", t.TempDir())
		r := examine(t,
			map[string]string{"ANDROID_ADB_SERVER_PORT": "1", "ANDROID_HOME": t.TempDir(), "ANDROID_SDK_ROOT": sdk},
			Options{})
		expect(t, r, "adb", OK, sdk, "35.0.2")
		if got := strings.Join(r.Host.ADB.Searched, " "); got != "PATH ANDROID_HOME ANDROID_SDK_ROOT" {
			t.Errorf("looked in %s", got)
		}
	})
	t.Run("where Android Studio installs adb", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("the path differs on this system")
		}
		home := t.TempDir()
		program(t, filepath.Join(home, "Android", "Sdk", "platform-tools"), version41)
		t.Setenv("PATH", t.TempDir())
		t.Setenv("HOME", home)
		r := examine(t, nobody, Options{})
		expect(t, r, "adb", Bad, "no adb program in PATH", "add "+home)
	})
	endless := patient
	endless.program = time.Second
	for name, c := range map[string]struct {
		script string
		limits limits
		part   string
	}{
		"fails":         {"exit 3", patient, "exit status 3"},
		"wrong program": {"echo American Dental Board", patient, "American Dental Board"},
		"endless output": {
			"while :; do echo Android Debug Bridge version 1.0.999999999; done", endless, "context deadline exceeded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fakeADB(t, c.script)
			expect(t, examine(t, env, Options{limits: c.limits}), "adb", Warn, c.part, "reinstall")
		})
	}
}

func program(t *testing.T, dir, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the adb program of this test is a shell script")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "adb"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestAddressFromVariables(t *testing.T) {
	phones, err := adbd.Listen(androidsim.New(androidsim.Options{Serial: "a", Scale: 400}))
	if err != nil {
		t.Fatal(err)
	}
	defer phones.Close()
	_, port, _ := net.SplitHostPort(phones.Addr())
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go phones.Serve(l)
	for name, c := range map[string]struct {
		env     map[string]string
		from    string
		outcome Readiness
		parts   []string
	}{
		"socket": {
			map[string]string{"ADB_SERVER_SOCKET": "tcp:" + port, "ANDROID_ADB_SERVER_PORT": "1"}, "ADB_SERVER_SOCKET",
			Usable, nil,
		},
		"unix": {
			map[string]string{"ADB_SERVER_SOCKET": "localfilesystem:" + socket}, "ADB_SERVER_SOCKET", Usable, nil,
		},
		"both variables": {
			map[string]string{"ANDROID_ADB_SERVER_ADDRESS": "127.0.0.1", "ANDROID_ADB_SERVER_PORT": port},
			"ANDROID_ADB_SERVER_ADDRESS and ANDROID_ADB_SERVER_PORT", Usable, nil,
		},
		"invalid port": {
			map[string]string{"ANDROID_ADB_SERVER_PORT": "many"}, "", Misconfigured,
			[]string{"ANDROID_ADB_SERVER_PORT", "1 to 65535"},
		},
		"invalid socket": {
			map[string]string{"ADB_SERVER_SOCKET": "vsock:5"}, "", Misconfigured,
			[]string{"ADB_SERVER_SOCKET", "unsupported"},
		},
		"missing socket": {
			map[string]string{"ADB_SERVER_SOCKET": "localfilesystem:" + socket + "x"}, "ADB_SERVER_SOCKET", NoDevice,
			[]string{"no adb server at", "correct ADB_SERVER_SOCKET"},
		},
	} {
		r := examine(t, c.env, Options{})
		if r.Host.Server.From != c.from || r.Outcome != c.outcome {
			t.Errorf("%s: %s, %+v", name, r.Outcome, r.Host.Server)
		}
		for _, part := range c.parts {
			if !strings.Contains(r.Text+r.Action, part) {
				t.Errorf("%s: no %q in %q, %q", name, part, r.Text, r.Action)
			}
		}
	}
}

func TestAnotherPort(t *testing.T) {
	for _, c := range []struct{ address, from, want string }{
		{"127.0.0.1:5037", "default", "set ANDROID_ADB_SERVER_PORT=5038"},
		{"127.0.0.1:65535", "ANDROID_ADB_SERVER_PORT", "set ANDROID_ADB_SERVER_PORT=5038"},
		{"[::1]:6000", "ADB_SERVER_SOCKET", "set ADB_SERVER_SOCKET=tcp:127.0.0.1:6001"},
	} {
		if got := anotherPort(c.address, c.from); got != c.want {
			t.Errorf("%s: %s", c.address, got)
		}
	}
}

func TestRunsDirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	env := serve(t, androidsim.New(androidsim.Options{Serial: "a", Scale: 400}))
	r := examine(t, env, Options{Dir: filepath.Join(dir, "not", "yet")})
	if s := r.Host.Runs; r.Outcome != Usable || s.FreeBytes == nil && runtime.GOOS != "plan9" || s.FreeBytes != nil &&
		*s.FreeBytes <= 0 {
		t.Errorf("%+v", s)
	}
	if _, err := os.Stat(filepath.Join(dir, "not")); err == nil {
		t.Error("the check created the directory")
	}
	if c := find(t, r, "directory"); !strings.Contains(c.Text, "an 8 h run needs") {
		t.Errorf("%+v", c)
	}
	r = examine(t, env, Options{Dir: filepath.Join(file, "runs")})
	expect(t, r, "directory", Bad, "cannot create", "--out")
	if r.Outcome != Misconfigured {
		t.Errorf("below a file: %s", r.Outcome)
	}
	if os.Getuid() == 0 || runtime.GOOS == "windows" {
		return // root can write anywhere
	}
	r = examine(t, env, Options{Dir: filepath.Join(closed, "runs")})
	expect(t, r, "directory", Bad, "cannot write to", "--out")
	if r.Outcome != Misconfigured || *r.Host.Runs.Writable {
		t.Errorf("%+v", r.Host.Runs)
	}
}

// mayWrite returns the same result as an attempt to create a file.
func TestMayWriteAgainstWriting(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "/proc", "/sys", "/"} {
		writable, known := mayWrite(dir)
		if !known {
			continue
		}
		f, err := os.CreateTemp(dir, "leakgate-doctor-*")
		if err == nil {
			f.Close()
			os.Remove(f.Name())
		}
		// Pseudo file systems refuse root only when a file is created.
		if err == nil && !writable || err != nil && writable && os.Getuid() != 0 {
			t.Errorf("%s: %v, but %v", dir, writable, err)
		}
	}
}

// FuzzParseVersion checks that every parsed value occurs in the text.
func FuzzParseVersion(f *testing.F) {
	f.Add([]byte("Android Debug Bridge version 1.0.41\nVersion 29.0.6-debian\nInstalled as " +
		"/usr/lib/android-sdk/platform-tools/adb\n"))
	f.Add([]byte("Android Debug Bridge version 1.0.32\r\nRevision 09a0d98bebce-android\r\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		protocol, release, ok := parseVersion(out)
		if !ok {
			return
		}
		if protocol < 0 || protocol > 99999 || !strings.Contains(string(out), "version 1.0.") ||
			!strings.Contains(string(out), release) || len(release) > 61 {
			t.Errorf("%d, %q of %q", protocol, release, out)
		}
		if clean(release) != release {
			t.Errorf("release %q is not printable", release)
		}
	})
}

// FuzzUnderstand checks that only a response that follows the protocol is
// attributed to an adb server, and that any other response is kept.
func FuzzUnderstand(f *testing.F) {
	for _, s := range []string{"OKAY00040029", "FAIL0005abcde", "HTTP/1.1 400", "OKAY", "", "OKAY0004zzzz"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		k := understand(answer, io.EOF)
		switch k.state {
		case Answers:
			if !strings.HasPrefix(strings.ToLower(answer), fmt.Sprintf("okay0004%04x", k.protocol)) {
				t.Errorf("%q parsed as version %d", answer, k.protocol)
			}
		case Foreign:
			if k.said != answer {
				t.Errorf("%q kept as %q", answer, k.said)
			}
		default:
			t.Errorf("%q is %s", answer, k.state)
		}
	})
}

// A real server must read the second request of probeServer in the same way as
// the first: four digits, then that number of bytes, and nothing more.
func TestSecondRequestIsTheFirstWithALineEnd(t *testing.T) {
	t.Parallel()
	requests := make(chan string, 4)
	address := listen(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		text, _ := r.ReadString('\n')
		requests <- text
		if strings.HasSuffix(text, "\n") {
			io.WriteString(c, "500 what?\r\n")
		}
	})
	k := unanswered.probeServer(t.Context(), unanswered.dialer(address))
	if k.state != Foreign || k.said != "500 what?\r\n" {
		t.Errorf("%+v", k)
	}
	// The server may notice the end of the first connection only after the
	// second request has been written.
	if seen := map[string]bool{<-requests: true, <-requests: true}; !seen[versionRequest] ||
		!seen[versionRequest+"\r\n"] {
		t.Errorf("requests %v", seen)
	}
}
