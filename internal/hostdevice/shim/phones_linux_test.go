package shim

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// TestPrintsLikeSimulatedPhone compares the commands with those of the
// simulated phone at each API level. The exit codes of logcat are not compared.
func TestPrintsLikeSimulatedPhone(t *testing.T) {
	for api := 21; api <= 36; api++ {
		synctest.Test(t, func(t *testing.T) {
			p := androidsim.New(androidsim.Options{API: api, BuildType: "userdebug", Apps: []androidsim.App{{
				Package: "com.example.leaky", Processes: []androidsim.ProcessSpec{{Name: "com.example.leaky"}},
			}}})
			dir := state.Dir(t.TempDir())
			list := append([]state.Property{}, properties...)
			list[1].Value = strconv.Itoa(api)
			if err := os.Mkdir(dir.Log(), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{
				dir.WriteProperties(list), dir.WriteClock(state.Clock{Scale: 1}), dir.MakeLog(),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			for _, line := range [][]string{
				{"logcat", "-v", "nosuch"}, {"logcat", "-b", "nosuch"}, {"logcat", "-t"}, {"logcat", "-d", "-q"},
				{"logcat", "-e", "x("},
				{"logcat", "--pid=x"}, {"logcat", "a:b:c"}, {"logcat", "-T", "then"}, {"logcat", "-g"},
				{"logcat", "--nosuch"},
				{"monkey"}, {"monkey", "-x", "1", "5"}, {"monkey", "--throttle", "-5", "5"},
				{"monkey", "-p", "com.other", "5"},
				{"monkey", "-v", "-p", "com.example.leaky", "-s", "7", "--throttle", "50", "--pct-touch", "20", "250"},
				{"monkey", "-s", "7", "--throttle", "50", "101"},
				{"showmap"}, {"showmap", "-x"}, {"showmap", "1073741824"}, {"showmap", "-q", "1073741824"},
			} {
				var out, errs, simOut, simErrs bytes.Buffer
				exit := commands[line[0]](command{dir: dir, args: line[1:], out: &out, err: &errs})
				text := ""
				for _, word := range line {
					text += " '" + word + "'"
				}
				simExit := p.Shell(t.Context(), text, nil, &simOut, &simErrs)
				if out.String() != simOut.String() || errs.String() != simErrs.String() || exit != simExit &&
					line[0] != "logcat" {
					t.Errorf("API %d: %q: %q, %q, exit %d; the simulated phone: %q, %q, exit %d",
						api, line, out.String(), errs.String(), exit, simOut.String(), simErrs.String(), simExit)
				}
				if fmt.Sprint(out, errs) == fmt.Sprint(bytes.Buffer{}, bytes.Buffer{}) && line[1] != "-q" {
					t.Errorf("API %d: %q prints nothing", api, line)
				}
			}
		})
	}
}
