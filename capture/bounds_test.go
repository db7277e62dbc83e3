package capture

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// If the value that is judged is impossible, the whole reading is an error; any
// other impossible value becomes unknown.
func TestImpossibleReadings(t *testing.T) {
	status := Target{Process: Process{Name: "com.p5", PID: 5, Start: 500}, Level: Level{Source: Status}}
	for _, c := range []struct {
		target                 Target
		pss, swapPss, rss, vms string
		want                   string
	}{
		{rollupTarget(5, 500), "8388608", "33554432", "8388608", "33554432", ""},
		{rollupTarget(5, 500), "8388609", "0", "1", "1", "read Pss of com.p5: 8388609 kB exceeds the 8388608 kB"},
		{rollupTarget(5, 500), "18014398509481984", "0", "1", "1", "read Pss of com.p5: 18014398509481984 kB"},
		{
			rollupTarget(5, 500), "1", "33554433", "1", "1",
			"read SwapPss of com.p5: 33554433 kB exceeds the 33554432 kB",
		},
		{rollupTarget(5, 500), "1", "1", "18014398509481984", "18014398509481984", ""},
		{status, "1", "1", "18014398509481984", "0", "read RssAnon of com.p5: 18014398509481984 kB"},
		{status, "1", "1", "1", "33554433", "read VmSwap of com.p5: 33554433 kB"},
	} {
		out := "1000.25 2000.00\n" + lines("5/stat", statLine(5, "five", 500)) +
			lines("5/status", fmt.Sprintf("Threads:\t12\nRssAnon:\t  %s kB\nVmSwap:\t %s kB\n", c.rss, c.vms)) +
			lines("5/smaps_rollup", fmt.Sprintf("Pss:      %s kB\nSwapPss:    %s kB\n", c.pss, c.swapPss)) + end
		fast := NewFast(answering(out, ""))
		fast.MemTotal = 8 << 30
		rounds, err := fast.Read(t.Context(), []Target{c.target}, 0, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		r := rounds[0].Readings[0]
		if c.want == "" && (r.Err != nil || !r.PSS.Known) || c.want != "" &&
			(r.Err == nil || !strings.HasPrefix(r.Err.Error(), c.want) || r.PSS.Known) {
			t.Errorf("%+v: %v, want %q", c, r.Err, c.want)
		}
		if possible := c.rss != "18014398509481984"; r.RSSAnon.Known != possible {
			t.Errorf("%+v: RssAnon %v", c, r.RSSAnon)
		}
	}
}

// If the device printed neither the value nor a message, the error says only
// that the value is not in the output.
func TestMissingValueWithoutErrorOutput(t *testing.T) {
	out := "1000.25 2000.00\n" + lines("5/stat", statLine(5, "five", 500)) + lines("5/status", "Threads:\t12\n") + end
	for said, want := range map[string]string{
		"":                "read Pss of com.p5: not in the output",
		"grep: no memory": "read Pss of com.p5: not in the output: grep: no memory",
	} {
		rounds, err := NewFast(answering(out, said)).Read(t.Context(), []Target{rollupTarget(5, 500)}, 0, time.Second)
		if err != nil || rounds[0].Readings[0].Err == nil || rounds[0].Readings[0].Err.Error() != want {
			t.Errorf("%v, %v, want %s", err, rounds, want)
		}
	}
}
