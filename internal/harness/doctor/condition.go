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

// deviceCondition is what may spoil a run on a device, or stop it, at one moment.
type deviceCondition struct {
	// Booted is 1 once Android has started, 0 while it still does.
	Booted known.Int
	// SU is the path of the su program; empty if the shell finds none.
	SU string
	// DataFree is what the shell may still write to /data, in bytes.
	DataFree known.Int
	Battery  deviceBattery
}

// deviceBattery is what the battery service tells. A device without a battery tells none.
type deviceBattery struct {
	// Percent is the charge, 0 to 100.
	Percent known.Int
	// Temperature is in tenths of a degree Celsius.
	Temperature known.Int
	// Powered says if a charger is connected.
	Powered bool
}

// askCondition is the real time that a device has for its condition; the battery
// service is asked through system_server.
const askCondition = 15 * time.Second

// readCondition asks a device for its condition, in one round trip that changes
// nothing there. What the device does not tell is unknown.
func readCondition(ctx context.Context, dev capture.Device) (deviceCondition, error) {
	m := shell.NewMarker()
	a, err := shell.Ask(ctx, dev, askCondition, m.Join([]shell.Part{
		{"boot", "getprop sys.boot_completed"},
		{"su", "command -v su"},
		{"df", "df /data 2>/dev/null"},
		{"battery", "dumpsys battery 2>/dev/null </dev/null"},
	}))
	if err != nil {
		return deviceCondition{}, fmt.Errorf("ask for the condition: %w", err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return deviceCondition{}, fmt.Errorf("ask device %s for its condition: the answer is cut after %q", dev.Serial(), shell.Clip(string(a.Stderr)))
	}
	return deviceCondition{
		Booted:   parseBooted(string(parts["boot"])),
		SU:       parseSU(string(parts["su"])),
		DataFree: dumpsys.ParseDiskFree(string(parts["df"]), "/data"),
		Battery:  parseBattery(string(parts["battery"])),
	}, nil
}

// parseBooted reads sys.boot_completed, which is set when the boot is complete
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

// parseSU takes the path that `command -v` prints. A shell that says on stdout
// that there is none prints no path.
func parseSU(text string) string {
	path := shell.Clip(text)
	if !strings.HasPrefix(path, "/") || strings.Contains(path, ":") {
		return ""
	}
	return path
}

// parseBattery reads `dumpsys battery` (frameworks/base BatteryService.dumpInternal).
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

// small reads a whole number as the battery service prints them.
func small(text string) known.Int {
	n, err := strconv.ParseInt(text, 10, 32)
	return known.Int{N: n, Known: err == nil}
}
