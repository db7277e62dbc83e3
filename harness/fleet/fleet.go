// Package fleet chooses the devices of a run. It locks them and the run
// directory, so no other run on this host uses them at the same time. Leases
// are file locks (flock), so the operating system releases the leases of a
// killed program.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/lease"
	"github.com/leakgate/leakgate/internal/text"
)

// DeviceChoice selects the devices of a run.
type DeviceChoice struct {
	// Serials lists the serials of the devices. If it is empty, the device in
	// ANDROID_SERIAL is used. If that is not set either, all devices that are
	// attached and ready are used; with Single, there must be only one.
	Serials []string
	Single  bool
	// Devices with an API level below MinAPI are skipped. Require is the
	// minimum number of devices; zero means 1.
	MinAPI, Require int
	// StandIn allows simulated phones that run faster than real time, according
	// to their property leakgate.time_scale. If neither StandIn nor
	// LEAKGATE_STAND_IN=1 is set, phones with a time scale other than 1 are
	// rejected, because the scale would determine how long the run lasts.
	StandIn bool
	// Client is connected to the adb server to use. If it is nil, the server
	// that the environment specifies is used, and started if it is not running.
	Client *adb.Client
	// Getenv reads the environment; nil means os.Getenv.
	Getenv func(string) string
}

// Fleet is the set of devices of a run.
type Fleet struct {
	devices []monitor.Device
	skipped []string
	client  *adb.Client
	getenv  func(string) string
	held    *lease.Lease
	standIn bool
}

// standInVariable is the environment variable that sets StandIn of a
// DeviceChoice.
const standInVariable = "LEAKGATE_STAND_IN"

// maxStream bounds the output of one command, in bytes. A workload may print
// all night, and its log keeps only the beginning of the output. Other
// functions that read the output of commands have their own limits.
const maxStream = 1 << 40

// NewClient returns a client of the adb server for runs, whose workloads may
// print without limit.
func NewClient(o adb.Options) (*adb.Client, error) {
	o.MaxStream = maxStream
	return adb.NewClient(o)
}

// Open chooses the devices and reads the properties of each. The error
// describes what is wrong with the attached devices. Open changes nothing on
// the devices.
func Open(ctx context.Context, c DeviceChoice) (*Fleet, error) {
	f := &Fleet{client: c.Client, getenv: c.Getenv, standIn: c.StandIn}
	if f.getenv == nil {
		f.getenv = os.Getenv
	}
	if given := f.getenv(standInVariable); given != "" && !f.standIn {
		var err error
		if f.standIn, err = strconv.ParseBool(given); err != nil {
			return nil, fmt.Errorf("environment %s: invalid value %q: want true or false", standInVariable, given)
		}
	}
	if f.client == nil {
		client, err := NewClient(adb.Options{Getenv: f.getenv})
		if err != nil {
			return nil, err
		}
		f.client = client
	}
	serials, err := f.serials(ctx, c)
	if err != nil {
		return nil, err
	}
	var old []string
	for _, serial := range serials {
		dev, err := f.describe(ctx, serial)
		if err != nil {
			return nil, err
		}
		if dev.Facts.API < c.MinAPI {
			old = append(old, fmt.Sprintf("%s has API %d", text.Printable(dev.Serial()), dev.Facts.API))
			continue
		}
		f.devices = append(f.devices, dev)
	}
	if len(f.devices) < max(c.Require, 1) {
		why := ""
		if len(old) > 0 {
			why = fmt.Sprintf("; devices.min_api is %d but %s", c.MinAPI, strings.Join(old, " and "))
		}
		return nil, fmt.Errorf("the run needs %s (devices.require) but has %d%s",
			text.Count(max(c.Require, 1), "device", "devices"), len(f.devices), why)
	}
	return f, nil
}

// serials returns the serials of the chosen devices; "" stands for the only
// attached device.
func (f *Fleet) serials(ctx context.Context, c DeviceChoice) ([]string, error) {
	switch {
	case len(c.Serials) > 0:
		return c.Serials, nil
	case c.Single:
		return []string{""}, nil
	}
	if serial := f.getenv("ANDROID_SERIAL"); serial != "" {
		return []string{serial}, nil
	}
	infos, err := f.client.Devices(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range infos {
		if d.State != "device" {
			f.skipped = append(f.skipped,
				fmt.Sprintf("device %s is %s", text.Printable(d.Serial), text.Printable(d.State)))
			continue
		}
		out = append(out, d.Serial)
	}
	if len(out) > 0 {
		return out, nil
	}
	// Select reports the problem: unauthorized, offline or no device.
	if _, err := f.client.Select(ctx, ""); err != nil {
		return nil, err
	}
	return nil, errors.New("no device is ready")
}

func (f *Fleet) describe(ctx context.Context, serial string) (monitor.Device, error) {
	dev, err := f.client.Select(ctx, serial)
	if err != nil {
		return monitor.Device{}, err
	}
	facts, err := f.facts(ctx, dev)
	return monitor.Device{Device: dev, Facts: facts}, err
}

// facts reads the properties of a device. It rejects a device that runs faster
// than real time, unless that is allowed.
func (f *Fleet) facts(ctx context.Context, dev capture.Device) (capture.Facts, error) {
	facts, err := capture.ReadFacts(ctx, dev)
	if err != nil || facts.TimeScale == 1 || f.standIn {
		return facts, err
	}
	return facts, fmt.Errorf("%w: device %s runs at %g times real time (property leakgate.time_scale), "+
		"as simulated phones do: allow it with --stand-in or %s=1, or remove the property",
		capture.ErrTimeScale, text.Printable(dev.Serial()), facts.TimeScale, standInVariable)
}

// Devices returns the devices that were chosen.
func (f *Fleet) Devices() []monitor.Device { return f.devices }

// Skipped returns the attached devices that are not ready, and the reasons.
func (f *Fleet) Skipped() []string { return f.skipped }

// InUseError is returned if another run uses a device or the run directory.
type InUseError struct {
	// Directory reports whether the resource in use is the run directory.
	Directory bool
	text      string
}

// Error names the run that uses the resource, in one printable line.
func (e InUseError) Error() string { return e.text }

// DirectoryError is returned if a directory cannot be used.
type DirectoryError struct {
	// Leases reports whether the directory is the lease directory
	// (LEAKGATE_LEASES) rather than the run directory.
	Leases bool
	error
}

// Unwrap returns the cause.
func (e DirectoryError) Unwrap() error { return e.error }

// Hold locks the devices and the run directory until Close. Until then, another
// run that needs one of them gets an error that contains the given name. If
// another run uses one of them, Hold returns an InUseError. If waiting is not
// nil, Hold instead calls it once with that error and waits for the other run
// to end.
func (f *Fleet) Hold(ctx context.Context, dir, name string, waiting func(InUseError)) error {
	folder, err := lease.Folder(f.getenv(lease.FolderVariable))
	if err != nil {
		return DirectoryError{true, err}
	}
	directory, err := lease.DirectoryKey(dir)
	if err != nil {
		return DirectoryError{false, err}
	}
	r := lease.Request{
		Folder: folder, Keys: []lease.Key{directory}, Holder: lease.NewHolder(name, dir), Wait: waiting != nil,
	}
	for _, d := range f.devices {
		r.Keys = append(r.Keys, lease.DeviceKey(f.client.Addr(), d.Serial()))
	}
	held := func(h lease.HeldError) InUseError { return InUseError{h.Key == directory, h.Error()} }
	waited := false
	r.Waiting = func(h lease.HeldError) {
		waited = true
		waiting(held(h))
	}
	taken, err := lease.Take(ctx, r)
	if other, ok := errors.AsType[lease.HeldError](err); ok && ctx.Err() == nil {
		return held(other)
	}
	if err != nil {
		return err
	}
	f.held = taken
	if !waited {
		return nil
	}
	return f.refresh(ctx)
}

// refresh reads the properties of the devices again, because their clocks have
// advanced since the first reading.
func (f *Fleet) refresh(ctx context.Context) error {
	for i, d := range f.devices {
		facts, err := f.facts(ctx, d)
		if err != nil {
			return errors.Join(err, f.Close())
		}
		f.devices[i].Facts = facts
	}
	return nil
}

// Close releases the devices and the directory. It may be called more than
// once.
func (f *Fleet) Close() error {
	if f.held == nil {
		return nil
	}
	return f.held.Release()
}
