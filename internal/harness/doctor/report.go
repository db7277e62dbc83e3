package doctor

import (
	"slices"

	"github.com/leakgate/leakgate/internal/text"
)

// Schema names the JSON form of a Report (docs/formats/doctor.md).
const Schema = "leakgate.doctor/1"

// Readiness is the conclusion drawn from all checks.
type Readiness string

// The outcomes. If several apply, the first one in this order is reported.
const (
	// Interrupted: the context of the caller was canceled before everything was
	// checked.
	Interrupted Readiness = "interrupted"
	// Misconfigured: no run can start because of a setting or directory of this
	// host.
	Misconfigured Readiness = "misconfigured"
	// NoDevice: no device can be used, or the requested device cannot be used.
	NoDevice Readiness = "no_device"
	// Usable: a run can start now.
	Usable Readiness = "usable"
)

// Report is the result of Examine. Its strings are printable, even if a device
// sent unprintable characters.
type Report struct {
	Schema  string    `json:"schema"`
	Outcome Readiness `json:"outcome"`
	// Text is the outcome in one sentence, and Action is the next step.
	Text    string   `json:"text"`
	Action  string   `json:"action"`
	Host    Host     `json:"host"`
	Devices []Device `json:"devices"`
	Checks  []Item   `json:"checks"`
}

// Host is this machine.
type Host struct {
	System string  `json:"system"` // such as linux/amd64
	ADB    Program `json:"adb"`
	Server Server  `json:"server"`
	Runs   Space   `json:"runs"`
	// Environment holds the variables that configure adb, if they are set.
	Environment map[string]string `json:"environment"`
}

// Program is the adb program.
type Program struct {
	Path string `json:"path"` // empty if not found
	// Release is the version of platform-tools, such as 29.0.6-debian.
	Release string `json:"release"`
	// Protocol is the version that determines whether a client kills a running
	// server: 41 for 1.0.41.
	Protocol *int `json:"protocol"`
	// Searched lists the locations that were searched.
	Searched []string `json:"searched"`
}

// Server is the adb server.
type Server struct {
	Address string `json:"address"`
	// From is the name of the variable that sets the address, or "default".
	From     string      `json:"from"`
	State    ServerState `json:"state"`
	Protocol *int        `json:"protocol"`
}

// Space is the directory in which run directories are created.
type Space struct {
	Directory string `json:"directory"`
	FreeBytes *int64 `json:"free_bytes"`
	Writable  *bool  `json:"writable"`
}

// Device is one device that the adb server lists.
type Device struct {
	Serial       string `json:"device"`
	State        string `json:"state"`
	Usable       bool   `json:"usable"`
	Model        string `json:"model"`
	Manufacturer string `json:"manufacturer"`
	Release      string `json:"release"`
	API          *int   `json:"api"`
	BuildType    string `json:"build_type"`
	// UID is the UID of the shell; 0 is root.
	UID     *int     `json:"uid"`
	ShellV2 *bool    `json:"shell_v2"`
	SU      string   `json:"su"` // path of the su program, or empty
	Booted  *bool    `json:"booted"`
	Up      *float64 `json:"up_s"`
	// TimeScale is the number of device seconds per real second, 1 for a real
	// device.
	TimeScale *float64 `json:"time_scale"`
	// ClockAhead is the number of seconds by which the device's wall clock is
	// ahead of the host's; the error is at most ClockWithin.
	ClockAhead  *float64  `json:"clock_ahead_s"`
	ClockWithin *float64  `json:"clock_within_s"`
	DataFree    *int64    `json:"data_free_bytes"`
	Battery     *int64    `json:"battery_pct"`
	Temperature *float64  `json:"temperature_c"`
	Processes   []Process `json:"processes"`
}

// Process describes a process and how its memory can be read.
type Process struct {
	Process string `json:"process"`
	User    int    `json:"user"`
	PID     int    `json:"pid"`
	// Source is the source of the frequent samples, such as smaps_rollup; it is
	// empty if unknown.
	Source string `json:"source"`
	// Reasons holds the reasons why no better source is used, beginning with
	// the best source.
	Reasons []Reason `json:"reasons"`
	Meminfo *Meminfo `json:"meminfo"`
}

// Reason explains why a source is not used.
type Reason struct {
	Source string `json:"source"`
	Answer string `json:"answer"` // refused or unclear
	Text   string `json:"text"`   // the device's own error message
	Action string `json:"action"`
}

// Meminfo is one reading of dumpsys meminfo.
type Meminfo struct {
	TotalKB int64 `json:"total_pss_kb"`
	// Duration is the wall-clock time of the round trip.
	Duration float64 `json:"duration_s"`
}

// Scope is the subject of a check: the host, a device or a process.
type Scope string

// The scopes of a check.
const (
	ScopeHost    Scope = "host"
	ScopeDevice  Scope = "device"
	ScopeProcess Scope = "process"
)

// Status is the result of a check.
type Status string

// The statuses. A Bad check stops a run, a Warn check degrades it, and the
// result of an Unknown check could not be determined.
const (
	OK      Status = "ok"
	Warn    Status = "warn"
	Bad     Status = "bad"
	Unknown Status = "unknown"
)

// Item is one finding.
type Item struct {
	Scope   Scope  `json:"scope"`
	Device  string `json:"device"`
	Process string `json:"process"`
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Text    string `json:"text"`
	// Action describes how to fix the finding; it is empty if there is nothing
	// to fix, or if it cannot be fixed.
	Action string `json:"action"`
}

// maxText is the maximum length of an external string, in characters.
const maxText = 400

// clean returns a printable form of an external string.
func clean(s string) string { return text.Head(s, maxText) }

// checklist collects the checks of one scope. The zero value is for the host.
type checklist struct {
	scope           Scope
	device, process string
	checks          []Item
}

func (n *checklist) note(name string, status Status, text, todo string) {
	n.checks = append(n.checks, Item{
		Scope: n.scope, Device: n.device, Process: n.process,
		Name: name, Status: status, Text: clean(text), Action: clean(todo),
	})
}

// first returns the first check with the given status.
func first(checks []Item, status Status) (Item, bool) {
	i := slices.IndexFunc(checks, func(c Item) bool { return c.Status == status })
	if i < 0 {
		return Item{}, false
	}
	return checks[i], true
}
