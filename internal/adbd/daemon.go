package adbd

import (
	"context"
	"fmt"
	"net"
)

// Daemon is one phone as a device that adb servers connect to, `adb connect
// HOST:PORT`. Make one with NewDaemon; all methods may be called at the same
// time. Servers may come and go, several at once.
//
// The state of the phone shows as on a real device. One that is unauthorized
// asks for a key and accepts none; once the state is device, waiting servers are
// let in. One that is offline takes the connection and says nothing. A phone that
// turns unauthorized or offline drops the servers that it has.
type Daemon struct {
	// Wire, if set before Listen, wraps every accepted connection: the place for
	// faults on the line.
	Wire func(net.Conn) net.Conn

	phone Phone
	end   *endpoint
}

// NewDaemon makes a daemon that does not listen yet.
func NewDaemon(phone Phone) *Daemon { return &Daemon{phone: phone, end: newEndpoint()} }

// Listen opens addr, such as 127.0.0.1:0, and serves it until Close.
func (d *Daemon) Listen(addr string) error {
	if err := d.end.listen(addr, d.Wire, d.handle); err != nil {
		return fmt.Errorf("listen for adb servers: %w", err)
	}
	return nil
}

// Addr returns the address to connect to, or "" before Listen. It is the serial
// that the adb server shows.
func (d *Daemon) Addr() string { return d.end.address() }

// Drop breaks all connections off in the middle, like an unplugged cable. adb
// servers connect again by themselves.
func (d *Daemon) Drop() { d.end.drop() }

// Close ends every connection and command, and returns when all have ended.
func (d *Daemon) Close() error { return d.end.close() }

func (d *Daemon) handle(ctx context.Context, conn net.Conn) {
	newLink(ctx, d.phone, conn).serve()
}
