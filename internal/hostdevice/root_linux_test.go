//go:build e2e

package hostdevice_test

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/leakgate/leakgate/internal/adbd/adbtest"
	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// If root runs a device, its port must not give root access to anyone, because
// every user of this machine can connect to it.
func TestPortGivesNobodyRoot(t *testing.T) {
	if os.Getuid() != 0 {
		recorded.Missing(t, "only root could expose root")
	}
	started := hostdevicetest.Start(t, hostdevice.Options{})
	server := adbtest.StartServer(t)
	cmd := exec.Command(hostdevicetest.Program(t), "serve", "--listen", "127.0.0.1:0", "--package", "com.example.root")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	serial := server.Connect(t, strings.Fields(line)[2])
	served := &hostdevicetest.Running{Serial: serial, Server: server}
	for name, r := range map[string]*hostdevicetest.Running{"of a test": started, "served": served} {
		pkg := "com.example.root"
		if r.Device != nil {
			pkg = r.Package()
		}
		for command, want := range map[string]string{
			"id":                                 `^uid=2000\b.* gid=2000\b.* groups=2000\b[^,]*\n$`,
			"cat /etc/shadow":                    `^$`,
			"run-as " + pkg + " id":              `^uid=10123\b.* groups=10123\b[^,]*\n$`,
			"run-as " + pkg + " cat /etc/shadow": `^$`,
			"cat /proc/1/environ /proc/1/maps":   `^$`,
		} {
			if out, errs, _ := r.ADB(t, "shell", command); !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("%s: %s printed %q, %q", name, command, out, errs)
			}
		}
		if _, _, exit := r.ADB(t, "pull", "/etc/shadow", t.TempDir()); exit == 0 {
			t.Errorf("%s: /etc/shadow was pulled", name)
		}
	}
	for _, args := range [][]string{{"--shell-uid", "0"}, {"--app-uid", "0"}, {"--shell-uid", "-1"}} {
		refused := exec.Command(hostdevicetest.Program(t),
			append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
		if out, err := refused.CombinedOutput(); refused.ProcessState.ExitCode() != 2 ||
			!strings.Contains(string(out), "UID 0 requires --root") {
			t.Errorf("%q: %v, %s", args, err, out)
		}
	}
}
