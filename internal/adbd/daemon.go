package adbd

import (
	"context"
	"fmt"
	"net"
)

// Daemon is one phone as a device to which adb servers connect with `adb
// connect HOST:PORT`. Create one with NewDaemon; all methods are safe for
// concurrent use. Servers may connect and disconnect at any time, and several
// may be connected at once.
//
// The state of the phone has the same effects as on a real device. An
// unauthorized phone requests a key and rejects every key; once the state is
// device, waiting servers are accepted. An offline phone accepts the connection
// and sends nothing. A phone that becomes unauthorized or offline disconnects
// its servers.
type Daemon struct {
	// Wire, if set before Listen, wraps every accepted connection. It is used
	// to inject faults.
	Wire func(net.Conn) net.Conn

	phone Phone
	end   *endpoint
}

// NewDaemon returns a daemon that does not listen yet.
func NewDaemon(phone Phone) *Daemon { return &Daemon{phone: phone, end: newEndpoint()} }

// Listen opens addr, such as 127.0.0.1:0, and serves it until Close.
func (d *Daemon) Listen(addr string) error {
	if err := d.end.listen(addr, d.Wire, d.handle); err != nil {
		return fmt.Errorf("listen for adb servers: %w", err)
	}
	return nil
}

// Addr returns the address to connect to, or "" before Listen. The adb server
// uses it as the serial.
func (d *Daemon) Addr() string { return d.end.address() }

// Drop interrupts all connections, like an unplugged cable. adb servers
// reconnect by themselves.
func (d *Daemon) Drop() { d.end.drop() }

// Close closes every connection, stops every command, and returns when all of
// them have ended.
func (d *Daemon) Close() error { return d.end.close() }

func (d *Daemon) handle(ctx context.Context, conn net.Conn) {
	newLink(ctx, d.phone, conn).serve()
}
