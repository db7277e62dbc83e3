package hostdevice

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// keeper is a process that outlives the device's own by a moment, see shim.Keep.
type keeper struct {
	cmd  *exec.Cmd
	line io.Closer
}

func startKeeper(program, dir string) (*keeper, error) {
	cmd := exec.Command(program, "keep", dir)
	cmd.Env = []string{}
	// A session of its own keeps the signals of a terminal away from it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	line, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start keeper: %w", err)
	}
	return &keeper{cmd, line}, nil
}

// close lets it do its work and waits for it.
func (k *keeper) close() error {
	k.line.Close()
	if err := k.cmd.Wait(); err != nil {
		return fmt.Errorf("end what the device started: %w", err)
	}
	return nil
}
