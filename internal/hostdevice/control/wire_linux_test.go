package control

//unit:sleep bounds a peer that hangs; nothing is measured

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func listen(t *testing.T, h Handler) (*Server, string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "control")
	s, err := Listen(socket, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, socket
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// TestCall sends files and arguments in many concurrent calls and receives the
// exit codes.
func TestCall(t *testing.T) {
	_, socket := listen(t, func(ctx context.Context, r Request) int {
		in, _ := io.ReadAll(r.Stdin)
		fmt.Fprintf(r.Stdout, "%s %q %s", r.Token, r.Args, in)
		fmt.Fprint(r.Stderr, "complaint")
		return len(r.Args)
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			inR, inW := pipe(t)
			outR, outW := pipe(t)
			errR, errW := pipe(t)
			fmt.Fprintf(inW, "input %d", i)
			inW.Close()
			args := slices.Repeat([]string{"a b", ""}, i+1)
			exit, err := Call(socket, Request{Token: "T", Args: args, Stdin: inR, Stdout: outW, Stderr: errW})
			if exit != len(args) || err != nil {
				t.Errorf("exit %d, %v", exit, err)
			}
			outW.Close()
			errW.Close()
			// The pipe ends only when the server has closed its copies of the
			// files.
			out, _ := io.ReadAll(outR)
			errs, _ := io.ReadAll(errR)
			if want := fmt.Sprintf("T %q input %d", args, i); string(out) != want || string(errs) != "complaint" {
				t.Errorf("%q, %q; want %q", out, errs, want)
			}
		})
	}
	wg.Wait()
}

// TestCallerGone checks that when a command is killed, its request ends.
func TestCallerGone(t *testing.T) {
	ended := make(chan struct{})
	_, socket := listen(t, func(ctx context.Context, r Request) int {
		<-ctx.Done()
		close(ended)
		return 0
	})
	conn := dial(t, socket)
	send(t, conn, "\x00wait", 0, 1, 2)
	select {
	case <-ended:
		t.Fatal("the call returned too early")
	case <-time.After(50 * time.Millisecond):
	}
	conn.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the request is still running after its caller has ended")
	}
}

func TestCloseEndsRequests(t *testing.T) {
	// Whether the handler or its connection ends first depends on the
	// scheduler.
	for range 200 {
		closeDuringRequest(t)
	}
}

func closeDuringRequest(t *testing.T) {
	t.Helper()
	began := make(chan struct{})
	s, socket := listen(t, func(ctx context.Context, r Request) int {
		close(began)
		<-ctx.Done()
		return 0
	})
	failed := make(chan error)
	go func() {
		_, err := Call(socket, Request{Args: []string{"x"}, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
		failed <- err
	}()
	<-began
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("a canceled request returned an exit code")
	}
	if _, err := os.Stat(socket); !os.IsNotExist(err) {
		t.Errorf("the socket still exists: %v", err)
	}
}

func dial(t *testing.T, socket string) *net.UnixConn {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func send(t *testing.T, conn *net.UnixConn, text string, fds ...int) {
	t.Helper()
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	var rights []byte
	if len(fds) > 0 {
		rights = syscall.UnixRights(fds...)
	}
	if _, _, err := conn.WriteMsgUnix(head, rights, nil); err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, text)
}

// TestBadRequests checks that invalid requests are dropped without calling the
// handler and without leaking a file.
func TestBadRequests(t *testing.T) {
	called := make(chan Request, 10)
	_, socket := listen(t, func(ctx context.Context, r Request) int {
		called <- r
		return 0
	})
	for name, bad := range map[string]func(conn *net.UnixConn){
		"without files":     func(conn *net.UnixConn) { send(t, conn, "\x00x") },
		"two files":         func(conn *net.UnixConn) { send(t, conn, "\x00x", 0, 1) },
		"many files":        func(conn *net.UnixConn) { send(t, conn, "\x00x", 0, 1, 2, 0, 1, 2) },
		"without a command": func(conn *net.UnixConn) { send(t, conn, "token", 0, 1, 2) },
		"half a head":       func(conn *net.UnixConn) { conn.Write([]byte{1}); conn.CloseWrite() },
		"cut":               func(conn *net.UnixConn) { send(t, conn, "", 0, 1, 2); conn.CloseWrite() },
		"endless input":     func(conn *net.UnixConn) { conn.Write([]byte(strings.Repeat("\xff", 100))) },
	} {
		conn := dial(t, socket)
		bad(conn)
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, err := conn.Read(make([]byte, 1)); n != 0 || os.IsTimeout(err) {
			t.Errorf("%s: read %d, %v; want the end of the connection", name, n, err)
		}
	}
	if len(called) > 0 {
		t.Errorf("%q was served", (<-called).Args)
	}
}
