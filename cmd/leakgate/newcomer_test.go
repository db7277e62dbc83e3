package main

//unit:listen the way of a user goes through the address of a server

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/adbd"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// inState is a phone that adb lists in a state other than device.
type inState struct {
	adbd.Phone
	state string
}

func (s inState) Identity() adbd.Identity {
	id := s.Phone.Identity()
	id.State = s.state
	return id
}

// port serves phones and returns the port.
func port(t *testing.T, phones ...adbd.Phone) string {
	t.Helper()
	return serve(t, phones...)["ANDROID_ADB_SERVER_PORT"]
}

// webServer starts a server that responds to every request as a web server
// responds to a malformed one, without waiting for the end of a line, and
// returns the port of the server.
func webServer(t *testing.T) string {
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
				io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nServer: example\r\n\r\n")
				io.Copy(io.Discard, c)
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// adbProgram returns a directory with an adb program that prints its version
// and can do nothing else.
func adbProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text := "#!/bin/sh\n[ \"$1\" = version ] || exit 1\necho Android Debug Bridge version 1.0.41\necho Version " +
		"35.0.2-12147458\n"
	if err := os.WriteFile(filepath.Join(dir, "adb"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// newcomers are the situations in which somebody tries leakgate for the first
// time.
var newcomers = []struct {
	name string
	// port prepares the situation and returns the port of the adb server.
	port func(*testing.T) string
	// noADB reports whether there is no adb program.
	noADB bool
}{
	{"no-adb", deadPort, true},
	{"no-phone", func(t *testing.T) string { return port(t) }, false},
	{"unauthorized-phone", func(t *testing.T) string { return port(t, inState{shop("phone-a"), "unauthorized"}) },
		false},
	{"offline-phone", func(t *testing.T) string { return port(t, inState{shop("phone-a"), "offline"}) }, false},
	{"two-phones", func(t *testing.T) string { return port(t, shop("phone-a"), shop("phone-b")) }, false},
	{"port-taken", webServer, false},
}

// nextStep matches the advice in the first line.
var nextStep = regexp.MustCompile(
	`\b(install|connect|accept|name (one|the one)|reconnect|choose|check|stop it|end it)\b`)

// The first line that a newcomer sees says what to do, whatever is missing. The
// golden files contain the entire output; -update rewrites them.
func TestNewcomer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the adb program of this test is a shell script")
	}
	for _, place := range newcomers {
		for _, verb := range []string{"watch", "run", "doctor"} {
			t.Run(place.name+"/"+verb, func(t *testing.T) {
				text := arrive(t, place.port(t), place.noADB, verb)
				if place.name == "two-phones" && verb == "run" {
					// A run uses both phones, so it starts; only its first two
					// lines are compared.
					text = strings.Join(strings.SplitAfter(text, "\n")[:2], "")
				} else if first := strings.Split(text, "\n")[1]; !nextStep.MatchString(first) {
					t.Errorf("the first line does not say what to do: %s", first)
				}
				golden(t, filepath.Join("testdata", "newcomer", place.name+"."+verb+".txt"), text)
			})
		}
	}
}

// arrive runs the program with only the environment variables of the situation.
// It returns the exit code and the output, without the parts that differ
// between machines.
func arrive(t *testing.T, port string, noADB bool, verb string) string {
	t.Helper()
	ctx := minute(t)
	args := map[string][]string{
		"watch":  {"watch", "--process", "com.shop"},
		"run":    {"run", write(t, "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 2m\n")},
		"doctor": {"doctor", "--process", "com.shop"},
	}[verb]
	cmd := program(t, ctx, nil, args...)
	path := t.TempDir()
	if !noADB {
		path = adbProgram(t)
	}
	home := t.TempDir()
	cmd.Env = []string{
		"PATH=" + path, "HOME=" + home, "TMPDIR=" + home, "ANDROID_ADB_SERVER_PORT=" + port, "LEAKGATE_STAND_IN=1",
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // the exit code reports the error
	return fmt.Sprintf("exit %d\n", cmd.ProcessState.ExitCode()) + settled(out.String(), map[string]string{
		path: "DIR", home: "HOME", ":" + port: ":PORT", runtime.GOOS + "/" + runtime.GOARCH: "SYSTEM",
	})
}

var measured = map[string]*regexp.Regexp{
	"N GB free":         regexp.MustCompile(`[0-9.]+ [GM]B free`),
	"up SPAN":           regexp.MustCompile(`\bup [0-9hms]+`),
	"N kB in SPAN":      regexp.MustCompile(`[0-9]+ kB in .*`),
	"pid N":             regexp.MustCompile(`\bpid [0-9]+`),
	"leakgate-runs/DIR": regexp.MustCompile(`leakgate-runs/[0-9TZ.]+-[a-z]+`),
	"_PORT=NEXT":        regexp.MustCompile(`_PORT=[0-9]+`),
}

// settled replaces the parts of the output that differ between runs.
func settled(text string, words map[string]string) string {
	for from, to := range words {
		text = strings.ReplaceAll(text, from, to)
	}
	for to, from := range measured {
		text = from.ReplaceAllString(text, to)
	}
	return text
}

func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs (-update rewrites it), got\n%s\nwant\n%s", file, text, want)
	}
}
