package doctor

//unit:listen what listens at an address is what is examined

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
)

// recordingPhone is a phone that is in a given connection state and records its
// commands.
type recordingPhone struct {
	*androidsim.Phone
	state, model string
	// hangs means that no command ends before its connection does.
	hangs bool

	mu       sync.Mutex
	commands []string
	made     []string
}

func (w *recordingPhone) Identity() adbd.Identity {
	id := w.Phone.Identity()
	id.State = w.state
	if w.model != "" {
		id.Model = w.model
	}
	return id
}

func (w *recordingPhone) Shell(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) int {
	w.mu.Lock()
	w.commands = append(w.commands, command)
	w.mu.Unlock()
	// The client still closes abandoned connections.
	if w.hangs && !strings.Contains(command, "kill") {
		<-ctx.Done()
		return 137
	}
	return w.Phone.Shell(ctx, command, stdin, stdout, stderr)
}

func (w *recordingPhone) Create(path string, mode fs.FileMode) (io.WriteCloser, error) {
	w.mu.Lock()
	w.made = append(w.made, path)
	w.mu.Unlock()
	return w.Phone.Create(path, mode)
}

// shop returns an app with one process.
func shop(debuggable bool) []androidsim.App {
	return []androidsim.App{
		{
			Package: "com.shop", Debuggable: debuggable,
			Processes: []androidsim.ProcessSpec{{Name: "com.shop", Models: []androidsim.Model{androidsim.Typical()}}},
		},
	}
}

// serve returns an environment in which the phones are attached to an adb
// server.
func serve(t *testing.T, phones ...adbd.Phone) map[string]string {
	t.Helper()
	server, err := adbd.Listen(phones...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return at(t, server.Addr())
}

func at(t *testing.T, address string) map[string]string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"ANDROID_ADB_SERVER_PORT": port}
}

// inMemory examines phones behind an in-memory adb server, for use in synctest
// bubbles.
func inMemory(t *testing.T, opt Options, phones ...adbd.Phone) Report {
	t.Helper()
	server := adbd.NewServer(phones...)
	defer server.Close()
	opt.dial = server.Dial
	return examine(t, nil, opt)
}

// examine calls Examine with only this environment.
func examine(t *testing.T, env map[string]string, opt Options) Report {
	t.Helper()
	opt.Getenv = func(name string) string { return env[name] }
	opt.StandIn = true
	if opt.limits == (limits{}) {
		opt.limits = patient
	}
	if opt.Dir == "" {
		opt.Dir = filepath.Join(t.TempDir(), "runs")
	}
	r := Examine(t.Context(), opt)
	checkShape(t, r)
	return r
}

// checkShape checks the invariants of every report.
func checkShape(t *testing.T, r Report) {
	t.Helper()
	if r.Schema != Schema || r.Text == "" || r.Outcome != Usable && r.Action == "" {
		t.Errorf("outcome %s: %q, %q", r.Outcome, r.Text, r.Action)
	}
	if !slices.Contains([]Readiness{Usable, NoDevice, Misconfigured, Interrupted}, r.Outcome) {
		t.Errorf("outcome %q", r.Outcome)
	}
	for _, c := range r.Checks {
		if c.Name == "" || c.Text == "" || c.Status == Bad && c.Action == "" {
			t.Errorf("a check without text, or a failed check without an action: %+v", c)
		}
		if (c.Device == "") != (c.Scope == ScopeHost) || (c.Process == "") != (c.Scope != ScopeProcess) {
			t.Errorf("a check with an invalid scope: %+v", c)
		}
	}
	text, data := render(t, r)
	for _, s := range []string{text, data} {
		if i := strings.IndexFunc(s, func(c rune) bool {
			return c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c))
		}); i >= 0 {
			t.Errorf("not printable at %d: %q", i, s[i:min(len(s), i+20)])
		}
	}
	if first, _, _ := strings.Cut(text, "\n"); !strings.HasPrefix(first, "ready: ") &&
		!strings.HasPrefix(first, "not ready: ") || !strings.Contains(first, r.Action) {
		t.Errorf("first line %q", first)
	}
}

func render(t *testing.T, r Report) (text, data string) {
	t.Helper()
	var b strings.Builder
	if err := WriteText(&b, r); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), string(raw)
}

// find returns the check with the given name for the first device or process
// that has one.
func find(t *testing.T, r Report, name string) Item {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	return Item{}
}

// expect checks the status of a check, and that its text and its action contain
// these words.
func expect(t *testing.T, r Report, name string, status Status, parts ...string) {
	t.Helper()
	c := find(t, r, name)
	if c.Status != status {
		t.Errorf("%s is %q, want %q: %+v", name, c.Status, status, c)
	}
	for _, part := range parts {
		if !strings.Contains(c.Text+" do: "+c.Action, part) {
			t.Errorf("%s: no %q in %q, %q", name, part, c.Text, c.Action)
		}
	}
}

// heapDumps holds the expected heap_dump check of each kind of phone.
var heapDumps = map[string]struct {
	status Status
	text   string
}{
	"release app on a user build": {Warn, "install a debuggable build of com.shop"},
	"debuggable app":              {OK, "the app is debuggable"},
	"rooted":                      {OK, "userdebug"},
	"userdebug, not yet root":     {OK, "userdebug"},
	"su":                          {Unknown, "leakgate diagnose"},
	"kernel without smaps_rollup": {OK, "an eng build"},
	"before shell_v2":             {Warn, "not debuggable"},
	"too old":                     {Warn, "not debuggable"},
}

func TestKindsOfPhones(t *testing.T) {
	no := false
	for name, c := range map[string]struct {
		opt    androidsim.Options
		source string
		level  Status
		parts  []string // expected by the level check
		closed []string // sources with a reason
		check  func(*testing.T, Report)
	}{
		"release app on a user build": {
			androidsim.Options{Apps: shop(false)}, "status", Warn,
			[]string{"RssAnon", "install a debuggable build of com.shop"},
			[]string{"smaps_rollup", "su", "run_as", "smaps"},
			func(t *testing.T, r Report) { expect(t, r, "root", OK, "user build") }},
		"debuggable app": {
			androidsim.Options{Apps: shop(true)}, "run_as", OK, []string{"run-as"}, []string{"smaps_rollup", "su"}, nil,
		},
		"rooted": {
			androidsim.Options{Root: true, BuildType: "userdebug", Apps: shop(false)}, "smaps_rollup", OK,
			[]string{"smaps_rollup"}, nil,
			func(t *testing.T, r Report) { expect(t, r, "root", OK, "root; every process") }},
		"userdebug, not yet root": {
			androidsim.Options{BuildType: "userdebug", Apps: shop(false)}, "status", Warn, []string{"run `adb root`"},
			[]string{"smaps_rollup", "su", "run_as", "smaps"},
			func(t *testing.T, r Report) { expect(t, r, "root", Warn, "`adb root`") }},
		"su": {
			androidsim.Options{SU: true, Apps: shop(false)}, "su", OK, []string{"through su"}, []string{"smaps_rollup"},
			func(t *testing.T, r Report) { expect(t, r, "root", OK, "su") }},
		"kernel without smaps_rollup": {
			androidsim.Options{Root: true, BuildType: "eng", SmapsRollup: &no, Apps: shop(false)}, "smaps", OK,
			[]string{"slower"},
			[]string{"smaps_rollup", "su", "run_as"}, func(t *testing.T, r Report) {
				if todo := r.Devices[0].Processes[0].Reasons[0].Action; !strings.Contains(todo, "4.14") {
					t.Errorf("got action %q on an old kernel, want one that names 4.14", todo)
				}
			}},
		"before shell_v2": {
			androidsim.Options{API: 23, Apps: shop(false)}, "dumpsys", Warn,
			[]string{"only dumpsys meminfo", "debuggable"},
			[]string{"smaps_rollup", "su", "run_as", "smaps", "status"}, func(t *testing.T, r Report) {
				expect(t, r, "shell_v2", OK, "no shell_v2")
				if *r.Devices[0].ShellV2 {
					t.Error("has shell_v2")
				}
			}},
		"too old": {androidsim.Options{API: 19, Apps: shop(false)}, "dumpsys", Warn, nil, nil,
			func(t *testing.T, r Report) { expect(t, r, "android", Warn, "older than API 21", "min_api") }},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.opt.Serial, c.opt.Scale, c.opt.Seed = "phone-a", 400, 5
			r := inMemory(t, Options{Patterns: []capture.Pattern{"com.shop*"}}, androidsim.New(c.opt))
			if r.Outcome != Usable || len(r.Devices) != 1 || len(r.Devices[0].Processes) != 1 {
				t.Fatalf("%+v", r)
			}
			d := r.Devices[0]
			p := d.Processes[0]
			if p.Source != c.source || p.Meminfo == nil || p.Meminfo.TotalKB < 1000 || p.Process != "com.shop" ||
				p.PID == 0 {
				t.Errorf("process %+v", p)
			}
			expect(t, r, "memory", c.level, c.parts...)
			dump := heapDumps[name]
			expect(t, r, "heap_dump", dump.status, dump.text)
			expect(t, r, "meminfo", OK, "kB in")
			expect(t, r, "clock_rate", OK, "400")
			expect(t, r, "data", OK, "GB free")
			var closed []string
			for _, reason := range p.Reasons {
				closed = append(closed, reason.Source)
				if reason.Text == "" || reason.Answer != "refused" {
					t.Errorf("reason %+v", reason)
				}
			}
			if c.closed != nil && !reflect.DeepEqual(closed, c.closed) {
				t.Errorf("levels with a reason: %q, want %q", closed, c.closed)
			}
			if d.API == nil || d.UID == nil || d.TimeScale == nil || *d.TimeScale != 400 || d.ClockAhead != nil ||
				d.Up == nil || *d.Up < 3600 || d.Booted == nil || !*d.Booted || d.Model != "Pixel 7" {
				t.Errorf("device %+v", d)
			}
			if c.check != nil {
				c.check(t, r)
			}
			if text, _ := render(t, r); !strings.Contains(text, "\ncom.shop on phone-a\n") || len(c.closed) > 0 &&
				!strings.Contains(text, "not "+c.closed[0]+": ") {
				t.Errorf("text:\n%s", text)
			}
		})
	}
}

func TestWallClockOfADevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			skew   time.Duration
			status Status
			part   string
		}{{0, OK, "matches"}, {time.Hour, Warn, "ahead of"}, {-time.Hour, Warn, "behind"}} {
			r := inMemory(t, Options{Patterns: []capture.Pattern{"com.shop"}},
				androidsim.New(androidsim.Options{Serial: "a", ClockSkew: c.skew}))
			expect(t, r, "clock", c.status, c.part)
			d := r.Devices[0]
			if off := *d.ClockAhead - c.skew.Seconds(); off > *d.ClockWithin+0.01 || -off > *d.ClockWithin+0.01 ||
				*d.ClockWithin < 0.5 {
				t.Errorf("skew %v: %v within %v", c.skew, *d.ClockAhead, *d.ClockWithin)
			}
			if c.skew != 0 {
				expect(t, r, "clock", c.status, "logs", "date and time")
			}
		}
	})
}

func TestStatesOfDevices(t *testing.T) {
	for state, parts := range map[string][]string{
		"unauthorized": {"not authorized", "accept the USB debugging dialog"},
		"offline":      {"not responding", "adb reconnect offline"},
		"recovery":     {"recovery", "adb reboot"},
		"bootloader":   {"bootloader", "fastboot reboot"},
		"elsewhere":    {`"elsewhere"`, "boot it into Android"},
		"no permissions (user in plugdev group; are your udev rules wrong?); see " +
			"[http://developer.android.com/tools/device.html]": {"no permission", "udev"},
	} {
		phone := &recordingPhone{Phone: androidsim.New(androidsim.Options{Serial: "phone-a"}), state: state}
		r := examine(t, serve(t, phone), Options{})
		expect(t, r, "state", Bad, parts...)
		if r.Outcome != NoDevice || r.Devices[0].Usable || r.Action != find(t, r, "state").Action ||
			!strings.Contains(r.Text, "device phone-a") {
			t.Errorf("%s: %+v", state, r)
		}
		if len(phone.commands) > 0 {
			t.Errorf("%s: asked %q", state, phone.commands)
		}
	}
}

func TestDeviceSelection(t *testing.T) {
	scaled := func(serial string) *androidsim.Phone {
		return androidsim.New(androidsim.Options{Serial: serial, Scale: 400})
	}
	off := &recordingPhone{Phone: scaled("phone-c"), state: "offline"}
	three := serve(t, scaled("phone-a"), scaled("phone-b"), off)
	none := serve(t)
	for name, c := range map[string]struct {
		env     map[string]string
		serial  string // ANDROID_SERIAL
		device  string
		outcome Readiness
		devices int
		parts   []string // expected in the text and the action
	}{
		"all": {
			three, "", "", Usable, 3, []string{"2 devices", "phone-a, phone-b", "--device"},
		},
		"one of three":   {three, "", "phone-b", Usable, 1, []string{"phone-b is usable"}},
		"offline device": {three, "", "phone-c", NoDevice, 1, []string{"offline", "reconnect"}},
		"absent device": {
			three, "", "phone-x", NoDevice, 0, []string{"phone-x", "--device", "phone-a", "cable"},
		},
		"network device": {
			three, "", "10.0.0.7:5555", NoDevice, 0, []string{"adb connect 10.0.0.7:5555"},
		},
		"variable":                           {three, "phone-a", "", Usable, 3, []string{"phone-a is usable"}},
		"variable naming the offline device": {three, "phone-c", "", NoDevice, 3, []string{"offline"}},
		"variable naming an absent device": {
			three, "phone-d", "", NoDevice, 3, []string{"phone-d", "ANDROID_SERIAL", "phone-b"},
		},
		"flag before variable": {three, "phone-d", "phone-a", Usable, 1, []string{"phone-a is usable"}},
		"none": {
			none, "", "", NoDevice, 0, []string{"no device is connected", "USB debugging"},
		},
		"absent, no device connected": {none, "phone-d", "", NoDevice, 0, []string{"phone-d", "no other device is"}},
	} {
		env := map[string]string{
			"ANDROID_ADB_SERVER_PORT": c.env["ANDROID_ADB_SERVER_PORT"], "ANDROID_SERIAL": c.serial,
		}
		r := examine(t, env, Options{Device: c.device, Patterns: []capture.Pattern{"com.shop"}})
		if r.Outcome != c.outcome || len(r.Devices) != c.devices {
			t.Errorf("%s: %s with %d devices", name, r.Outcome, len(r.Devices))
		}
		for _, part := range c.parts {
			if !strings.Contains(r.Text+": "+r.Action, part) {
				t.Errorf("%s: no %q in %q, %q", name, part, r.Text, r.Action)
			}
		}
		if here := find(t, r, "devices"); here.Status == OK &&
			(c.serial != "") != strings.Contains(here.Text, "ANDROID_SERIAL selects") && c.device == "" {
			t.Errorf("%s: %+v", name, here)
		}
		if c.serial != "" && r.Host.Environment["ANDROID_SERIAL"] != c.serial {
			t.Errorf("%s: environment %v", name, r.Host.Environment)
		}
	}
}

func TestRunningAndMissingProcesses(t *testing.T) {
	phone := androidsim.New(androidsim.Options{Serial: "phone-a", Scale: 400, Root: true, Apps: []androidsim.App{
		{Package: "com.shop", Processes: []androidsim.ProcessSpec{{Name: "com.shop"}, {Name: "com.shop:push"}}},
		{Package: "org.mail", Processes: []androidsim.ProcessSpec{{Name: "org.mail"}}},
	}})
	env := serve(t, phone)
	r := examine(t, env, Options{Patterns: []capture.Pattern{"com.gone", "com.also*"}})
	expect(t, r, "processes", Warn, "com.gone or com.also*", "start the app")
	if r.Outcome != Usable {
		t.Errorf("%+v", r)
	}
	r = examine(t, env, Options{})
	seen, read := map[string]bool{}, 0
	for _, p := range r.Devices[0].Processes {
		seen[p.Process] = true
		if p.Meminfo != nil {
			read++
		}
	}
	// Without --process, a single dumpsys shows that dumpsys works; no more are
	// run, because each reading costs the app CPU time.
	if !seen["com.shop"] || !seen["com.shop:push"] || !seen["org.mail"] || read != 1 {
		t.Errorf("processes %v, %d read by dumpsys, want 1", seen, read)
	}
	if !phone.Freeze("org.mail", true) {
		t.Fatal("org.mail is not running")
	}
	r = examine(t, env, Options{Patterns: []capture.Pattern{"org.mail"}})
	expect(t, r, "meminfo", Warn, "foreground")
	expect(t, r, "memory", OK)
}

// doctor names the processes of the app that a run would not watch.
func TestUnwatchedProcesses(t *testing.T) {
	for patterns, want := range map[string]string{
		"com.shop com.shop:*":           "com.shop.remote",
		"com.shop":                      "com.shop.remote, com.shop:push",
		"com.shop*":                     "",
		"":                              "com.shop.remote",
		"com.shop:push com.shop.remote": "",
	} {
		synctest.Test(t, func(t *testing.T) {
			opt := Options{}
			for word := range strings.FieldsSeq(patterns) {
				opt.Patterns = append(opt.Patterns, capture.Pattern(word))
			}
			r := inMemory(t, opt, androidsim.New(androidsim.Options{Root: true, Apps: []androidsim.App{
				{Package: "com.shop", Processes: []androidsim.ProcessSpec{
					{Name: "com.shop"}, {Name: "com.shop:push"}, {Name: "com.shop.remote"},
				}},
				{Package: "org.mail", Processes: []androidsim.ProcessSpec{{Name: "org.mail"}}},
			}}))
			if want != "" {
				expect(t, r, "processes", Warn, "not matched by a name: "+want+" do: to watch them")
			} else if slices.ContainsFunc(r.Checks, func(c Item) bool { return c.Name == "processes" }) {
				t.Errorf("%q: %+v", patterns, r.Checks)
			}
		})
	}
}

func TestManyProcessesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := androidsim.App{Package: "com.many"}
		for i := range maxProcesses + 5 {
			app.Processes = append(app.Processes, androidsim.ProcessSpec{Name: fmt.Sprintf("com.many:p%02d", i)})
		}
		r := inMemory(t, Options{Patterns: []capture.Pattern{"com.many:*"}},
			androidsim.New(androidsim.Options{Root: true, Apps: []androidsim.App{app}}))
		if n := len(r.Devices[0].Processes); n != maxProcesses {
			t.Errorf("%d processes", n)
		}
		expect(t, r, "processes", Unknown, "5 more processes", "--process")
	})
}

// readOnly lists the words that a command for a device may contain: programs,
// builtins and shell syntax around them.
var readOnly = map[string]bool{
	"echo": true, "cat": true, "id": true, "getprop": true, "grep": true, "date": true, "df": true, "dumpsys": true,
	"ps":      true,
	"pm list": true, "command -v": true, "run-as": true, "su": true, "exec": true, "for": true, "if": true,
	"then": true, "fi": true, "done": true, "kill": true,
}

var (
	quotedText  = regexp.MustCompile(`'[^']*'`)
	substitute  = regexp.MustCompile(`\$\{[^}]*\}|\$\(\([a-z0-9+]*\)\)`)
	harmless    = regexp.MustCompile(`2>&1|</dev/null|2>/dev/null|>&2`)
	commandWord = regexp.MustCompile(`(?:^|[;|&(])\s*(?:do\s+)?([a-z][a-z-]*)( list| -v)?(=)?`)
)

// changes returns the parts of a command that are not known to be read-only.
func changes(command string) []string {
	bare := harmless.ReplaceAllString(substitute.ReplaceAllString(quotedText.ReplaceAllString(command, "Q"), "V"), "")
	var out []string
	if strings.ContainsAny(bare, "<>`") {
		out = append(out, "a redirection in "+bare)
	}
	for _, m := range commandWord.FindAllStringSubmatch(bare, -1) {
		if m[3] == "" && !readOnly[m[1]] && !readOnly[m[1]+m[2]] {
			out = append(out, m[1]+m[2])
		}
	}
	return out
}

func TestChangesAreDetected(t *testing.T) {
	for command, want := range map[string]bool{
		"cat /proc/uptime; id": false, "echo x > /data/f": true, "rm -r /data": true, "cat a; touch b": true,
		"pm list packages": false,
		"pm clear com.x":   true, "echo $(am start x)": true, "for f in a; do setprop x y; done": true,
		"kill -9 5":     false,
		"command -v su": false, "command rm x": true, "cat a | tee b": true, "grep x `reboot`": true, "date +%s": false,
		"su -c 'cat x'": false,
	} {
		if got := changes(command); (len(got) > 0) != want {
			t.Errorf("%q: %q", command, got)
		}
	}
}

// snapshot returns a list of all files below the given directories of this
// machine.
func snapshot(t *testing.T, dirs ...string) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range dirs {
		err := filepath.Walk(dir, func(path string, info fs.FileInfo, err error) error {
			if err != nil {
				return err
			}
			fmt.Fprintln(&b, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// fakeADB returns an adb program that records its calls; it is the only program
// in PATH.
func fakeADB(t *testing.T, script string) (calls func() string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the adb program of this test is a shell script")
	}
	dir, log := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	text := "#!/bin/sh\necho \"$*\" >>" + log + "\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, "adb"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	return func() string {
		text, err := os.ReadFile(log)
		if err != nil {
			return ""
		}
		return string(text)
	}
}

const version41 = "echo Android Debug Bridge version 1.0.41; echo Version 35.0.2-12147458"

// recordingConn records the requests that reach a server.
type recordingConn struct {
	net.Conn
	mu   *sync.Mutex
	sent *strings.Builder
}

func (w recordingConn) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent.Write(p[:n])
	return n, err
}

func (w recordingConn) CloseWrite() error {
	return w.Conn.(interface{ CloseWrite() error }).CloseWrite()
}

// The examination does not change this machine, the adb server or the device.
func TestNothingChanges(t *testing.T) {
	phone := &recordingPhone{
		Phone: androidsim.New(androidsim.Options{Serial: "phone-a", Scale: 400, SU: true, Apps: shop(true)}),
	}
	var mu sync.Mutex
	var sent strings.Builder
	server := adbd.NewServer(phone)
	server.Wire = func(c net.Conn) net.Conn { return recordingConn{c, &mu, &sent} }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	calls := fakeADB(t, version41)
	home, work, temp := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("TMPDIR", temp)
	t.Chdir(work)
	before, files := snapshot(t, home, work, temp), phoneFiles(t, phone)
	for _, opt := range []Options{
		{Dir: "leakgate-runs"}, {Dir: "leakgate-runs", Patterns: []capture.Pattern{"com.shop"}},
	} {
		if r := examine(t, at(t, l.Addr().String()), opt); r.Outcome != Usable || len(r.Devices[0].Processes) == 0 {
			t.Errorf("%+v", r)
		}
	}
	// Nothing is changed if no server is running, either.
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if r := examine(t, at(t, l.Addr().String()), Options{Dir: "leakgate-runs"}); r.Outcome != NoDevice {
		t.Errorf("%+v", r)
	}
	if after := snapshot(t, home, work, temp); after != before {
		t.Errorf("files on this machine before:\n%s\nafter:\n%s", before, after)
	}
	if after := phoneFiles(t, phone); after != files || len(phone.made) > 0 {
		t.Errorf("files on the phone before:\n%s\nafter:\n%s\ncreated %q", files, after, phone.made)
	}
	if got := calls(); got != "version\nversion\nversion\n" {
		t.Errorf("the adb program was called with %q", got)
	}
	if nc, err := net.Dial("tcp", l.Addr().String()); err == nil {
		nc.Close()
		t.Error("a server was started")
	}
	if len(phone.commands) < 10 {
		t.Errorf("only %d commands", len(phone.commands))
	}
	for _, command := range phone.commands {
		if found := changes(command); len(found) > 0 {
			t.Errorf("%q holds %q", command, found)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, request := range regexp.MustCompile(
		`[0-9a-f]{4}(host[a-z-]*:[a-z-]*|shell|exec|sync|root|reboot|remount|tcpip|usb)`).
		FindAllStringSubmatch(sent.String(), -1) {
		switch request[1] {
		case "host:version", "host:devices-l", "host:transport", "host-serial:phone-a", "shell":
		default:
			t.Errorf("requested %q from the server", request[0])
		}
	}
}

func phoneFiles(t *testing.T, phone adbd.Phone) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range []string{"/data/local/tmp", "/sdcard", "/data"} {
		infos, err := phone.ReadDir(dir)
		for _, info := range infos {
			fmt.Fprintln(&b, dir, info.Name(), info.Size())
		}
		if err != nil {
			fmt.Fprintln(&b, dir, err)
		}
	}
	return b.String()
}

// A device that hangs is abandoned after its own deadline, and does not delay
// the others.
func TestDeviceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := &recordingPhone{Phone: androidsim.New(androidsim.Options{Serial: "hung"}), hangs: true}
		well := androidsim.New(androidsim.Options{Serial: "well", Scale: 1000, Root: true, Apps: shop(false)})
		began := time.Now()
		r := inMemory(t, Options{Patterns: []capture.Pattern{"com.shop"}, Deadline: time.Second}, hung, well)
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("took %v", took)
		}
		if r.Outcome != Usable || r.Devices[0].Usable || len(r.Devices[1].Processes) != 1 {
			t.Errorf("%+v", r)
		}
		expect(t, r, "state", Bad, "its shell did not respond", "adb reconnect")
	})
}

// hangingPhone is a phone on which commands that contain a given string hang.
type hangingPhone struct {
	*androidsim.Phone
	from string
}

func (h *hangingPhone) Shell(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) int {
	if strings.Contains(command, h.from) && !strings.Contains(command, "kill") {
		<-ctx.Done()
		return 137
	}
	return h.Phone.Shell(ctx, command, stdin, stdout, stderr)
}

// Values that were read before a device hung are reported, and all others are
// unknown. Five devices hang concurrently, each at a different command, and all
// are abandoned within one deadline.
func TestDeviceThatHangsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := map[string]string{
			"condition": "df /data", "clock": "date +%s", "processes": "/proc/[0-9]*/cmdline", "memory": "grep -E",
			"meminfo": "dumpsys -t",
		}
		var phones []adbd.Phone
		for name, command := range from {
			phones = append(phones,
				&hangingPhone{androidsim.New(androidsim.Options{Serial: name, Apps: shop(true)}), command})
		}
		began := time.Now()
		r := inMemory(t, Options{Patterns: []capture.Pattern{"com.shop"}, Deadline: 1500 * time.Millisecond}, phones...)
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("took %v", took)
		}
		for _, d := range r.Devices {
			if !d.Usable || d.Model != "Pixel 7" {
				t.Errorf("%+v", d)
			}
			for _, name := range []string{d.Serial, "time"} {
				if !slices.ContainsFunc(r.Checks,
					func(c Item) bool { return c.Device == d.Serial && c.Name == name && c.Status == Unknown }) {
					t.Errorf("%s: no check %s with status unknown in %+v", d.Serial, name, r.Checks)
				}
			}
		}
	})
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	phone := &recordingPhone{Phone: androidsim.New(androidsim.Options{Serial: "hung"}), hangs: true}
	env := serve(t, phone)
	r := Examine(ctx,
		Options{Dir: t.TempDir(), Getenv: func(name string) string { return env[name] }, Progress: func(text string) {
			if text == "hung" {
				cancel()
			}
		}})
	if r.Outcome != Interrupted {
		t.Errorf("%+v", r)
	}
	checkShape(t, r)
}

// Whatever name a device sends, the terminal shows it as plain text.
func TestHostileTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const evil = "Evil\x1b[2J\u202e\u200f\u009b31m\u2066\nready: all is well\x07"
		phone := &recordingPhone{
			Phone: androidsim.New(
				androidsim.Options{
					Serial: "phone-a", Model: evil, Manufacturer: evil + strings.Repeat("x", 5000), BuildType: evil,
					Scale: 400, Apps: shop(true),
				}),
			model: evil,
		}
		state := &recordingPhone{
			Phone: androidsim.New(androidsim.Options{Serial: "phone-\x1b[31m\u202e" + strings.Repeat("y", 3000)}),
			state: "\x1b[2J\u202e",
		}
		r := inMemory(t, Options{Patterns: []capture.Pattern{"com.shop"}}, phone, state)
		text, _ := render(t, r)
		if strings.Count(text, "\nready: ") > 0 || !strings.HasPrefix(text, "ready: device phone-a is usable\n") {
			t.Errorf("%s", text)
		}
		if !strings.Contains(text, "Evil?[2J") || len(text) > 20000 {
			t.Errorf("%d bytes: %s", len(text), text)
		}
	})
}

// The documentation page lists exactly the fields of the JSON form.
func TestPageNamesEveryField(t *testing.T) {
	page, err := os.ReadFile("../../../docs/formats/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(typ.Elem())
		case reflect.Struct:
			for f := range typ.Fields() {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				fields[name] = true
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[Report]())
	for name := range fields {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not document %s", name)
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(string(page), -1) {
		for _, word := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(m[1], -1) {
			if !fields[word[1]] {
				t.Errorf("the page documents %s, which is not a field", word[1])
			}
		}
	}
	// Values of fields, and names of checks.
	for _, word := range []string{
		"usable", "no_device", "misconfigured", "interrupted", "answers", "absent", "unreachable", "foreign", "silent",
		"ok", "warn", "bad", "unknown",
		"adb", "server", "devices", "directory", "state", "android", "clock_rate", "shell_v2", "boot", "data",
		"battery", "root", "clock", "processes", "memory", "heap_dump", "meminfo", "condition", "time"} {
		if !strings.Contains(string(page), "`"+word+"`") {
			t.Errorf("the page does not explain %s", word)
		}
	}
}
