//go:build e2e

package capture_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// holdVariable is the environment variable that contains a number of megabytes.
// If it is set, this test binary allocates that much memory and waits instead
// of running tests.
const holdVariable = "LEAKGATE_TEST_HOLD_MB"

func TestMain(m *testing.M) {
	if mb, err := strconv.Atoi(os.Getenv(holdVariable)); err == nil {
		hold(mb)
		return
	}
	os.Exit(m.Run())
}

func hold(mb int) {
	memory := make([]byte, mb<<20)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	if _, err := os.Stdout.WriteString("holding\n"); err != nil {
		return
	}
	time.Sleep(time.Hour)
	runtime.KeepAlive(memory)
}

// holder starts a process with the given name that holds memory.
func holder(t testing.TB, name string, mb int) {
	t.Helper()
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{name}, Env: append(os.Environ(), fmt.Sprintf("%s=%d", holdVariable, mb)),
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // otherwise the process would wait forever
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
}

// connect returns the host device, connected through the real adb server.
func connect(t testing.TB, o hostdevice.Options) (*hostdevicetest.Running, *adb.Device) {
	t.Helper()
	r := hostdevicetest.StartRooted(t, o)
	client, err := adb.NewClient(adb.Options{Addr: fmt.Sprintf("127.0.0.1:%d", r.ADBPort), NoStart: true})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := client.Select(context.Background(), r.Serial)
	if err != nil {
		t.Fatal(err)
	}
	return r, dev
}

// targets finds the processes that match the pattern and probes the level of
// each.
func targets(t testing.TB, dev capture.Device, pattern capture.Pattern) []capture.Target {
	t.Helper()
	facts, err := capture.ReadFacts(context.Background(), dev)
	if err != nil {
		t.Fatal(err)
	}
	found, err := capture.FindProcesses(context.Background(), dev, []capture.Pattern{pattern})
	if err != nil {
		t.Fatal(err)
	}
	levels := capture.NewLevels(dev, facts)
	var out []capture.Target
	for _, p := range found.Processes {
		probe, err := levels.Probe(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, capture.Target{Process: p, Level: probe.Level})
	}
	return out
}

// One round trip through the real adb server and a real shell samples 50 real
// processes.
func TestFastChannelSamples50ProcessesInOneRequest(t *testing.T) {
	_, dev := connect(t, hostdevice.Options{})
	name := fmt.Sprintf("com.leakgate.fifty%d", os.Getpid())
	for i := range 50 {
		holder(t, fmt.Sprintf("%s:p%02d", name, i), 1+i%3)
	}
	watched := targets(t, dev, capture.Pattern(name+":*"))
	if len(watched) != 50 {
		t.Fatalf("found %d processes", len(watched))
	}
	rounds, err := capture.NewFast(dev).Read(t.Context(), watched, 0, 20*time.Second)
	if err != nil || len(rounds) != 1 {
		t.Fatalf("%d rounds, %v", len(rounds), err)
	}
	for _, r := range rounds[0].Readings {
		if r.Err != nil || r.PSS.N < 1<<10 || !r.Threads.Known {
			t.Errorf("%+v", r)
		}
	}
}

// BenchmarkFastChannel measures one round through the real adb server with 1,
// 10 and 50 real processes; each of the first ten has a resident set of 200 MB.
// The requirement: the median of a round with ten processes stays under 100 ms.
func BenchmarkFastChannel(b *testing.B) {
	_, dev := connect(b, hostdevice.Options{})
	name := fmt.Sprintf("com.leakgate.bench%d", os.Getpid())
	for i := range 50 {
		mb := 2
		if i < 10 {
			mb = 200
		}
		holder(b, fmt.Sprintf("%s:p%02d", name, i), mb)
	}
	all := targets(b, dev, capture.Pattern(name+":*"))
	slices.SortFunc(all, func(x, y capture.Target) int { return strings.Compare(x.Name, y.Name) })
	if len(all) != 50 {
		b.Fatalf("found %d processes", len(all))
	}
	median := map[int]float64{}
	for _, n := range []int{1, 10, 50} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			fast := capture.NewFast(dev)
			var took []float64
			b.ReportAllocs()
			for b.Loop() {
				rounds, err := fast.Read(context.Background(), all[:n], 0, 20*time.Second)
				if err != nil || len(rounds) != 1 {
					b.Fatal(len(rounds), err)
				}
				for _, r := range rounds[0].Readings {
					if r.Err != nil {
						b.Fatal(r.Err)
					}
				}
				took = append(took, rounds[0].Took.Seconds()*1000)
			}
			slices.Sort(took)
			median[n] = took[len(took)/2]
			b.ReportMetric(median[n], "ms/round(median)")
			if n > 1 {
				b.ReportMetric((median[n]-median[1])/float64(n-1), "ms/added-process")
			}
		})
	}
}

// On a user build, the kernel decides what may be read: the shell is not root,
// and the app has another uid. The source that is used is reported, and so are
// the reasons why better sources are not used.
func TestLevelsOfAUserBuild(t *testing.T) {
	if os.Getuid() != 0 {
		recorded.Missing(t, "needs root to use two uids")
	}
	hostdevicetest.RequireJava(t)
	for name, c := range map[string]struct {
		released bool
		source   capture.Source
	}{"debuggable": {false, capture.RunAs}, "released": {true, capture.Status}} {
		t.Run(name, func(t *testing.T) {
			r, dev := connect(t,
				hostdevice.Options{ShellUID: 2000, AppUID: 10123, BuildType: "user", Released: c.released})
			r.Must(t, "shell", "am start -n "+r.Package()+"/.Control")
			var watched []capture.Target
			for range 100 {
				if watched = targets(t, dev, capture.Pattern(r.Package()+":*")); len(watched) > 0 {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			if len(watched) != 1 || watched[0].Level.Source != c.source {
				t.Fatalf("%+v", watched)
			}
			rounds, err := capture.NewFast(dev).Read(t.Context(), watched, 0, 20*time.Second)
			if err != nil || rounds[0].Readings[0].Err != nil || rounds[0].Readings[0].PSS.N+
				rounds[0].Readings[0].RSSAnon.N < 1<<10 {
				t.Errorf("%+v, %v", rounds, err)
			}
		})
	}
}
