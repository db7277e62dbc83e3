package adb

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// startTimeout bounds `adb start-server`, which returns when the server listens
// and has scanned for USB devices.
const startTimeout = 20 * time.Second

// startServer starts a server on a port of this machine. The caller must hold
// turn. Like every adb program, `adb start-server` kills a server of another
// version. Here it can kill only a server that appeared within the last
// milliseconds, because the command runs right after a dial that found no
// server.
func (c *Client) startServer(ctx context.Context, s *serverState, port string) error {
	adb, err := c.findADB()
	if err != nil {
		return &fault{
			kind: ErrNoServer, cause: err,
			text: fmt.Sprintf("no adb server at %s and no adb program to start one: install Android platform-tools "+
				"(Debian: package adb) or add adb to PATH", c.at.addr),
		}
	}
	return s.start(ctx, func() error { return c.launch(ctx, adb, port) })
}

// findADB returns the path of the adb program, which is run only for
// start-server.
func (c *Client) findADB() (string, error) {
	if c.opt.ADBPath != "" {
		return exec.LookPath(c.opt.ADBPath)
	}
	path, err := exec.LookPath("adb")
	if err == nil {
		return path, nil
	}
	for _, home := range []string{"ANDROID_HOME", "ANDROID_SDK_ROOT"} {
		if dir := c.opt.Getenv(home); dir != "" {
			if path, err := exec.LookPath(filepath.Join(dir, "platform-tools", "adb")); err == nil {
				return path, nil
			}
		}
	}
	return "", err
}

// runStart runs `adb start-server`. Its output goes to a file instead of a
// pipe: the server that the command starts may keep its streams open forever.
func (c *Client) runStart(ctx context.Context, adb, port string) (err error) {
	log, err := os.CreateTemp(c.opt.LogDir, "adb-start-server-*.log")
	if err != nil {
		return fmt.Errorf("create the log of adb start-server: %w", err)
	}
	defer func() {
		_ = log.Close()
		if err == nil || ctx.Err() != nil {
			_ = os.Remove(log.Name())
		}
	}()
	limited, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// Only -L overrides all environment variables: -P leaves
	// ANDROID_ADB_SERVER_ADDRESS in effect. Release 29 accepts no host name
	// except localhost.
	cmd := exec.CommandContext(limited, adb, "-L", "tcp:localhost:"+port, "start-server")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = detached()
	if err := cmd.Run(); err != nil {
		return &fault{
			kind: ErrNoServer, cause: err,
			text: fmt.Sprintf("no adb server at %s, and `adb start-server` failed with %s: see %s", c.at.addr,
				lastLine(log, err), log.Name()),
		}
	}
	return nil
}

// lastLine returns the last line that the program printed, in quotes, or the
// error if it printed nothing.
func lastLine(log *os.File, err error) string {
	tail := make([]byte, maxQuoted)
	size, serr := log.Seek(0, io.SeekEnd)
	if serr != nil || size == 0 {
		return quoted(err.Error())
	}
	n, _ := log.ReadAt(tail, max(0, size-int64(len(tail))))
	return quoted(string(tail[:n]))
}
