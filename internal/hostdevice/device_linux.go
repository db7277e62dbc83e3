package hostdevice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/hostdevice/control"
	"github.com/leakgate/leakgate/internal/hostdevice/shim"
	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// Device makes this machine act as a phone. Create it with New.
type Device struct {
	options Options
	dir     state.Dir
	clock   state.Clock
	shared  *os.Root
	env     []string

	ctx     context.Context
	cancel  context.CancelFunc
	mu      sync.Mutex // guards ended and nest
	ended   bool
	nest    *Nest
	running sync.WaitGroup
	starter *starter
	control *control.Server
	keeper  *keeper
	app     *app

	commands atomic.Int64
	closing  sync.Once
	closed   error
}

var _ adbd.Phone = (*Device)(nil)

// New creates a device; Close shuts it down. If this process is killed before
// Close, a small process that New started kills the device's processes and
// removes its directory.
func New(o Options) (*Device, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("make host device: %w", err)
	}
	dir, err := os.MkdirTemp(o.Dir, "hostdevice-")
	if err != nil {
		return nil, fmt.Errorf("make host device: %w", err)
	}
	d := &Device{options: o, dir: state.Dir(dir), starter: newStarter()}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if err := d.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("make host device: %w", err), d.Close())
	}
	return d, nil
}

func (d *Device) prepare() error {
	if err := d.makeDirs(); err != nil {
		return err
	}
	if err := d.installCommands(); err != nil {
		return err
	}
	base, err := state.HostUptime()
	if err != nil {
		return err
	}
	d.clock = state.Clock{Base: base, Scale: d.options.Scale}
	if err := d.dir.MakeLog(); err != nil {
		return err
	}
	if err := d.dir.WriteClock(d.clock); err != nil {
		return err
	}
	if err := d.dir.WriteProperties(d.options.properties()); err != nil {
		return err
	}
	if d.shared, err = os.OpenRoot(d.dir.Shared()); err != nil {
		return err
	}
	d.env = []string{
		"PATH=" + d.dir.Bin(), "HOME=/", "SHELL=/bin/sh", "LANG=C", "TMPDIR=" + d.dir.Shared(),
		state.Variable + "=" + string(d.dir),
	}
	d.app = newApp(d)
	if d.keeper, err = startKeeper(d.program(), string(d.dir)); err != nil {
		return err
	}
	d.control, err = control.Listen(d.dir.Control(), d.serve)
	return err
}

// makeDirs creates the directories that the shell and the app may enter but not
// list. If the shell and the app run as the user that runs the device, other
// users may not enter the directories.
func (d *Device) makeDirs() error {
	own := os.Getuid()
	if d.options.ShellUID != own || d.options.AppUID != own {
		if err := os.Chmod(string(d.dir), 0o711); err != nil {
			return err
		}
	}
	for path, mode := range map[string]os.FileMode{
		d.dir.Bin(): 0o755, d.dir.App(): 0o755, d.dir.Log(): 0o777, d.dir.Home(): 0o700, d.dir.Shared(): 0o777,
	} {
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
	}
	return os.Chown(d.dir.Home(), d.options.AppUID, -1)
}

// program returns a copy of the program in the device's directory, because the
// shell's user may not be able to access the original.
func (d *Device) program() string { return filepath.Join(d.dir.Bin(), "hostdevice") }

func (d *Device) installCommands() error {
	if err := copyProgram(d.program(), d.options.Program); err != nil {
		return err
	}
	for _, tool := range shim.Tools() {
		path, err := exec.LookPath(tool)
		if err != nil {
			continue
		}
		if err := os.Symlink(path, filepath.Join(d.dir.Bin(), tool)); err != nil {
			return err
		}
	}
	for _, name := range shim.Names(d.options.Scale) {
		link := filepath.Join(d.dir.Bin(), name)
		os.Remove(link)
		if err := os.Symlink("hostdevice", link); err != nil {
			return err
		}
	}
	return nil
}

// copyProgram copies the program while it holds a lock that prevents this
// process from starting others: if a child inherited the open copy, starting
// the copy would fail with ETXTBSY.
func copyProgram(to, from string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(0o755), out.Close())
}

// Identity describes the phone.
func (d *Device) Identity() adbd.Identity {
	return adbd.Identity{
		Serial: d.options.Serial, Product: "hostdevice", Model: d.options.Model, Device: "hostdevice",
		Features: adbd.ModernFeatures(),
	}
}

// Package returns the name of the app.
func (d *Device) Package() string { return d.options.Package }

// Dir returns the device's own directory on this machine. Close removes it.
func (d *Device) Dir() string { return string(d.dir) }

// Close terminates all commands, the app and every other process started in the
// device, and removes the device's directory.
func (d *Device) Close() error {
	d.closing.Do(func() { d.closed = d.close() })
	return d.closed
}

// enter registers an operation on the device; it returns false if the device is
// closed.
func (d *Device) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ended {
		d.running.Add(1)
	}
	return !d.ended
}

func (d *Device) close() error {
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	d.cancel()
	var errs []error
	if d.control != nil {
		errs = append(errs, d.control.Close())
	}
	d.running.Wait()
	if d.nest != nil {
		d.nest.close()
	}
	if d.app != nil {
		d.app.stopAll()
	}
	if d.shared != nil {
		errs = append(errs, d.shared.Close())
	}
	if d.keeper != nil {
		errs = append(errs, d.keeper.close())
	} else {
		errs = append(errs, os.RemoveAll(string(d.dir)))
	}
	d.starter.close()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close host device: %w", err)
	}
	return nil
}
