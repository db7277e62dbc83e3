package dumpsys_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
)

// TestPhoneReportsHowItsProcessEnded checks that the log and the exit info of a
// simulated process show the same end of the process.
func TestPhoneReportsHowItsProcessEnded(t *testing.T) {
	for _, api := range []int{21, 23, 26, 28, 29, 30, 31, 34, 36} {
		for _, c := range []struct {
			name, end   string // the command that ends the process, or ""
			reason      string
			crash, kill bool // according to the exit info
			log         dumpsys.LogKind
		}{
			{"crash", "", "CRASH", true, false, dumpsys.LogCrash},
			{"low memory", "", "LOW_MEMORY", false, true, dumpsys.LogLowMemoryKill},
			{"signal 9", "kill -9 PID", "SIGNALED", false, true, dumpsys.LogDied},
			{"force stop", "am force-stop com.shop", "USER_REQUESTED", false, false, dumpsys.LogKill},
		} {
			t.Run(strconv.Itoa(api)+" "+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					spec := androidsim.ProcessSpec{Name: "com.shop", Models: []androidsim.Model{androidsim.Typical()}}
					if c.name == "crash" {
						spec.CrashAfter = 10 * time.Minute
					}
					p := androidsim.New(
						androidsim.Options{
							API: api, Root: true, BuildType: "userdebug", Seed: 5,
							Apps: []androidsim.App{{Package: "com.shop", Processes: []androidsim.ProcessSpec{spec}}},
						})
					time.Sleep(5 * time.Minute)
					pid := pidOf(t, p)
					if c.name == "low memory" && !p.Kill("com.shop") {
						t.Fatal("com.shop is not running")
					}
					said(t, p, strings.ReplaceAll(c.end, "PID", strconv.FormatInt(pid, 10)))
					time.Sleep(6 * time.Minute)

					for _, format := range []string{"threadtime", "time", "brief"} {
						kernel := "" // the option for the log of the low memory killer before Android 9
						if api < 28 && c.name == "low memory" {
							kernel = " -b kernel"
						}
						text := said(t, p, "logcat -d -v "+format+" -b main -b system -b events -b crash"+kernel)
						log, err := dumpsys.ScanLogcat(strings.NewReader(text), pid, "com.shop")
						if err != nil || len(log.Warnings) > 0 || log.Mentions[c.log].Count == 0 ||
							log.Mentions[dumpsys.LogGC].Count == 0 || !log.GC.HeapUsed.Known ||
							log.GC.HeapUsed.N > log.GC.HeapTotal.N {
							t.Errorf("%s: %v, %+v\n%s", format, err, log, text)
						}
						if log.Crash() != c.crash {
							t.Errorf("%s: crash %t", format, log.Crash())
						}
					}
					info, err := dumpsys.ParseExitInfo([]byte(said(t, p, "dumpsys activity exit-info com.shop")))
					if api < 30 {
						if e, ok := err.(dumpsys.DeviceError); !ok || e.Kind != dumpsys.Unsupported {
							t.Errorf("before Android 11: %v, %+v", err, info)
						}
						return
					}
					if err != nil || len(info.Exits) != 1 || info.Truncated || info.Warnings != nil {
						t.Fatalf("%v, %+v", err, info)
					}
					e := info.Exits[0]
					if e.PID.N != pid || e.Process != "com.shop" || string(e.ReasonName) != c.reason ||
						e.Crash() != c.crash || e.Kill() != c.kill || !e.Rss.Known || e.Pss.Known != (api < 34) {
						t.Errorf("%+v", e)
					}
				})
			})
		}
	}
}

func said(t *testing.T, p *androidsim.Phone, command string) string {
	t.Helper()
	var out bytes.Buffer
	p.Shell(t.Context(), command, nil, &out, &out)
	return out.String()
}

func pidOf(t *testing.T, p *androidsim.Phone) int64 {
	t.Helper()
	for line := range strings.Lines(said(t, p, "ps; ps -A")) { // Android 8 and later list all only with -A
		if f := strings.Fields(line); len(f) > 2 && f[len(f)-1] == "com.shop" {
			pid, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("com.shop is not running")
	return 0
}
