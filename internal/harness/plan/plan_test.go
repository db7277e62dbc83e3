package plan

import (
	"reflect"
	"testing"
	"time"

	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/config"
)

// The workload of a file becomes a workload of the monitor, with all settings
// of the file.
func TestWorkloads(t *testing.T) {
	for text, want := range map[string]monitor.Workload{
		"none\nduration: 1h":        nil,
		"{ command: [sh, x] }":      monitor.HostCommand{Args: []string{"sh", "x"}},
		"{ device_command: input }": monitor.DeviceCommand{Command: "input"},
		"{ instrument: a.b/.C }":    monitor.Instrument{Component: "a.b/.C"},
		"{ instrument: { component: a.b, class: [a.B, a.C#d], " +
			"arguments: { size: small }, delay_after_test: 3s } }": monitor.Instrument{
			Component: "a.b", Arguments: map[string]string{"size": "small", "class": "a.B,a.C#d"},
			Delay: 3 * time.Second},
		"{ monkey: { events: 5, seed: 1, throttle: 1s } }": monitor.Monkey{
			Package: "com.shop", Seed: 1, Events: 5, Throttle: time.Second,
		},
	} {
		cfg, err := config.Parse("run.yaml", []byte("version: 1\napp: { package: com.shop }\nworkload: "+text+"\n"),
			nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := workload(cfg); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", text, got)
		}
	}
	cfg, err := config.Parse("run.yaml",
		[]byte("version: 1\napp: { package: com.shop }\nworkload: { device_command: x, windows: { begin: 'b(.)', "+
			"end: e } }\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := workload(cfg).(monitor.DeviceCommand); !ok || c.Windows == nil || c.Windows.Begin.String() != "b(.)" ||
		c.Windows.End.String() != "e" {
		t.Errorf("%+v", workload(cfg))
	}
}
