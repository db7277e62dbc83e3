package capture

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/capture/shell"
)

// RunningApps returns the packages of running user-installed apps (not system
// apps) in sorted order, and the total number of such packages; limit is the
// maximum number of returned packages. The list helps users who do not know the
// name of their app's process; FindProcesses finds the processes that match a
// pattern.
func RunningApps(ctx context.Context, dev Device, limit int) (packages []string, total int, err error) {
	m := shell.NewMarker()
	a, err := shell.Ask(ctx, dev, listTimeout, m.Join([]shell.Part{
		{"installed", "pm list packages -3 2>/dev/null </dev/null"},
		// toybox lists all processes only with -A; toolbox (before Android 8)
		// interprets -A as a name, and lists all processes without it. The
		// process name is always the last column.
		{"running", "ps -A 2>/dev/null; ps 2>/dev/null"},
	}))
	if err != nil {
		return nil, 0, fmt.Errorf("list running apps: %w", err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return nil, 0, fmt.Errorf("list running apps of %s: output truncated after %q",
			dev.Serial(), shell.Clip(string(a.Stderr)))
	}
	packages = runningPackages(parts["installed"], parts["running"])
	return packages[:min(limit, len(packages))], len(packages), nil
}

// runningPackages returns the packages in the output of `pm list packages` that
// have a process in the output of ps.
func runningPackages(installed, running []byte) []string {
	known := map[string]bool{}
	for line := range bytes.Lines(installed) {
		if name, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("package:")); ok && validName(name) {
			known[string(name)] = false
		}
	}
	for line := range bytes.Lines(running) {
		line = bytes.TrimSpace(line)
		name := line[bytes.LastIndexAny(line, " \t")+1:]
		if !validName(name) {
			continue
		}
		pkg := Process{Name: string(name)}.Package()
		if _, ok := known[pkg]; ok {
			known[pkg] = true
		}
	}
	var out []string
	for pkg, runs := range known {
		if runs {
			out = append(out, pkg)
		}
	}
	slices.Sort(out)
	return out
}
