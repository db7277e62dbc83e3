package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
)

// shop returns a phone whose app occasionally leaks a screen.
func shop() *androidsim.Phone {
	healthy := []androidsim.Model{androidsim.Typical()}
	return androidsim.New(androidsim.Options{
		Serial: "phone-a", Scale: 20, Seed: 3, Root: true, BuildType: "userdebug", Apps: []androidsim.App{{
			Package: "com.shop", Debuggable: true, Processes: []androidsim.ProcessSpec{
				{Name: "com.shop", Models: append(healthy, androidsim.Leak(androidsim.Java, 1000, 0))},
				{Name: "com.shop:push", Models: healthy},
			},
		}}})
}

// The program finds the leak. Whether it completes, is stopped by Ctrl-C or
// loses the phone, it leaves no goroutine, lease, socket or file behind. A
// synctest bubble fails if a goroutine remains in it.
func TestWatch(t *testing.T) {
	for name, c := range map[string]end{
		"done": {time.Hour, func(func(), *adbd.Server) {}, record.ExitLeak, record.StoppedFinished},
		"interrupted": {
			3 * time.Second, func(interrupt func(), _ *adbd.Server) { interrupt() }, record.ExitInterrupted,
			record.StoppedInterrupted,
		},
		"lost": {
			3 * time.Second, func(_ func(), server *adbd.Server) { server.Close() }, record.ExitNoDevice,
			record.StoppedDevices,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			synctest.Test(t, c.check)
		})
	}
}

// end describes how a run ends.
type end struct {
	after   time.Duration // time until the call of happens
	happens func(interrupt func(), server *adbd.Server)
	exit    int
	stopped string
}

// check runs the program in the working directory, in a bubble.
func (c end) check(t *testing.T) {
	leases := t.TempDir()
	t.Setenv("LEAKGATE_LEASES", leases)
	t.Setenv("LEAKGATE_STAND_IN", "1")
	server := adbd.NewServer(shop())
	ctx, interrupt := context.WithCancel(t.Context())
	client, err := adb.NewClient(adb.Options{Dial: server.Dial, NoStart: true})
	if err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(c.after, func() { c.happens(interrupt, server) })
	var out strings.Builder
	werr := watch(ctx, &out, client, "com.shop")
	stop.Stop()
	interrupt()
	runs, err := filepath.Glob("leakgate-runs/*-embed")
	if err != nil || len(runs) != 1 {
		t.Fatalf("%v, %v, %v", runs, err, werr)
	}
	run, err := record.ReadRun(runs[0])
	if err != nil || run.ExitCode != c.exit || run.Stopped != c.stopped {
		t.Errorf("exit %d, %s, %v, %v\n%s", run.ExitCode, run.Stopped, err, werr, out.String())
	}
	if c.exit == record.ExitLeak &&
		(werr != nil || !strings.Contains(out.String(), "LEAK DetailActivity, held by ScreenTracker.sScreens")) {
		t.Errorf("%v\n%s", werr, out.String())
	}
	server.Close()
	left, _ := filepath.Glob(filepath.Join(leases, "*"))
	hidden, _ := filepath.Glob(filepath.Join(runs[0], ".*"))
	if len(left)+len(hidden) > 0 {
		t.Errorf("left: %q %q", left, hidden)
	}
	if _, err := os.Stat(filepath.Join(runs[0], record.SamplesName)); err != nil {
		t.Error(err)
	}
}
