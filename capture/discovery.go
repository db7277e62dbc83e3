package capture

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/text"
)

// askProcesses is the real time that a device has to list its processes.
const askProcesses = 10 * time.Second

// systemServer is the process whose CPU share dumpsys costs.
const systemServer = "system_server"

// Found is what one look over a device's processes gave.
type Found struct {
	// Processes that a pattern chooses, by user and name: of two the older one.
	Processes []Process
	// SystemServer is the pid of system_server, 0 where it was not seen.
	SystemServer int
}

// FindProcesses looks for the processes that the patterns choose, in one round
// trip. It reads /proc instead of asking pidof or ps: both are missing or differ
// between releases (toolbox before Android 8), and neither gives the start time.
func FindProcesses(ctx context.Context, dev Device, patterns []Pattern) (Found, error) {
	m := shell.NewMarker()
	a, err := shell.Ask(ctx, dev, askProcesses, findCommand(m, patterns))
	if err != nil {
		return Found{}, fmt.Errorf("list processes: %w", err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return Found{}, fmt.Errorf("list processes of %s: the answer is cut after %q", dev.Serial(), shell.Clip(string(a.Stderr)))
	}
	var found Found
	for label, text := range parts {
		pid, err := strconv.Atoi(label)
		if err != nil {
			continue
		}
		p, ok := parseFound(pid, text, parts[label+identityLabel])
		if !ok {
			continue
		}
		if p.Name == systemServer {
			found.SystemServer = p.PID
		}
		if chosen(patterns, p.Name) {
			found.Processes = append(found.Processes, p)
		}
	}
	sortProcesses(found.Processes)
	found.Processes = oldest(found.Processes)
	return found, nil
}

// findCommand lists the processes whose command line holds a wanted name, then
// prints identity and name of each. grep -l reads every command line in one
// process; only the hits cost one more.
func findCommand(m shell.Marker, patterns []Pattern) string {
	var b strings.Builder
	b.WriteString("for f in $(grep -l -s -F -e " + systemServer)
	for _, p := range patterns {
		b.WriteString(" -e " + text.ShellQuote(p.stem()))
	}
	b.WriteString(" /proc/[0-9]*/cmdline); do p=${f#/proc/}; p=${p%/cmdline}; echo; echo " + string(m) + " $p; ")
	b.WriteString("cat $f; echo; echo " + string(m) + " $p" + identityLabel + "; cat /proc/$p/stat /proc/$p/status; done 2>/dev/null; ")
	b.WriteString(m.Echo("end"))
	return b.String()
}

// identityLabel ends the label of a process's stat and status. They stand apart
// from the command line, which is what the process says of itself: it could hold
// another's.
const identityLabel = ".id"

// parseFound reads the command line of one process, and its stat and status.
func parseFound(pid int, commandLine, identity []byte) (Process, bool) {
	name, _, _ := bytes.Cut(commandLine, []byte{0})
	name = bytes.TrimSpace(name)
	if !validName(name) {
		return Process{}, false
	}
	end := bytes.Index(identity, []byte("\nName:"))
	if end < 0 {
		return Process{}, false
	}
	stat, err := procfs.ParseStat(identity[:end+1])
	if err != nil || stat.PID != int64(pid) || !stat.StartTicks.Known {
		return Process{}, false
	}
	status, err := procfs.ParseStatus(identity[end+1:])
	if err != nil || !status.UID.Known {
		return Process{}, false
	}
	uid := int(status.UID.N)
	return Process{Name: string(name), User: uid / perUser, UID: uid, PID: pid, Start: uint64(stat.StartTicks.N)}, true
}

func validName(name []byte) bool {
	if len(name) == 0 || len(name) > 255 {
		return false
	}
	for _, c := range string(name) {
		if !nameRune(c) {
			return false
		}
	}
	return true
}

func chosen(patterns []Pattern, name string) bool {
	for _, p := range patterns {
		if p.Match(name) {
			return true
		}
	}
	return false
}

func sortProcesses(ps []Process) {
	sort.Slice(ps, func(i, j int) bool {
		a, b := ps[i], ps[j]
		if a.Key() != b.Key() {
			return a.User < b.User || a.User == b.User && a.Name < b.Name
		}
		if a.Start != b.Start {
			return a.Start < b.Start
		}
		return a.PID < b.PID
	})
}

// oldest keeps one process per user and name: a child that has forked but not
// yet taken its own name carries its parent's.
func oldest(sorted []Process) []Process {
	kept := sorted[:0]
	for i, p := range sorted {
		if i == 0 || p.Key() != sorted[i-1].Key() {
			kept = append(kept, p)
		}
	}
	return kept
}
