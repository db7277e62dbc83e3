package control

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
)

// Request is a command to run.
type Request struct {
	// Token identifies the shell command line to which the request belongs.
	Token string
	// Args holds the name of the command and its arguments.
	Args []string
	// Stdin, Stdout and Stderr are the files of the command.
	Stdin, Stdout, Stderr *os.File
}

// Handler serves a request and returns the exit code. ctx is canceled when the
// command is killed or the server is closed. The handler must not close the
// files.
type Handler func(ctx context.Context, r Request) (exit int)

// maxRequest bounds the size of a request in bytes; the kernel permits a
// command line of 2 MiB.
const maxRequest = 2 << 20

// Call sends a request to the device at the socket and returns the command's
// exit code.
func Call(socket string, r Request) (exit int, err error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return 0, fmt.Errorf("call device: %w", err)
	}
	defer conn.Close()
	text := strings.Join(append([]string{r.Token}, r.Args...), "\x00")
	if len(text) > maxRequest {
		return 0, fmt.Errorf("call device: command line of %d bytes is too long", len(text))
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	rights := syscall.UnixRights(int(r.Stdin.Fd()), int(r.Stdout.Fd()), int(r.Stderr.Fd()))
	if _, _, err := conn.WriteMsgUnix(head, rights, nil); err != nil {
		return 0, fmt.Errorf("call device: %w", err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		return 0, fmt.Errorf("call device: %w", err)
	}
	var code [1]byte
	if _, err := io.ReadFull(conn, code[:]); err != nil {
		return 0, fmt.Errorf("call device: no response: %w", err)
	}
	return int(code[0]), nil
}

// Server accepts and serves requests.
type Server struct {
	listener *net.UnixListener
	handler  Handler
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

// Listen opens the socket and serves it until Close.
func Listen(socket string, handler Handler) (*Server, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open control socket: %w", err)
	}
	// The shell may have a different uid; the directory controls who can
	// connect to the socket.
	if err := os.Chmod(socket, 0o666); err != nil {
		l.Close()
		return nil, fmt.Errorf("open control socket: %w", err)
	}
	s := &Server{listener: l, handler: handler}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.running.Go(s.accept)
	return s, nil
}

// Close cancels all requests and waits for them.
func (s *Server) Close() error {
	err := s.listener.Close()
	s.cancel()
	s.running.Wait()
	return err
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			return
		}
		s.running.Go(func() { s.serve(conn) })
	}
}

func (s *Server) serve(conn *net.UnixConn) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	r, err := receive(conn)
	if err != nil {
		return
	}
	defer r.close()
	// The command sends no more data, so the next read returns when the command
	// ends.
	go func() {
		defer cancel()
		var none [1]byte
		conn.Read(none[:])
	}()
	exit := s.handler(ctx, r)
	// A handler may see that ctx is done before stop runs; in that case, stop
	// alone would not keep the server from sending the exit code of a command
	// that has already exited.
	if ctx.Err() == nil && stop() {
		conn.Write([]byte{byte(exit)})
	}
}

func (r Request) close() {
	for _, f := range []*os.File{r.Stdin, r.Stdout, r.Stderr} {
		f.Close()
	}
}

var errFiles = errors.New("a request needs three files")

func receive(conn *net.UnixConn) (Request, error) {
	head := make([]byte, 4)
	oob := make([]byte, syscall.CmsgSpace(3*4))
	n, oobn, _, _, err := conn.ReadMsgUnix(head, oob)
	if err != nil {
		return Request{}, err
	}
	files, err := parseFiles(oob[:oobn])
	if err != nil {
		return Request{}, err
	}
	r := Request{Stdin: files[0], Stdout: files[1], Stderr: files[2]}
	text, err := receiveText(conn, head, n)
	if err != nil {
		r.close()
		return Request{}, err
	}
	parts := strings.Split(text, "\x00")
	r.Token, r.Args = parts[0], parts[1:]
	if len(r.Args) == 0 {
		r.close()
		return Request{}, errors.New("a request needs the name of a command")
	}
	return r, nil
}

func receiveText(conn io.Reader, head []byte, have int) (string, error) {
	if _, err := io.ReadFull(conn, head[have:]); err != nil {
		return "", err
	}
	size := binary.LittleEndian.Uint32(head)
	if size > maxRequest {
		return "", fmt.Errorf("request of %d bytes is too long", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(conn, text); err != nil {
		return "", err
	}
	return string(text), nil
}

// parseFiles returns the three files of a request and closes all others.
func parseFiles(oob []byte) ([]*os.File, error) {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "command"))
		}
	}
	if len(files) != 3 {
		for _, f := range files {
			f.Close()
		}
		return nil, errFiles
	}
	return files, nil
}
