package shim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

func TestLogcat(t *testing.T) {
	dir := state.Dir(t.TempDir())
	if err := errors.Join(os.Mkdir(dir.Log(), 0o755), dir.MakeLog(), dir.WriteProperties(properties),
		dir.WriteClock(state.Clock{Scale: 1})); err != nil {
		t.Fatal(err)
	}
	run := func(args string) (out, errs string, exit int) {
		var o, e bytes.Buffer
		exit = logcat(command{dir: dir, args: strings.Fields(args), out: &o, err: &e})
		return o.String(), e.String(), exit
	}
	at := time.Date(time.Now().Year(), 3, 4, 5, 6, 7, 89e6, time.Local)
	for i, e := range []androidtext.LogEntry{
		{Buffer: "system", PID: 10, TID: 11, Priority: 'I', Tag: "ActivityManager", Text: "one"},
		{Buffer: "main", PID: 20, TID: 21, Priority: 'D', Tag: "app", Text: "two\tof two"},
		{Buffer: "crash", PID: 20, TID: 20, Priority: 'E', Tag: "AndroidRuntime", Text: "three\nfour"},
	} {
		e.Time = at.Add(time.Duration(i) * time.Second)
		if err := dir.AppendLog(e); err != nil {
			t.Fatal(err)
		}
	}
	second := func(i int) string { return at.Add(time.Duration(i) * time.Second).Format("01-02 15:04:05.000") }
	for _, tt := range []struct{ args, want string }{
		{
			"-d", "--------- beginning of system\n" + second(0) +
				"    10    11 I ActivityManager: one\n--------- beginning of main\n" + second(1) +
				"    20    21 D app     : two\tof two\n" +
				"--------- beginning of crash\n" + second(2) + "    20    20 E AndroidRuntime: three\n" + second(2) +
				"    20    20 E AndroidRuntime: four\n"},
		{"-t 1", "--------- beginning of crash\n" + second(2) + "    20    20 E AndroidRuntime: four\n"},
		{
			"-d -v brief --pid=20 *:I",
			"--------- beginning of crash\nE/AndroidRuntime(   20): three\nE/AndroidRuntime(   20): four\n",
		},
		{"-d -v raw -s app:V", "--------- beginning of main\ntwo\tof two\n"},
		{"-d -v raw -b system,main -e o.*o", "--------- beginning of main\ntwo\tof two\n"},
		{
			fmt.Sprintf("-t %d.0 -v epoch", at.Unix()+2),
			fmt.Sprintf("--------- beginning of crash\n%19d.089    20    20 E AndroidRuntime: three\n%[2]s",
				at.Unix()+2, fmt.Sprintf("%19d.089    20    20 E AndroidRuntime: four\n", at.Unix()+2)),
		},
		{
			"-d -v year -b main", "--------- beginning of main\n" +
				at.Add(time.Second).Format("2006-01-02 15:04:05.000") + "    20    21 D app     : two\tof two\n",
		},
		{"-d -b events", ""},
		{"-c", ""},
		{"-d", ""},
	} {
		if out, errs, exit := run(tt.args); out != tt.want || errs != "" || exit != 0 {
			t.Errorf("logcat %s: %q, %q, exit %d, want %q", tt.args, out, errs, exit, tt.want)
		}
	}
	for _, bad := range []string{"-t", "-t soon", "-v nice", "--nosuch", "a:b:c", "-e (", "--pid=x"} {
		if out, errs, exit := run(bad); exit != 1 || errs == "" || out != "" {
			t.Errorf("logcat %s: %q, %q, exit %d", bad, out, errs, exit)
		}
	}
}
