package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
)

const (
	installADB = "install Android platform-tools (Debian: package adb; macOS: brew install android-platform-tools; " +
		"or Android Studio) and add adb to PATH"
	connectOne = "connect a device with USB debugging on (Settings, Developer options), or start an emulator; `adb " +
		"devices` must list it"
)

// host examines this machine and returns the devices that its server lists.
// settled is false if a setting or the directory would stop every run.
func (e *examination) host(ctx context.Context) (devices []adb.DeviceInfo, settled bool) {
	e.report.Host = Host{System: runtime.GOOS + "/" + runtime.GOARCH, Environment: e.environment()}
	devices, settled = e.adb(ctx)
	return devices, e.directory() && settled
}

// adb examines the adb program, the server, and its list of devices.
func (e *examination) adb(ctx context.Context) (devices []adb.DeviceInfo, settled bool) {
	client, err := adb.NewClient(adb.Options{
		NoStart: true, NoConnect: true, AnswerTimeout: e.opt.limits.answer, MaxStream: maxStream, Getenv: e.opt.Getenv,
		Dial: e.opt.dial,
	})
	if err != nil {
		e.program(ctx, false)
		e.book.note("server", Bad, err.Error(), "correct the variable, or unset it")
		return nil, false
	}
	e.client = client
	dial := e.opt.dial
	if dial == nil {
		dial = e.opt.limits.dialer(client.Addr())
	}
	found := e.opt.limits.probeServer(ctx, dial)
	s := &e.report.Host.Server
	*s = Server{Address: clean(client.Addr()), From: addressFrom(e.opt.Getenv), State: found.state}
	if found.state == Answers {
		s.Protocol = &found.protocol
	}
	e.program(ctx, found.state == Answers)
	e.server(found)
	if found.state != Answers {
		return nil, true
	}
	list, err := client.Devices(ctx)
	if err != nil {
		e.book.note("devices", Bad, err.Error(), "run `adb kill-server`, then `adb start-server`")
		return nil, true
	}
	return e.listed(list), true
}

// maxStream is the maximum output of one command on a device, in bytes.
const maxStream = 64 << 20

// environment returns the variables that configure adb, if they are set.
func (e *examination) environment() map[string]string {
	set := map[string]string{}
	for _, name := range []string{
		"ANDROID_SERIAL", "ADB_SERVER_SOCKET", "ANDROID_ADB_SERVER_ADDRESS", "ANDROID_ADB_SERVER_PORT",
		"ANDROID_HOME", "ANDROID_SDK_ROOT", "ADB_VENDOR_KEYS",
	} {
		if value := e.opt.Getenv(name); value != "" {
			set[name] = clean(value)
		}
	}
	return set
}

// program examines the adb program. The program is optional if a server
// responds.
func (e *examination) program(ctx context.Context, served bool) {
	p := &e.report.Host.ADB
	*p = findProgram(e.opt.Getenv)
	if p.Path == "" {
		status, use := Bad, "it is needed to start the adb server"
		if served {
			status, use = Warn, "the adb server answers, but could not be restarted"
		}
		todo := installADB
		if stray, ok := strayProgram(); ok {
			todo = fmt.Sprintf("add %s to PATH", filepath.Dir(stray))
		}
		e.book.note("adb", status, fmt.Sprintf("no adb program in %s; %s", strings.Join(p.Searched, ", "), use), todo)
		return
	}
	if err := p.askVersion(ctx, e.opt.limits.program); err != nil {
		e.book.note("adb", Warn, err.Error(),
			"check that it is the adb of Android platform-tools: reinstall it, or put another one first in PATH")
		return
	}
	text := fmt.Sprintf("%s, version 1.0.%d", p.Path, *p.Protocol)
	if p.Release != "" {
		text += " (" + p.Release + ")"
	}
	e.book.note("adb", OK, text, "")
}

func (e *examination) server(found serverReply) {
	s, program := e.report.Host.Server, e.report.Host.ADB
	at := s.Address
	if s.From != defaultAddress {
		at += " (from " + s.From + ")"
	}
	switch found.state {
	case Answers:
		e.serverVersion(at)
	case Absent:
		e.absent(at, found.err)
	case Unreachable:
		e.book.note("server", Bad, fmt.Sprintf("cannot reach %s: %v", at, found.err), "check the host and "+
			variable(s.From))
	case Silent:
		e.book.note("server", Bad,
			fmt.Sprintf("something at %s accepts connections but does not respond: a hung adb server or "+
				"another program",
				at),
			fmt.Sprintf("run `adb kill-server`; if it still does not respond, choose another port: %s",
				anotherPort(s.Address, s.From)))
	case Foreign:
		text := fmt.Sprintf("not an adb server at %s: it closed the connection without an answer", at)
		if found.said != "" {
			text = fmt.Sprintf("not an adb server at %s: it answered %q", at, line(found.said))
		}
		todo := "stop it, or choose another port for adb everywhere (shell, IDE): " + anotherPort(s.Address, s.From)
		if program.Path == "" {
			todo += "; and " + installADB
		}
		e.book.note("server", Bad, text, todo)
	}
}

// line returns the first line of a string.
func line(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(text)
}

func variable(from string) string {
	if from == defaultAddress {
		return "the network"
	}
	return from
}

// serverVersion compares the version of the server with that of the adb
// program, because a client of another version kills the server and starts its
// own (AOSP adb/client/adb_client.cpp, __adb_check_server_version).
func (e *examination) serverVersion(at string) {
	server, program := *e.report.Host.Server.Protocol, e.report.Host.ADB.Protocol
	if program == nil || *program == server {
		e.book.note("server", OK, fmt.Sprintf("adb server version %d at %s", server, at), "")
		return
	}
	e.book.note("server", Warn,
		fmt.Sprintf("the adb server at %s has version %d, the adb program %d: any adb command kills that server and "+
			"the connections of a run", at, server, *program),
		"use one adb: run `adb start-server` before the run, and let the IDE and scripts use the same program")
}

func (e *examination) absent(at string, err error) {
	text := "no adb server at " + at
	switch here := local(e.report.Host.Server.Address); {
	case !here:
		e.book.note("server", Bad, fmt.Sprintf("%s: %v", text, err), "start it there, or correct "+
			variable(e.report.Host.Server.From))
	case e.report.Host.ADB.Path == "":
		e.book.note("server", Bad, text, "install adb, then run `adb start-server`")
	default:
		start := "run `adb start-server`, "
		if from := e.report.Host.Server.From; from != defaultAddress {
			start = "run `adb start-server`, or correct " + variable(from) + ", "
		}
		e.book.note("server", Warn, text+", so no device was checked", start+"then `leakgate doctor` again")
	}
}

const (
	// nightBytes is the disk space, in bytes, that an overnight run may use: 1
	// MB per process (twice the amount measured in 8 h with two processes,
	// breakdowns included), at most 32 MB of workload log, and heap dumps of 50
	// to 500 MB each.
	nightBytes = 1 << 30
	// leastBytes is the free space that a run without a workload and without
	// dumps needs.
	leastBytes = 64 << 20
)

const nightNeeds = "an 8 h run needs about 1 MB per process, up to 32 MB of logs, and 50 to 500 MB per heap dump"

// directory examines the directory in which run directories are created; a run
// creates parents that do not exist. It returns false if runs cannot write
// there.
func (e *examination) directory() bool {
	dir, err := existing(e.opt.Dir)
	s := &e.report.Host.Runs
	s.Directory = clean(e.opt.Dir)
	if err != nil {
		e.book.note("directory", Bad, fmt.Sprintf("cannot create %s: %v", e.opt.Dir, err),
			"work in another directory, or choose one with --out")
		return false
	}
	if writable, known := mayWrite(dir); known {
		s.Writable = &writable
		if !writable {
			e.book.note("directory", Bad, fmt.Sprintf("cannot write to %s", dir),
				"work in another directory, or choose one with --out")
			return false
		}
	}
	free, known := spool.FreeBytes(dir)
	if !known {
		e.book.note("directory", Unknown,
			fmt.Sprintf("cannot determine the free space for %s; %s", e.opt.Dir, nightNeeds), "")
		return true
	}
	s.FreeBytes = &free
	text := fmt.Sprintf("%s free for %s; %s", text.Size(free), e.opt.Dir, nightNeeds)
	switch todo := "free some space, or choose another directory with --out"; {
	case free < leastBytes:
		e.book.note("directory", Bad, text, todo)
		return false
	case free < nightBytes:
		e.book.note("directory", Warn, text, todo)
	default:
		e.book.note("directory", OK, text, "")
	}
	return true
}

// existing returns the directory itself if it exists, otherwise its nearest
// existing parent.
func existing(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		info, err := os.Stat(dir)
		switch {
		case err == nil && info.IsDir():
			return dir, nil
		case err == nil:
			return "", fmt.Errorf("%s is a file", dir)
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		case filepath.Dir(dir) == dir:
			return "", err
		}
		dir = filepath.Dir(dir)
	}
}

// listed records what the list of devices means for a run, and selects the
// devices to examine.
func (e *examination) listed(list []adb.DeviceInfo) []adb.DeviceInfo {
	want, from := e.opt.Device, "--device"
	if want == "" {
		want, from = e.opt.Getenv("ANDROID_SERIAL"), "ANDROID_SERIAL"
	}
	there := slices.ContainsFunc(list, func(d adb.DeviceInfo) bool { return d.Serial == want })
	switch {
	case len(list) == 0 && want == "":
		e.book.note("devices", Bad, "no device is connected", connectOne)
	case len(list) == 0:
		e.book.note("devices", Bad,
			fmt.Sprintf("device %s (from %s) is not connected, and no other device is", want, from), connectOne)
	case want != "" && !there && strings.Contains(want, ":"):
		e.book.note("devices", Bad,
			fmt.Sprintf("device %s (from %s) is not connected; connected: %s", want, from, serials(list)),
			fmt.Sprintf("run `adb connect %s`", want))
	case want != "" && !there:
		e.book.note("devices", Bad,
			fmt.Sprintf("device %s (from %s) is not connected; connected: %s", want, from, serials(list)),
			"check its cable, or correct "+from)
	}
	if there || want == "" && len(list) > 0 {
		e.book.note("devices", OK, listedText(len(list), want, from), "")
	}
	e.wanted = want
	if e.opt.Device == "" {
		return list
	}
	return slices.DeleteFunc(list, func(d adb.DeviceInfo) bool { return d.Serial != e.opt.Device })
}

func listedText(n int, want, from string) string {
	text := fmt.Sprintf("%d devices are listed", n)
	if n == 1 {
		text = "one device is listed"
	}
	if want != "" {
		text += fmt.Sprintf("; %s selects %s", from, want)
	}
	return text
}

// maxNamed is the maximum number of devices listed in a sentence.
const maxNamed = 10

func serials(list []adb.DeviceInfo) string {
	var names []string
	for _, d := range list[:min(len(list), maxNamed)] {
		names = append(names, clean(d.Serial))
	}
	if more := len(list) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
