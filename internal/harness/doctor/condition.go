package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/known"
)

// deviceCondition describes the parts of a device's state that may degrade or
// stop a run.
type deviceCondition struct {
	// Booted is 1 once Android has booted, 0 before.
	Booted known.Int
	// SU is the path of the su program, or empty.
	SU string
	// DataFree is the space on /data that is available to the shell, in bytes.
	DataFree known.Int
	Battery  deviceBattery
}

// deviceBattery is the output of the battery service. It is unknown for a
// device without a battery.
type deviceBattery struct {
	// Percent is the charge, 0 to 100.
	Percent known.Int
	// Temperature is in tenths of a degree Celsius.
	Temperature known.Int
	// Powered reports whether a charger is connected.
	Powered bool
}

// conditionTimeout limits how long reading the condition may take; the battery
// service answers through system_server.
const conditionTimeout = 15 * time.Second

// readCondition reads the condition of a device in one round trip that changes
// nothing on the device. Values that are missing from the response are unknown.
func readCondition(ctx context.Context, dev capture.Device) (deviceCondition, error) {
	m := shell.NewMarker()
	a, err := shell.Ask(ctx, dev, conditionTimeout, m.Join([]shell.Part{
		{"boot", "getprop sys.boot_completed"},
		{"su", "command -v su"},
		{"df", "df /data 2>/dev/null"},
		{"battery", "dumpsys battery 2>/dev/null </dev/null"},
	}))
	if err != nil {
		return deviceCondition{}, fmt.Errorf("read the condition: %w", err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return deviceCondition{}, fmt.Errorf("read the condition of device %s: output truncated after %q",
			dev.Serial(), shell.Clip(string(a.Stderr)))
	}
	return deviceCondition{
		Booted:   parseBooted(string(parts["boot"])),
		SU:       parseSU(string(parts["su"])),
		DataFree: dumpsys.ParseDiskFree(string(parts["df"]), "/data"),
		Battery:  parseBattery(string(parts["battery"])),
	}, nil
}

// parseBooted parses sys.boot_completed, which is set when the boot is complete
// and empty until then (frameworks/base ActivityManagerService.finishBooting).
func parseBooted(text string) known.Int {
	switch strings.TrimSpace(text) {
	case "1":
		return known.Of(1)
	case "", "0":
		return known.Int{Known: true}
	}
	return known.Int{}
}

// parseSU parses the path that `command -v` prints. If the command is missing,
// some shells print an error message on stdout, which is not a path.
func parseSU(text string) string {
	path := shell.Clip(text)
	if !strings.HasPrefix(path, "/") || strings.Contains(path, ":") {
		return ""
	}
	return path
}

// parseBattery parses `dumpsys battery` (frameworks/base
// BatteryService.dumpInternal).
func parseBattery(text string) deviceBattery {
	var b deviceBattery
	var level, scale known.Int
	present := true
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		if !ok {
			continue
		}
		switch key {
		case "level":
			level = small(value)
		case "scale":
			scale = small(value)
		case "temperature":
			b.Temperature = small(value)
		case "present":
			present = value != "false"
		case "AC powered", "USB powered", "Wireless powered", "Dock powered":
			b.Powered = b.Powered || value == "true"
		}
	}
	if !present {
		return deviceBattery{Powered: b.Powered}
	}
	if level.Known && scale.Known && level.N >= 0 && level.N <= scale.N && scale.N > 0 {
		b.Percent = known.Of(level.N * 100 / scale.N)
	}
	return b
}

// small parses a 32-bit integer in the output of the battery service.
func small(text string) known.Int {
	n, err := strconv.ParseInt(text, 10, 32)
	return known.Int{N: n, Known: err == nil}
}
