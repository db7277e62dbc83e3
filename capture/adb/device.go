package adb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Device is one device of a server. Its methods are safe for concurrent use;
// each opens its own connections. A Device is identified by its serial, so it
// remains valid when the device reconnects or the server restarts.
type Device struct {
	client *Client
	info   DeviceInfo

	mu       sync.Mutex
	features []string
	known    bool
}

// Serial returns the serial number, as adb reports it.
func (d *Device) Serial() string { return d.info.Serial }

// transport opens a connection to the device.
func (d *Device) transport(ctx context.Context) (*conn, error) {
	k, err := d.call(ctx, "host:transport:"+d.info.Serial)
	if err != nil {
		return nil, err
	}
	d.bound(k)
	return k, nil
}

// call is Client.call for this device. If this is a network device that the
// server does not list, call first connects it, because a restarted server has
// lost its network devices.
func (d *Device) call(ctx context.Context, request string) (*conn, error) {
	c, serial, began := d.client, d.info.Serial, time.Now()
	k, err := c.call(ctx, request, serial)
	if err == nil || d.info.USB != "" || !networkSerial(serial) {
		return k, err
	}
	var answer string
	switch {
	case errors.Is(err, errNotListed):
		var cerr error
		if answer, cerr = c.reconnect(ctx, serial); cerr != nil {
			return nil, cerr
		}
	// While the server connects, it lists the device as offline.
	case !errors.Is(err, ErrOffline) || !c.reconnected(ctx, serial, began):
		return nil, err
	}
	k, err = c.call(ctx, request, serial)
	if errors.Is(err, errNotListed) {
		return nil, notReached(ErrDeviceGone, serial, "", answer)
	}
	return k, err
}

// bound records that further responses will come from the device, not from the
// server.
func (d *Device) bound(k *conn) { k.phase.bound, k.wait = true, d.client.opt.AnswerTimeout }

// Features returns the features of the device's adbd, such as shell_v2 and
// stat_v2. The result is empty if the server or the device is too old to report
// features. The result is cached; an error is not.
func (d *Device) Features(ctx context.Context) ([]string, error) {
	d.mu.Lock()
	features, known := d.features, d.known
	d.mu.Unlock()
	if known {
		return features, nil
	}
	features, err := d.readFeatures(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.features, d.known = features, true
	return features, nil
}

func (d *Device) readFeatures(ctx context.Context) ([]string, error) {
	k, err := d.call(ctx, "host-serial:"+d.info.Serial+":features")
	if errors.Is(err, errUnknownService) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer k.close()
	text, err := k.text()
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' }), nil
}

func (d *Device) has(ctx context.Context, feature string) (bool, error) {
	features, err := d.Features(ctx)
	return slices.Contains(features, feature), err
}

const (
	serviceV2 = "shell,v2,raw:"
	serviceV1 = "shell:"
	// maxOldService bounds a service name for an adbd without shell v2, whose
	// packets hold 4096 bytes including the final NUL; the server aborts if a
	// name is longer (AOSP adb/sockets.cpp, connect_to_remote).
	maxOldService = 4095
)

// blindService returns the shell service for commands whose output is not read.
func (d *Device) blindService() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known && slices.Contains(d.features, "shell_v2") {
		return serviceV2
	}
	return serviceV1
}

// Shell runs one command line in the device's shell with empty standard input
// and waits until it exits. The error is nil only if the exit status arrived.
// Otherwise exit is -1, and the command and its children have been killed on
// the device if it could be reached (see the package comment).
//
// A device without the shell_v2 feature (before Android 7) mixes stderr into
// stdout, in the order in which the command writes. Line endings that the
// terminal of such a device has changed are restored. If a writer is nil, its
// output is dropped. If a writer blocks, the call does not return when ctx is
// done.
func (d *Device) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (exit int, err error) {
	v2, err := d.has(ctx, "shell_v2")
	if err != nil {
		return -1, err
	}
	c := d.newCommand(ctx, stdout, stderr)
	if v2 {
		return c.run(serviceV2+c.trace.prefixed(command), c.packetReader())
	}
	service := serviceV1 + c.trace.enclosed(command)
	if len(service) > maxOldService {
		return -1, tooLong(service)
	}
	return c.run(service, c.enclosedReader())
}

func tooLong(service string) error {
	return fmt.Errorf(
		"the command takes %d bytes, and this Android version allows %d: move it into a file and run that",
		len(service), maxOldService)
}
