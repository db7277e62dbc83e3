package adbd

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"sync"
)

// Packets of the shell protocol: a one-byte id, a 32-bit length, and the data
// (shell_protocol.h).
const (
	shellStdin      = 0
	shellStdout     = 1
	shellStderr     = 2
	shellExit       = 3
	shellCloseStdin = 4

	shellHeader = 5
	// shellChunk bounds the size of one outgoing packet.
	shellChunk = 32 << 10
)

// shellService runs one command. If packets is set, it uses the shell protocol;
// otherwise stdout and stderr are sent raw, merged into one stream, without an
// exit status. If terminal is set, they are also merged, and processed as a
// terminal would.
type shellService struct {
	command  string
	packets  bool
	terminal bool
}

func (c shellService) run(ctx context.Context, phone Phone, s stream) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := newInlet()
	var pump sync.WaitGroup
	pump.Go(func() {
		// Only the end of the peer's stream shows that the peer has stopped
		// waiting, so the stream is read as long as the command runs.
		defer cancel()
		defer in.finish()
		if c.packets {
			readShellPackets(s, in)
			return
		}
		io.Copy(in, s)
	})
	out := &outlet{w: s}
	stdout, stderr := c.outputs(out)
	exit := phone.Shell(ctx, c.command, in, stdout, stderr)
	in.stop()
	if c.packets && exit != NoExit && ctx.Err() == nil {
		out.packet(shellExit, []byte{byte(exit)})
	}
	out.stop()
	s.Close()
	pump.Wait()
}

func (c shellService) outputs(out *outlet) (stdout, stderr io.Writer) {
	if c.packets {
		stdout, stderr = packetWriter{out, shellStdout}, packetWriter{out, shellStderr}
	} else {
		stdout, stderr = out, out
	}
	if c.terminal {
		stdout = &terminalWriter{w: stdout}
		return stdout, stdout
	}
	return stdout, stderr
}

// readShellPackets passes the stdin packets in r to in until r ends. Window
// sizes and unknown packets are skipped.
func readShellPackets(r io.Reader, in *inlet) error {
	var header [shellHeader]byte
	for {
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return err
		}
		n := int64(binary.LittleEndian.Uint32(header[1:]))
		var to io.Writer = io.Discard
		switch header[0] {
		case shellStdin:
			to = in
		case shellCloseStdin:
			in.finish()
		}
		if _, err := io.CopyN(to, r, n); err != nil {
			return err
		}
	}
}

// outlet forwards the outputs of one command, one write at a time. Once
// stopped, it rejects all writes.
type outlet struct {
	mu      sync.Mutex
	w       io.Writer
	stopped bool
	buf     []byte
}

func (o *outlet) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return 0, io.ErrClosedPipe
	}
	return o.w.Write(p)
}

func (o *outlet) packet(id byte, p []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return io.ErrClosedPipe
	}
	o.buf = append(o.buf[:0], id)
	o.buf = binary.LittleEndian.AppendUint32(o.buf, uint32(len(p)))
	o.buf = append(o.buf, p...)
	_, err := o.w.Write(o.buf)
	return err
}

func (o *outlet) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = true
}

type packetWriter struct {
	out *outlet
	id  byte
}

func (w packetWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		chunk := p[:min(len(p), shellChunk)]
		if err := w.out.packet(w.id, chunk); err != nil {
			return written, err
		}
		written += len(chunk)
		p = p[len(chunk):]
	}
	return written, nil
}

// terminalWriter ends lines like a terminal: \n becomes \r\n, even after a \r.
type terminalWriter struct {
	w io.Writer
}

func (w *terminalWriter) Write(p []byte) (int, error) {
	if _, err := w.w.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}
