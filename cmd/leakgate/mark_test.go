package main

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
)

// A script that waits at a mark gets an error if nothing was dumped, unless the
// run does not dump at marks.
func TestMarkWaitWithoutDump(t *testing.T) {
	const app = "version: 1\napp: { package: com.cart, processes: [com.cart] }\nworkload: none\nduration: 5m\n"
	for name, c := range map[string]struct {
		config, says string
		running      bool
		want         int
	}{
		"the app does not run": {
			app + "diagnose: { dump: at_marks }\n", `no heap dump at mark "loop 1": no process of the app was found`,
			false, record.ExitInconclusive,
		},
		"the app runs": {app + "diagnose: { dump: at_marks }\n", "", true, record.ExitClean},
		"the run does not dump at marks": {
			app + "diagnose: { dump: on_leak }\n", "the run does not dump at marks", true, record.ExitClean,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inFolder(t)
				if err := os.WriteFile("run.yaml", []byte(c.config), 0o600); err != nil {
					t.Fatal(err)
				}
				phone := androidsim.ServedDemo(60, 1)
				command := "am force-stop com.cart"
				if c.running {
					command = "am start -n com.cart/.CheckoutActivity"
				}
				phone.Shell(t.Context(), command, strings.NewReader(""), &strings.Builder{}, &strings.Builder{})
				ended := make(chan struct{})
				attached := attach(t, phone)
				go func() {
					defer close(ended)
					attached.typed(t, "run", "run.yaml", "--out", "run")
				}()
				time.Sleep(time.Second)
				code, out, errOut := typed(t, nil, "mark", "--run", "run", "--wait", "loop", "1")
				if code != c.want || out != "" || !strings.Contains(errOut, c.says) || c.says == "" && errOut != "" {
					t.Errorf("exit %d, want %d: %q %q", code, c.want, out, errOut)
				}
				<-ended
			})
		})
	}
}
