package hostdevice

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// keeper is a process that outlives the device's own process in order to clean
// up; see shim.WaitForEOF.
type keeper struct {
	cmd  *exec.Cmd
	line io.Closer
}

func startKeeper(program, dir string) (*keeper, error) {
	cmd := exec.Command(program, "keep", dir)
	cmd.Env = []string{}
	// A process in its own session does not receive the terminal's signals.
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

// close starts the clean-up and waits for it.
func (k *keeper) close() error {
	k.line.Close()
	if err := k.cmd.Wait(); err != nil {
		return fmt.Errorf("kill processes of the device: %w", err)
	}
	return nil
}
