package adb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

const (
	// killTimeout bounds the second connection, which kills a command on the
	// device.
	killTimeout = 2 * time.Second
	// pidTimeout is how long to wait for the process id of a command that must
	// be killed.
	pidTimeout = 250 * time.Millisecond
)

// command is the state of a command that runs on a device.
type command struct {
	ctx   context.Context
	dev   *Device
	conn  *conn
	trace trace
	head  header
	// left is how many bytes of output are still allowed.
	left           int64
	stdout, stderr io.Writer
	// probing means that all output is dropped and that the command is
	// abandoned as soon as its process id is known.
	probing bool
	// ended reports whether the connection has ended; its command can then no
	// longer be reached.
	ended bool
}

// errProbed ends a probe.
var errProbed = errors.New("process id known")

func (d *Device) newCommand(ctx context.Context, stdout, stderr io.Writer) *command {
	t := newTrace()
	return &command{
		ctx: ctx, dev: d, trace: t, head: header{trace: t}, left: d.client.opt.MaxStream, stdout: orDiscard(stdout),
		stderr: orDiscard(stderr),
	}
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// run opens the service, copies its output with read, and kills the command on
// the device if it must be abandoned.
func (c *command) run(service string, read func() (int, error)) (int, error) {
	k, err := c.dev.transport(c.ctx)
	if err != nil {
		return -1, c.wrap(err)
	}
	defer k.close()
	c.conn = k
	if err := k.request(service); err != nil {
		// The device may have started the command even though the request
		// failed.
		if c.ctx.Err() != nil {
			err = c.end(err, 0)
		}
		return -1, c.wrap(err)
	}
	if err = k.expect(0); err == nil {
		var exit int
		if exit, err = read(); err == nil {
			return exit, nil
		}
	}
	return -1, c.wrap(c.leave(err, read))
}

func (c *command) wrap(err error) error {
	var known *fault
	if errors.As(err, &known) {
		return err
	}
	return fmt.Errorf("run a command on device %s: %w", quoted(c.dev.info.Serial), err)
}

// leave stops a command whose output is no longer needed because of err.
func (c *command) leave(err error, read func() (int, error)) error {
	if c.ended {
		return err
	}
	if !c.head.done {
		c.probing = true
		if c.conn.net.SetDeadline(time.Now().Add(pidTimeout)) == nil {
			if _, perr := read(); perr == nil || c.ended {
				return err // it has exited
			}
		}
	}
	return c.end(err, c.head.pid)
}

// end kills the command over a second connection while the command's own
// connection is still open.
func (c *command) end(err error, pid int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), killTimeout)
	defer cancel()
	if kerr := c.dev.runBlind(ctx, c.trace.killScript(pid)); kerr != nil {
		return fmt.Errorf("%w (it may still be running on the device: killing it there failed: %w)", err, kerr)
	}
	return err
}

// runBlind runs a command whose output and status do not matter. It neither
// waits for a server nor reconnects the device: once the server or the device
// has disappeared, the command to kill no longer exists.
func (d *Device) runBlind(ctx context.Context, script string) error {
	k, err := d.client.dial(ctx, false)
	if err != nil {
		return err
	}
	defer k.close()
	k.phase.serial = d.info.Serial
	if err := k.request("host:transport:" + d.info.Serial); err != nil {
		return err
	}
	d.bound(k)
	if err := k.request(d.blindService() + script); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(k.r, maxHeader)); err != nil {
		return k.fail(err)
	}
	return nil
}

// write forwards output and counts its bytes.
func (c *command) write(w io.Writer, p []byte) error {
	if c.probing || len(p) == 0 {
		return nil
	}
	all := p
	p = p[:min(int64(len(p)), c.left)]
	n, err := w.Write(p)
	c.left -= int64(n)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	if len(p) < len(all) {
		return faultf(ErrTooMuch, "the command on device %s printed more than %s and was killed: reduce its output",
			quoted(c.dev.info.Serial), text.Size(c.dev.client.opt.MaxStream))
	}
	return nil
}

// failed returns the error for a failed read, and records whether the
// connection has ended: after a deadline it can still be used.
func (c *command) failed(err error) error {
	c.ended = !isTimeout(err)
	return c.conn.fail(err)
}

// probed returns errProbed once the result of a probe has arrived, which ends
// the probe.
func (c *command) probed() error {
	if c.probing && c.head.done {
		return errProbed
	}
	return nil
}

// packetReader returns a function that copies the output of shell v2 until it
// reads the exit status.
func (c *command) packetReader() func() (int, error) {
	var p *packets
	return func() (int, error) {
		buf := chunks.Get().(*[bufferSize]byte)
		defer chunks.Put(buf)
		if p == nil {
			p = &packets{r: c.conn.r}
			// Close standard input: a command that reads all of it would never
			// exit. An error here is also returned by the next read, which may
			// still find a complete response.
			_, _ = c.conn.net.Write([]byte{idCloseStdin, 0, 0, 0, 0})
		}
		for {
			id, n, err := p.next(buf[:])
			if err != nil {
				return 0, c.failed(err)
			}
			exit, over, err := c.packet(id, buf[:n], p.length())
			if err != nil || over {
				return exit, err
			}
		}
	}
}

func (c *command) packet(id byte, data []byte, length uint32) (exit int, over bool, err error) {
	switch id {
	case idStdout:
		return 0, false, c.write(c.stdout, data)
	case idStderr:
		if err := c.write(c.stderr, c.head.strip(data)); err != nil {
			return 0, false, err
		}
		return 0, false, c.probed()
	case idExit:
		if length != 1 || len(data) != 1 {
			return 0, false, c.conn.malformed("an exit status of one byte", data[:min(len(data), 8)])
		}
		return int(data[0]), true, c.write(c.stderr, c.head.rest())
	}
	return 0, false, c.conn.malformed("a shell packet", []byte{id})
}

// enclosedReader is for services that do not report an exit status. It returns
// a function that copies the output until the stream ends. The output is valid
// only if the line with the status comes last.
func (c *command) enclosedReader() func() (int, error) {
	tail := trailer{trace: c.trace}
	var lines newlines
	pass := func(p []byte) error {
		if c.head.crlf {
			p = lines.strip(p)
		}
		return c.write(c.stdout, tail.strip(p))
	}
	return func() (int, error) {
		buf := chunks.Get().(*[bufferSize]byte)
		defer chunks.Put(buf)
		for {
			n, err := c.conn.r.Read(buf[:])
			if perr := pass(c.head.strip(buf[:n])); perr != nil {
				return 0, perr
			}
			if perr := c.probed(); perr != nil {
				return 0, perr
			}
			if err == nil {
				continue
			}
			if exit, ok := tail.status(); ok && err == io.EOF {
				return exit, nil
			}
			return 0, c.truncated(err, &tail, append(c.head.rest(), lines.rest()...))
		}
	}
}

// truncated handles a stream that ended before its last line, and returns the
// error for it. After a timeout the stream may continue. After any other error,
// the bytes held back so far are written as output.
func (c *command) truncated(err error, tail *trailer, held []byte) error {
	if isTimeout(err) {
		return c.failed(err)
	}
	if werr := c.write(c.stdout, append(tail.held(), held...)); werr != nil {
		return werr
	}
	return c.failed(err)
}
