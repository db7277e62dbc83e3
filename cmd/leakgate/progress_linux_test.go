package main

//unit:listen a program is the child, which needs an address

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// drawnBy runs a program with a terminal as its stderr. It returns what the
// program draws there, and the time until it starts drawing.
func drawnBy(t *testing.T, cmd *exec.Cmd) (text string, first time.Duration) {
	t.Helper()
	screen, user := pseudoTerminal(t)
	cmd.Stderr = user
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	user.Close()
	var drawn []byte
	for piece := make([]byte, 1024); ; {
		n, err := screen.Read(piece)
		if n > 0 && first == 0 {
			first = time.Since(began)
		}
		drawn = append(drawn, piece[:n]...)
		if err != nil {
			return string(drawn), first // EIO: the program has closed the terminal
		}
	}
}

// In the program itself, stderr goes through the sanitizer, and drawing code
// finds the terminal behind it. A progress line appears after two seconds. At
// the end, the line is gone and stdout contains only JSON.
func TestDoctorShowsProgress(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // an adb server that never responds
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx := minute(t)
	cmd := program(t, ctx, []string{"ADB_SERVER_SOCKET=tcp:" + silent.Addr().String()}, "doctor", "--json")
	var out bytes.Buffer
	cmd.Stdout = &out
	text, first := drawnBy(t, cmd)
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 3 || !json.Valid(out.Bytes()) {
		t.Errorf("exit %d\n%.200s", cmd.ProcessState.ExitCode(), out.String())
	}
	if first < quick || !strings.HasPrefix(text, "\r\x1b[Kchecking host, ") || !strings.HasSuffix(text, "\r\x1b[K") ||
		strings.Count(text, "checking") < 3 {
		t.Errorf("first drawn after %v: %q", first, text)
	}
}

func TestReplayShowsProgress(t *testing.T) {
	t.Parallel()
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	ctx := minute(t)
	cmd := program(t, ctx, nil, "replay", "-", "--json")
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout = in, &out
	go func() {
		defer feed.Close()
		feed.WriteString("t_s,pss_kb\n0,100\n")
		time.Sleep(quick + 2*time.Second)
		feed.WriteString("30,100\n")
	}()
	text, first := drawnBy(t, cmd)
	if err := cmd.Wait(); err != nil || !json.Valid(out.Bytes()) {
		t.Errorf("%v\n%.200s", err, out.String())
	}
	if first < quick || !strings.HasPrefix(text, "\r\x1b[Kread the recordings, ") ||
		!strings.HasSuffix(text, "\r\x1b[K") || strings.Count(text, "read the") < 3 {
		t.Errorf("first drawn after %v: %q", first, text)
	}
}

// The progress of reading a file is shown with the name of the file, with all
// terminal control sequences removed from it. Nothing is drawn once the line is
// removed, even if a read continues after Ctrl-C.
func TestReadProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out terminal
		b := barOn(&out, columnsOf(80))
		tell := readProgress(b)
		for i := range 10 {
			tell("a\x1b[2J.csv", float64(i)/18)
			time.Sleep(300 * time.Millisecond)
		}
		synctest.Wait()
		if text := out.drawn(); !strings.HasPrefix(text,
			"\r\x1b[K[#######.................]  33 %  read a?[2J.csv, 2 s\r\x1b[K") ||
			!strings.HasSuffix(text, "50 %  read a?[2J.csv, 3 s") {
			t.Errorf("%q", text)
		}
		b.close()
		tell("a.csv", 1)
		time.Sleep(time.Minute)
		if text := out.drawn(); text != "\r\x1b[K" {
			t.Errorf("got %q on the terminal after the end, want only an empty line", text)
		}
	})
}
