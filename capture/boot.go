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

// Pulse is the least that a device tells of itself.
type Pulse struct {
	// Up, Boot and UID are as in Facts; they are what a reboot changes.
	Up   time.Duration
	Boot string
	UID  int
}

// ReadPulse asks a device for its pulse, in one short round trip: a phone that is
// too busy for more still shows it. The deadline is in real time.
func ReadPulse(ctx context.Context, dev Device, deadline time.Duration) (Pulse, error) {
	m := shell.NewMarker()
	a, err := shell.Ask(ctx, dev, deadline, m.Join([]shell.Part{{"up", "cat /proc/uptime"}, {"boot", bootCommand}, {"id", "id"}}))
	if err != nil {
		return Pulse{}, fmt.Errorf("ask device: %w", err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return Pulse{}, fmt.Errorf("ask device %s: %w: its answer is cut", dev.Serial(), ErrDevice)
	}
	up, err := procfs.ParseUptime(parts["up"])
	if err != nil {
		return Pulse{}, fmt.Errorf("ask device %s for its clock: %w: %w", dev.Serial(), ErrDevice, err)
	}
	return Pulse{Up: up, Boot: bootID(parts["boot"]), UID: dumpsys.ParseUID(string(parts["id"]))}, nil
}

// bootCommand prints the boot id, or nothing.
const bootCommand = "cat /proc/sys/kernel/random/boot_id 2>/dev/null"

// bootID is the text if it looks like one: a kernel that has none, or does not let
// the shell read it, prints nothing or an error.
func bootID(text []byte) string {
	id := strings.TrimSpace(string(text))
	if len(id) != 36 || strings.Trim(id, "0123456789abcdef-") != "" {
		return ""
	}
	return id
}
