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

// askProcesses is the real time that a device has to list its processes.
const askProcesses = 10 * time.Second

// systemServer is the process whose CPU share dumpsys costs.
const systemServer = "system_server"

// Found is what one look over a device's processes gave.
type Found struct {
	// Processes that a pattern chooses, by user, name and start. Several may have one name: any
	// app may name a process as it likes, and an earlier incarnation may hang in its death.
	Processes []Process
	// Children were forked by one of Processes and still have its name: on their way to a
	// program of their own, or workers that keep it.
	Children []Process
	// Unnamed counts processes whose command line holds a wanted text and whose name is not
	// printable text of at most 255 bytes: no pattern can choose them.
	Unnamed int
	// SystemServer is the pid of system_server, 0 where it was not seen.
	SystemServer int
}

// FindProcesses looks for the processes that the patterns choose. It reads /proc
// instead of asking pidof or ps: both are missing or differ between releases
// (toolbox before Android 8), and neither returns the start time.
func FindProcesses(ctx context.Context, dev Device, patterns []Pattern) (Found, error) {
	m := shell.NewMarker()
	parts, err := lookFor(ctx, dev, m, findCommand(m, patterns))
	if err != nil {
		return Found{}, err
	}
	files, ok := splitFiles(parts["files"], parts["total"])
	if !ok {
		// A process may have a separator in its name; some device may not let the shell read it.
		m = shell.NewMarker()
		parts, err = lookFor(ctx, dev, m, findEachCommand(m, patterns))
		if err != nil {
			return Found{}, err
		}
		files = eachFile(parts)
	}
	return collect(files, patterns), nil
}

func lookFor(ctx context.Context, dev Device, m shell.Marker, command string) (map[string][]byte, error) {
	a, err := shell.Ask(ctx, dev, askProcesses, command)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return nil, fmt.Errorf("list processes of %s: the answer is truncated after %q", dev.Serial(), shell.Clip(string(a.Stderr)))
	}
	return parts, nil
}

// processFiles are the files of /proc/PID by which a process is identified.
type processFiles struct{ stat, status, commandLine []byte }

// uuidFile returns another random UUID each time it is read (proc(5)). No process can have it in
// its name, except one that writes any UUID there, which changes their number.
const uuidFile = "/proc/sys/kernel/random/uuid"

// processesPerCat bounds the arguments of one cat: a phone of Android 5 takes 128 KiB.
const processesPerCat = 100

// findCommand lists the processes whose command line holds a wanted text. grep -l reads
// every command line in one process, and one cat reads the files of a hundred hits, with a
// UUID after each: a phone takes milliseconds to start a program, and a thousand of them are
// seconds.
func findCommand(m shell.Marker, patterns []Pattern) string {
	return fmt.Sprintf("u=%s; a=; n=0; t=0; %s; for f in $(%s); do p=${f%%/cmdline}; a=\"$a $p/stat $u $p/status $u $f $u\"; t=$((t+1)); n=$((n+1)); "+
		"if [ $n -ge %d ]; then cat $a; a=; n=0; fi; done 2>/dev/null; [ $n -eq 0 ] || cat $a 2>/dev/null; %s; echo $t; %s",
		uuidFile, m.Echo("files"), hits(patterns), processesPerCat, m.Echo("total"), m.Echo("end"))
}

// hits is the command that names the command lines that hold a wanted text.
func hits(patterns []Pattern) string {
	var b strings.Builder
	b.WriteString("grep -l -s -F -e " + systemServer)
	for _, p := range patterns {
		b.WriteString(" -e " + text.ShellQuote(p.stem()))
	}
	b.WriteString(" /proc/[0-9]*/cmdline")
	return b.String()
}

// uuidLine is the form of a UUID with the end of its line.
const uuidLine = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx\n"

// uuids returns where the UUIDs of a text begin. They are looked for by their line ends: a regular
// expression took as long as all else.
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

// splitFiles is the answer to findCommand. It is false where the number of UUIDs is not that
// of the files.
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

// identityLabel ends the label of a process's stat and status. They stand apart
// from the command line, which is what the process says of itself: it could hold
// another's.
const identityLabel = ".id"

// findEachCommand is findCommand with a program for each process.
func findEachCommand(m shell.Marker, patterns []Pattern) string {
	return "for f in $(" + hits(patterns) + "); do p=${f#/proc/}; p=${p%/cmdline}; echo; echo " + string(m) + " $p; " +
		"cat $f; echo; echo " + string(m) + " $p" + identityLabel + "; cat /proc/$p/stat /proc/$p/status; done 2>/dev/null; " + m.Echo("end")
}

// eachFile is the answer to findEachCommand.
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

// collect chooses the processes that the patterns name.
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
			if near(patterns, p.Name) {
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

// candidateProcess is a process that a pattern chooses, with its parent.
type candidateProcess struct {
	Process
	parent int
}

// parseFound reads what identifies one process. A kernel thread has no name, and neither has a
// process that has ended and is not yet reaped.
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
		Process: Process{Name: string(name), User: uid / perUser, UID: uid, PID: int(stat.PID), Start: uint64(stat.StartTicks.N)},
		parent:  int(stat.PPID.N),
	}, true
}

// maxName bounds the name of a process, in bytes.
const maxName = 255

// validName reports whether a name is printable text: Process.setArgV0 and programs of their own
// take any bytes.
func validName(name []byte) bool {
	s := string(name)
	return s != "" && len(s) <= maxName && s == strings.TrimSpace(s) && s == text.Printable(s) && !strings.ContainsRune(s, twinSign)
}

// near reports whether a name that is not printable begins as a pattern wants.
func near(patterns []Pattern, name string) bool {
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
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID))
	})
}

// splitChildren takes the children of processes of the same name apart: a child that has forked
// and not yet taken its own name has its parent's.
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
