package capture

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// maxUIDs is the maximum number of uids for which FindSiblings searches at
// once.
const maxUIDs = 100

// FindSiblings returns the processes that belong to the same apps as the given
// processes but match no pattern, sorted by user, name and start time. Patterns
// that are derived from the package do not match a process whose name is set by
// android:process without a colon ("a global process",
// https://developer.android.com/guide/topics/manifest/service-element#proc). If
// the given processes of a package do not include its main process, they were
// chosen one by one, and no siblings in that package are returned.
//
// A sibling has the uid and the zygote of one of the given processes.
// Therefore, other apps with the same android:sharedUserId are returned as
// well. Isolated processes, processes with a system uid and programs that an
// app executes are never returned.
func FindSiblings(ctx context.Context, dev Device, of []Process, patterns []Pattern) ([]Process, error) {
	uids := appUIDs(of)
	if len(uids) == 0 {
		return nil, nil
	}
	files, err := readIdentities(ctx, dev, withUID(uids))
	if err != nil {
		return nil, fmt.Errorf("search for processes with the same uid: %w", err)
	}
	return siblings(files, of, patterns), nil
}

// appUIDs returns the uids of the processes of installed apps, each once.
func appUIDs(of []Process) []int {
	var uids []int
	for _, p := range of {
		if p.Installed() && !p.Isolated() {
			uids = append(uids, p.UID)
		}
	}
	slices.Sort(uids)
	uids = slices.Compact(uids)
	return uids[:min(len(uids), maxUIDs)]
}

// withUID returns the command that selects the processes with one of the uids.
// The first number of the line is the real uid (fs/proc/array.c, task_state).
func withUID(uids []int) string {
	var b strings.Builder
	b.WriteString("grep -l -s -F")
	for _, uid := range uids {
		b.WriteString(" -e " + text.ShellQuote(fmt.Sprintf("Uid:\t%d\t", uid)))
	}
	b.WriteString(" /proc/[0-9]*/status")
	return b.String()
}

// siblings selects the siblings of the given processes from the processes that
// have their uids.
func siblings(files []processFiles, of []Process, patterns []Pattern) []Process {
	type family struct{ uid, parent int }
	var candidates []candidateProcess
	families := map[family]bool{}
	for _, f := range files {
		p, ok := parseFound(f)
		switch {
		case !ok:
		case slices.ContainsFunc(of, p.Same):
			families[family{p.UID, p.parent}] = true
		default:
			candidates = append(candidates, p)
		}
	}
	candidates = slices.DeleteFunc(candidates, func(p candidateProcess) bool {
		return !families[family{p.UID, p.parent}] || chosen(patterns, p.Name) || onlyPartChosen(of, p.Package()) ||
			!componentName(p.Name)
	})
	sortProcesses(candidates)
	out := make([]Process, len(candidates))
	for i, p := range candidates {
		out[i] = p.Process
	}
	return out
}

// onlyPartChosen reports whether the given processes include processes of a
// package but not its main process, which has the name of the package.
func onlyPartChosen(of []Process, pkg string) bool {
	part := false
	for _, p := range of {
		if p.Name == pkg {
			return false
		}
		part = part || p.Package() == pkg
	}
	return part
}

// componentName reports whether a process may have got this name from a
// manifest, where a name without a colon must contain a dot (PackageParser,
// buildProcessName). A process that zygote has just forked does not have its
// name yet.
func componentName(name string) bool { return strings.Contains(name, ".") && validName([]byte(name)) }
