package capture

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/text"
)

// listTimeout is the maximum wall-clock time for listing the processes of a
// device.
const listTimeout = 10 * time.Second

// systemServer is the name of the process that executes dumpsys meminfo and
// spends CPU time on it.
const systemServer = "system_server"

// Found is the result of one scan of a device's processes.
type Found struct {
	// Processes holds the processes that match a pattern, sorted by user, name
	// and start time. Several may have the same name: any app can choose any
	// name for a process, and an earlier life may be stuck while dying.
	Processes []Process
	// Children holds processes that were forked by one of Processes and still
	// have its name: they are about to execute a program of their own, or are
	// workers that keep the name.
	Children []Process
	// Unnamed counts processes whose command line contains the fixed part of a
	// pattern but whose name is not printable text of at most 255 bytes: no
	// pattern can match them.
	Unnamed int
	// SystemServer is the pid of system_server, 0 if it was not found.
	SystemServer int
}

// FindProcesses finds the processes that match the patterns. It reads /proc
// instead of running pidof or ps: both are missing or differ between releases
// (toolbox before Android 8), and neither returns the start time.
func FindProcesses(ctx context.Context, dev Device, patterns []Pattern) (Found, error) {
	files, err := readIdentities(ctx, dev, withCommandLine(patterns))
	if err != nil {
		return Found{}, err
	}
	return collect(files, patterns), nil
}

// readIdentities reads the files that identify the processes selected by a
// command. The command prints the path of one file of each of these processes,
// /proc/PID/FILE.
func readIdentities(ctx context.Context, dev Device, selection string) ([]processFiles, error) {
	m := shell.NewMarker()
	parts, err := lookFor(ctx, dev, m, findCommand(m, selection))
	if err != nil {
		return nil, err
	}
	files, ok := splitFiles(parts["files"], parts["total"])
	if !ok {
		// findEachCommand is needed if the name of a process contains a UUID,
		// or if the device does not let the shell read the UUID file.
		m = shell.NewMarker()
		parts, err = lookFor(ctx, dev, m, findEachCommand(m, selection))
		if err != nil {
			return nil, err
		}
		files = eachFile(parts)
	}
	return files, nil
}

func lookFor(ctx context.Context, dev Device, m shell.Marker, command string) (map[string][]byte, error) {
	a, err := shell.Ask(ctx, dev, listTimeout, command)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return nil, fmt.Errorf("list processes of %s: output truncated after %q",
			dev.Serial(), shell.Clip(string(a.Stderr)))
	}
	return parts, nil
}

// processFiles are the files of /proc/PID that identify a process.
type processFiles struct{ stat, status, commandLine []byte }

// uuidFile is a file that yields a new random UUID each time it is read
// (proc(5)). No process can have this new UUID in its name. If a name contains
// another UUID, splitFiles detects that the number of UUIDs is wrong.
const uuidFile = "/proc/sys/kernel/random/uuid"

// processesPerCat is the maximum number of processes whose files one cat reads:
// Android 5 accepts 128 KiB of arguments.
const processesPerCat = 100

// findCommand returns a command that prints the files of the processes that
// another command selects. Each cat prints the files of up to a hundred
// processes, with a UUID after each file. Starting one program takes
// milliseconds on a phone, so starting a thousand would take seconds.
func findCommand(m shell.Marker, selection string) string {
	return fmt.Sprintf("u=%s; a=; n=0; t=0; %s; for f in $(%s); do p=${f%%/*}; a=\"$a $p/stat $u $p/status $u "+
		"$p/cmdline $u\"; t=$((t+1)); n=$((n+1)); "+
		"if [ $n -ge %d ]; then cat $a; a=; n=0; fi; done 2>/dev/null; [ $n -eq 0 ] || cat $a 2>/dev/null; %s; echo "+
		"$t; %s",
		uuidFile, m.Echo("files"), selection, processesPerCat, m.Echo("total"), m.Echo("end"))
}

// withCommandLine returns the command that selects the processes whose command
// line contains the fixed part of a pattern, and system_server. A single grep
// -l reads all command lines.
func withCommandLine(patterns []Pattern) string {
	var b strings.Builder
	b.WriteString("grep -l -s -F -e " + systemServer)
	for _, p := range patterns {
		b.WriteString(" -e " + text.ShellQuote(p.stem()))
	}
	b.WriteString(" /proc/[0-9]*/cmdline")
	return b.String()
}

// uuidLine is the format of a UUID on its own line; x is a hexadecimal digit.
const uuidLine = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx\n"

// uuids returns the positions of the UUIDs in text. It searches for newlines
// and checks whether a UUID precedes each one. A regular expression would
// nearly double the time needed to find the processes.
func uuids(text []byte) (at []int) {
	for end := 0; ; end++ {
		next := bytes.IndexByte(text[end:], '\n')
		if next < 0 {
			return at
		}
		end += next
		begin := end + 1 - len(uuidLine)
		if begin >= 0 && (len(at) == 0 || begin >= at[len(at)-1]+len(uuidLine)) && isUUID(text[begin:end+1]) {
			at = append(at, begin)
		}
	}
}

func isUUID(line []byte) bool {
	for i, c := range line {
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
		if want := uuidLine[i]; want == 'x' && !hex || want != 'x' && c != want {
			return false
		}
	}
	return true
}

// splitFiles splits the output of findCommand into the files of each process.
// It returns false if the number of UUIDs does not match the number of files.
func splitFiles(text, total []byte) ([]processFiles, bool) {
	n, err := strconv.Atoi(string(bytes.TrimSpace(total)))
	ends := uuids(text)
	if err != nil || len(ends) != 3*n {
		return nil, false
	}
	out := make([]processFiles, 0, n)
	begin := 0
	next := func() []byte {
		end := ends[0]
		part := text[begin:end]
		begin, ends = end+len(uuidLine), ends[1:]
		return part
	}
	for range n {
		out = append(out, processFiles{next(), next(), next()})
	}
	return out, true
}

// identityLabel is the suffix of the label for a process's stat and status.
// These two files have their own label because the process controls its command
// line, which could contain text that looks like the files of another process.
const identityLabel = ".id"

// findEachCommand is like findCommand, but starts separate programs for each
// process.
func findEachCommand(m shell.Marker, selection string) string {
	return "for f in $(" + selection + "); do p=${f#/proc/}; p=${p%/*}; echo; echo " + string(m) + " $p; " +
		"cat /proc/$p/cmdline; echo; echo " + string(m) + " $p" + identityLabel +
		"; cat /proc/$p/stat /proc/$p/status; done 2>/dev/null; " + m.Echo("end")
}

// eachFile returns the files in the output of findEachCommand.
func eachFile(parts map[string][]byte) []processFiles {
	var out []processFiles
	for label, line := range parts {
		identity := parts[label+identityLabel]
		if end := bytes.Index(identity, []byte("\nName:")); end >= 0 {
			out = append(out, processFiles{identity[:end+1], identity[end+1:], line})
		}
	}
	return out
}

// collect selects the processes that match the patterns.
func collect(files []processFiles, patterns []Pattern) Found {
	var found Found
	var candidates []candidateProcess
	for _, f := range files {
		p, ok := parseFound(f)
		switch {
		case !ok:
			continue
		case p.Name == systemServer:
			found.SystemServer = p.PID
		case !validName([]byte(p.Name)):
			if matchesPrefix(patterns, p.Name) {
				found.Unnamed++
			}
			continue
		}
		if chosen(patterns, p.Name) {
			candidates = append(candidates, p)
		}
	}
	sortProcesses(candidates)
	found.Processes, found.Children = splitChildren(candidates)
	return found
}

// candidateProcess is a process whose command line contains a wanted string;
// parent is the pid of its parent.
type candidateProcess struct {
	Process
	parent int
}

// parseFound parses the files that identify one process. Kernel threads and
// zombies have no name.
func parseFound(f processFiles) (candidateProcess, bool) {
	name, _, _ := bytes.Cut(f.commandLine, []byte{0})
	name = bytes.TrimSpace(name)
	stat, err := procfs.ParseStat(f.stat)
	if err != nil || len(name) == 0 || !stat.StartTicks.Known {
		return candidateProcess{}, false
	}
	status, err := procfs.ParseStatus(f.status)
	if err != nil || !status.UID.Known || status.PID.Known && status.PID.N != stat.PID {
		return candidateProcess{}, false
	}
	uid := int(status.UID.N)
	return candidateProcess{
		Process: Process{
			Name: string(name), User: uid / perUser, UID: uid, PID: int(stat.PID), Start: uint64(stat.StartTicks.N),
		},
		parent: int(stat.PPID.N),
	}, true
}

// maxName is the maximum length of the name of a process, in bytes.
const maxName = 255

// validName reports whether a name is printable text: Process.setArgV0 and
// native programs accept any bytes.
func validName(name []byte) bool {
	s := string(name)
	return s != "" && len(s) <= maxName && s == strings.TrimSpace(s) && s == text.Printable(s) &&
		!strings.ContainsRune(s, twinSign)
}

// matchesPrefix reports whether a name begins with the fixed text of a pattern.
// It is used for names that are not printable.
func matchesPrefix(patterns []Pattern, name string) bool {
	return slices.ContainsFunc(patterns, func(p Pattern) bool { return strings.HasPrefix(name, p.stem()) })
}

func chosen(patterns []Pattern, name string) bool {
	for _, p := range patterns {
		if p.Match(name) {
			return true
		}
	}
	return false
}

func sortProcesses(ps []candidateProcess) {
	slices.SortFunc(ps, func(a, b candidateProcess) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Start, b.Start),
			cmp.Compare(a.PID, b.PID))
	})
}

// splitChildren separates forked children from independent processes of the
// same name: a child has its parent's name until it sets its own.
func splitChildren(sorted []candidateProcess) (processes, children []Process) {
	named := map[int]candidateProcess{}
	for _, p := range sorted {
		named[p.PID] = p
	}
	for _, p := range sorted {
		if parent, ok := named[p.parent]; ok && parent.Name == p.Name && parent.UID == p.UID {
			children = append(children, p.Process)
		} else {
			processes = append(processes, p.Process)
		}
	}
	return processes, children
}
