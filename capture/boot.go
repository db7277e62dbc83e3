package capture

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/capture/shell"
)

// Pulse is the smallest set of values that shows whether a device responds and
// whether it rebooted.
type Pulse struct {
	// Up, Boot and UID have the same meaning as in Facts; a reboot can change
	// each of them.
	Up   time.Duration
	Boot string
	UID  int
}

// ReadPulse reads the pulse of a device in one round trip, which is so short
// that even a very busy phone responds. The deadline is in wall-clock time.
func ReadPulse(ctx context.Context, dev Device, deadline time.Duration) (Pulse, error) {
	m := shell.NewMarker()
	a, err := shell.Ask(ctx, dev, deadline,
		m.Join([]shell.Part{{"up", "cat /proc/uptime"}, {"boot", bootCommand}, {"id", "id"}}))
	if err != nil {
		return Pulse{}, fmt.Errorf("read pulse: %w", err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return Pulse{}, fmt.Errorf("read pulse of device %s: %w: truncated answer", dev.Serial(), ErrDevice)
	}
	up, err := procfs.ParseUptime(parts["up"])
	if err != nil {
		return Pulse{}, fmt.Errorf("read uptime of device %s: %w: %w", dev.Serial(), ErrDevice, err)
	}
	return Pulse{Up: up, Boot: bootID(parts["boot"]), UID: dumpsys.ParseUID(string(parts["id"]))}, nil
}

// bootCommand is the command that prints the boot id, or nothing if it cannot
// be read.
const bootCommand = "cat /proc/sys/kernel/random/boot_id 2>/dev/null"

// bootID returns the boot id, or "" if the output does not look like a boot id.
// If the kernel has no boot id, or the shell may not read it, the output is
// empty or an error message.
func bootID(text []byte) string {
	id := strings.TrimSpace(string(text))
	if len(id) != 36 || strings.Trim(id, "0123456789abcdef-") != "" {
		return ""
	}
	return id
}
