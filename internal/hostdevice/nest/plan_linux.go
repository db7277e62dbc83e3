package nest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Plan describes the file system and the programs of a nest.
type Plan struct {
	// Root is an empty directory in which the phone's root is assembled.
	Root string
	// Binds are mounted into the root in the order of the list.
	Binds []Bind
	// Server is the adb server; its path is on this machine. Daemon is adbd;
	// its path is on the phone.
	Server, Daemon Command
}

// Bind mounts a directory or file of this machine at a path on the phone.
type Bind struct{ From, To string }

// Command is a program that runs for the lifetime of the nest.
type Command struct {
	Args, Env []string
	UID       int
	Groups    []uint32
}

// Arg encodes the plan as a command-line argument for Run.
func (p Plan) Arg() (string, error) {
	text, err := json.Marshal(p)
	return string(text), err
}

// Run sets up the nest in the namespaces in which its process was started. When
// the adb server or adbd exits, Run stops the other and returns.
func Run(args []string) int {
	if len(args) != 1 {
		return 2
	}
	var p Plan
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		fmt.Fprintf(os.Stderr, "nest: %v\n", err)
		return 2
	}
	if err := p.run(); err != nil {
		fmt.Fprintf(os.Stderr, "nest: %v\n", err)
		return 1
	}
	return 0
}

func (p Plan) run() error {
	// Children die with the thread that started them, and they inherit its
	// seccomp filter.
	runtime.LockOSThread()
	if err := raiseLoopback(); err != nil {
		return fmt.Errorf("start loopback interface: %w", err)
	}
	if err := p.makeRoot(); err != nil {
		return err
	}
	if err := forbidVsock(); err != nil {
		return fmt.Errorf("forbid sockets to the hypervisor: %w", err)
	}
	ended := make(chan error, 2)
	for _, c := range []struct {
		name, root string
		Command
	}{{"adb server", "", p.Server}, {"adbd", p.Root, p.Daemon}} {
		cmd, err := c.start(c.root)
		if err != nil {
			return fmt.Errorf("start %s: %w", c.name, err)
		}
		go func() {
			cmd.Wait()
			ended <- fmt.Errorf("%s ended: %s", c.name, cmd.ProcessState)
		}()
	}
	return <-ended
}

func (c Command) start(root string) (*exec.Cmd, error) {
	cmd := &exec.Cmd{Path: c.Args[0], Args: c.Args, Env: c.Env, Dir: "/", Stdout: os.Stdout, Stderr: os.Stderr}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot: root, Pdeathsig: syscall.SIGKILL,
		Credential: &syscall.Credential{Uid: uint32(c.UID), Gid: uint32(c.UID), Groups: c.Groups},
	}
	return cmd, cmd.Start()
}
