package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
)

// oddPhone is a phone with a shell that misbehaves.
type oddPhone struct {
	*androidsim.Phone
	shell func(ctx context.Context, stdout io.Writer) int
}

func (p oddPhone) Shell(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) int {
	if strings.Contains(command, "kill") { // the client ends an abandoned command this way
		return p.Phone.Shell(ctx, command, stdin, stdout, stderr)
	}
	return p.shell(ctx, stdout)
}

// If a phone does not respond, each command prints the same explanation as
// doctor, and refers to doctor.
func TestUnresponsiveDeviceAtStart(t *testing.T) {
	file := write(t, "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 45m\n")
	t.Chdir(t.TempDir())
	verbs := [][]string{
		{"watch", "--process", "com.shop", "--for", "45m"}, {"run", file}, {"diagnose", "--process", "com.shop"},
		{"trip", "--process", "com.shop", "--loops", "5", "--", "true"},
	}
	for name, c := range map[string]struct {
		shell func(context.Context, io.Writer) int
		want  string
	}{
		"does not respond": {func(ctx context.Context, _ io.Writer) int { <-ctx.Done(); return 1 },
			`device "phone-a" is listed, but its shell did not respond within 20s: reconnect it or run ` +
				"`adb reconnect`; if that does not help, reboot the device"},
		"output never ends": {func(ctx context.Context, out io.Writer) int {
			for block := make([]byte, 1<<20); ctx.Err() == nil; {
				if _, err := out.Write(block); err != nil {
					break
				}
				time.Sleep(10 * time.Millisecond) // lets the clock of the synctest bubble advance
			}
			return 1
		}, `device "phone-a" printed more than 32.0 MB in answer to a short command`},
	} {
		for _, args := range verbs {
			synctest.Test(t, func(t *testing.T) {
				phones := attach(t, oddPhone{shop("phone-a"), c.shell})
				code, out, errOut := phones.typed(t, args...)
				if code != record.ExitNoDevice || out != "" || !strings.Contains(errOut, c.want) ||
					!strings.Contains(errOut, "run `leakgate doctor` for details") {
					t.Errorf("%s, %s: exit %d, stdout %q\n%s", name, args[0], code, out, errOut)
				}
				for _, word := range []string{"context", "deadline", "33554432", "write the output"} {
					if strings.Contains(errOut, word) {
						t.Errorf("%s, %s: %q in %s", name, args[0], word, errOut)
					}
				}
			})
		}
	}
}
