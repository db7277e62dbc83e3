package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/text"
)

// Headroom is how much of each limited resource one process uses, and the limit
// of each resource. A process that exhausts one of them is killed. Reasons
// explains unknown values. The use of the Java heap is read over the detail
// channel; see package detail.
type Headroom struct {
	Target
	// Up is the device's clock at the beginning of the reading, as time since
	// boot.
	Up time.Duration
	// Files is the number of open file descriptors, and FileLimit is its soft
	// limit.
	Files, FileLimit known.Int
	// Threads is the number of threads. ThreadLimit is the lowest known limit
	// on threads, and ThreadLimitBy is the name of that limit. The threads of
	// other processes count against these limits too, so a limit may be reached
	// earlier.
	Threads, ThreadLimit known.Int
	ThreadLimitBy        string
	// Virtual is the used address space in bytes, and VirtualLimit is the size
	// of the address space; both are unknown for a 64-bit process, which does
	// not run out of addresses.
	Virtual, VirtualLimit known.Int
	// Bits is 32 or 64; 0 if unknown.
	Bits int
	// Anonymous is RssAnon plus VmSwap in bytes. AnonymousLimit is the amount
	// that the memory limiter of Android 17 allows the process in its current
	// state; it is unknown on earlier releases. AnonymousAssumed is true if the
	// device does not expose its limits; AnonymousLimit is then the limit that
	// Android recommends for a device with this much RAM.
	Anonymous, AnonymousLimit known.Int
	AnonymousAssumed          bool
	// GrowthLimit is the maximum size of the Java heap for most apps on the
	// device, in bytes; HeapSize is the maximum for apps with
	// android:largeHeap. See HeapLimit.
	GrowthLimit, HeapSize known.Int
	largeHeap             dumpsys.Answer
	// Garbage is the maximum number of bytes of a Java heap that a collection
	// could free.
	Garbage known.Int
	// Reasons holds an explanation for each unknown value.
	Reasons []string
	// Err is set if the process has ended (ErrGone) or cannot be identified.
	Err error
}

// HeapLimit returns the limit of the process's Java heap in bytes. If it is
// unknown whether the app has a large heap, this is inferred from the current
// use: a heap above the growth limit must be a large heap. The reason explains
// an unknown or uncertain limit; otherwise it is empty.
func (h Headroom) HeapLimit(used known.Int) (limit known.Int, reason string) {
	small := h.GrowthLimit
	if !small.Known {
		// Without a growth limit, the heap may grow to the full heap size
		// (frameworks/base core/jni/AndroidRuntime.cpp, startVm).
		small = h.HeapSize
	}
	const unknown = "Java heap: the device does not report its size"
	switch {
	case h.largeHeap == dumpsys.Yes:
		limit = h.HeapSize
	case h.largeHeap == dumpsys.No:
		limit = small
	case used.Known && small.Known && used.N > small.N:
		limit, reason = h.HeapSize, "Java heap: more than the growth limit is used, so the app has a large heap"
	default:
		limit, reason = small, "Java heap: unknown whether the app has a large heap"
	}
	if !limit.Known {
		return known.Int{}, unknown
	}
	return limit, reason
}

func inBytes(kb known.Int) known.Int {
	kb = atMost(kb, procfs.MaxKB)
	if !kb.Known {
		return kb
	}
	return known.Of(kb.N << 10)
}

// Headrooms reads the headroom of processes of one device, in one shell round
// trip for all of them (before Android 7: in one round trip for as many as fit
// on a command line). A reading with new processes takes one more round trip
// for constant values: the word size of these processes, whether their apps
// have a large heap and, the first time, the limits of the device. It is not
// safe for concurrent use.
type Headrooms struct {
	dev   Device
	facts Facts
	phone bounds
	asked bool
	known map[Process]traits
}

// bounds are the limits of the device.
type bounds struct {
	growth, heap, maxFree known.Int // bytes
	threadsMax, pidMax    known.Int
	// abi32 and abi64 are the device's lists of 32-bit and 64-bit ABIs; both
	// are empty if unknown.
	abi32, abi64 string
	// machine is the processor, as reported by uname; empty before Android 6.
	machine string
	// limiter is nil on devices without a memory limiter, such as all devices
	// before Android 17.
	limiter *limiter
	reasons []string
}

// traits are the constant properties of one life of a process.
type traits struct {
	parent    string // the parent process's name
	pidsMax   known.Int
	largeHeap dumpsys.Answer
	reasons   []string
}

// NewHeadrooms returns a reader for a device. After a reboot, a new reader is
// needed.
func NewHeadrooms(dev Device, facts Facts) *Headrooms {
	return &Headrooms{dev: dev, facts: facts, known: map[Process]traits{}}
}

const (
	// headroomTimeout is the maximum wall-clock time of a reading; no part of a
	// reading waits for a process.
	headroomTimeout = 10 * time.Second
	// traitsTimeout is the maximum wall-clock time for reading the constant
	// values; the package service responds through system_server.
	traitsTimeout = 15 * time.Second
	// maxTraits is the maximum number of processes whose traits are kept: there
	// may be many short-lived processes.
	maxTraits = 1000
)

// Read reads the headroom of the targets, in their order. It returns an error
// if the device did not respond; an error that affects a single process is in
// the Headroom of that process.
func (h *Headrooms) Read(ctx context.Context, targets []Target) ([]Headroom, error) {
	var out []Headroom
	flags := map[string][]byte{}
	for len(targets) > 0 {
		n := h.most(len(targets), func(n int) []shell.Part { return h.command(targets[:n]) })
		rooms, err := h.readSome(ctx, targets[:n], flags)
		if err != nil {
			return nil, err
		}
		out, targets = append(out, rooms...), targets[n:]
	}
	return out, nil
}

// maxOldLine is the maximum length of a command line before Android 7, in
// bytes: adbd accepts 4095, some of which package adb needs (AOSP
// adb/sockets.cpp, connect_to_remote).
const maxOldLine = 3900

// most returns how many of n processes fit on one command line: all of them
// since Android 7, at least one on earlier releases.
func (h *Headrooms) most(n int, line func(n int) []shell.Part) int {
	if h.facts.API >= 24 {
		return n
	}
	for n > 1 {
		text := shell.NewMarker().Join(line(n))
		// The command is sent as one quoted word.
		if len(text)+3*strings.Count(text, "'") <= maxOldLine {
			break
		}
		n /= 2
	}
	return n
}

// readSome is like Read, but the targets must fit on one command line. flags
// holds the responses of the package service, which is called once per package.
func (h *Headrooms) readSome(ctx context.Context, targets []Target, flags map[string][]byte) ([]Headroom, error) {
	m := shell.NewMarker()
	a, err := shell.Ask(ctx, h.dev, headroomTimeout, m.Join(h.command(targets)))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("read headroom: no answer in %v: %w", headroomTimeout, ErrNoAnswer)
	case err != nil:
		return nil, fmt.Errorf("read headroom: %w", err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return nil, fmt.Errorf("read headroom: %w: truncated answer", ErrDevice)
	}
	up, err := procfs.ParseUptime(parts["up"])
	if err != nil {
		return nil, fmt.Errorf("read headroom: %w", err)
	}
	r := sortHeadroom(parts)
	out := make([]Headroom, len(targets))
	for i, t := range targets {
		out[i] = Headroom{Target: t, Up: up}
		r.read(&out[i])
	}
	if err := h.readTraits(ctx, out, r, flags); err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].Err == nil {
			h.bound(&out[i], r.limits(&out[i]))
			h.anonymousLimit(&out[i], r.oomScoreAdj(out[i].PID))
		}
	}
	return out, nil
}

// headroomPattern selects the lines of stat, status and limits that a reading
// needs; for the first two branches see fastPattern.
const headroomPattern = `^[0-9]+ [(]|[)] [A-Za-z] -?[0-9]+ |^(Threads|VmSize):|^Max (open files|processes|address space) `

// limiterPattern selects what the memory limiter needs in addition: lines of
// status, and oom_score_adj.
const limiterPattern = `|^(RssAnon|VmSwap):|^-?[0-9]+$`

// command returns the command line of one reading. One grep reads the files of
// all processes. Open files are counted by a shell glob, which does not start a
// process and runs under the uid used by the Level of the watched process.
// Since Linux 6.2, any user can read the number of open files with stat
// (fs/proc/fd.c, proc_fd_getattr); devices before Android 6 do not have the
// stat command.
func (h *Headrooms) command(targets []Target) []shell.Part {
	var files, sizes strings.Builder
	var order []shell.Prefix
	globs := map[shell.Prefix]string{}
	pattern := headroomPattern
	if h.facts.API >= memoryLimiterAPI {
		pattern += limiterPattern
	}
	for _, t := range targets {
		fmt.Fprintf(&files, " /proc/%d/stat /proc/%d/status /proc/%d/limits", t.PID, t.PID, t.PID)
		if h.facts.API >= memoryLimiterAPI {
			fmt.Fprintf(&files, " /proc/%d/oom_score_adj", t.PID)
		}
		fmt.Fprintf(&sizes, " /proc/%d/fd", t.PID)
		w := t.Level.Prefix
		if _, ok := globs[w]; !ok {
			order = append(order, w)
		}
		globs[w] += fmt.Sprintf(" /proc/%d/fd/*", t.PID)
	}
	parts := []shell.Part{
		{"up", "cat /proc/uptime"},
		{"files", "grep -E " + text.ShellQuote(pattern) + " /dev/null" + files.String() + " 2>&1"},
	}
	for i, w := range order {
		glob := "echo" + globs[w]
		if !w.IsZero() {
			glob = w.Wrap("sh -c "+text.ShellQuote(glob)) + " </dev/null 2>&1"
		}
		parts = append(parts, shell.Part{fdLabel(i), glob})
	}
	if h.facts.UID != 0 {
		parts = append(parts, shell.Part{"size", "stat -c '%n %s'" + sizes.String() + " 2>&1"})
	}
	return parts
}

func fdLabel(i int) string { return "fd" + strconv.Itoa(i) }

// headroomRound is the output of one reading, sorted by process and file.
type headroomRound struct {
	files map[file][]byte
	// open maps a pid to the number of descriptors that a glob matched, and
	// size maps a pid to the number that stat reports.
	open, size map[int]int64
	// said maps a pid to the first error message of grep about that process.
	said map[int]string
	// refused is the first output of a glob that is not a list of open files,
	// such as an error message.
	refused string
}

func sortHeadroom(parts map[string][]byte) headroomRound {
	r := headroomRound{files: map[file][]byte{}, open: map[int]int64{}, size: map[int]int64{}, said: map[int]string{}}
	for line := range bytes.Lines(parts["files"]) {
		r.file(line)
	}
	for i := 0; ; i++ {
		text, ok := parts[fdLabel(i)]
		if !ok {
			break
		}
		if !r.glob(text) && r.refused == "" {
			r.refused = shell.Clip(string(text))
		}
	}
	for line := range bytes.Lines(parts["size"]) {
		name, size, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		pid, rest, ok := procPath(name)
		if n, err := strconv.ParseInt(string(size), 10, 32); ok && err == nil && string(rest) == "fd" {
			r.size[pid] = n
		}
	}
	return r
}

// file parses one line of grep: "/proc/123/limits:TEXT", or "grep:
// /proc/123/limits: ERROR".
func (r *headroomRound) file(line []byte) {
	if complaint, ok := bytes.CutPrefix(line, []byte("grep: ")); ok {
		if pid, _, ok := procPath(complaint); ok && r.said[pid] == "" {
			r.said[pid] = shell.Clip(string(complaint))
		}
		return
	}
	pid, rest, ok := procPath(line)
	name, text, found := bytes.Cut(rest, []byte(":"))
	if !ok || !found || !bytes.HasSuffix(line, []byte("\n")) {
		return
	}
	switch string(name) {
	case "stat", "status", "limits", "oom_score_adj":
		k := file{pid, string(name)}
		r.files[k] = append(r.files[k], text...)
	}
}

// glob counts the words of the form "/proc/123/fd/45". A glob without a match
// is printed literally. glob returns false if the output contains any other
// word.
func (r *headroomRound) glob(text []byte) bool {
	clean := true
	for word := range bytes.FieldsSeq(text) {
		pid, rest, ok := procPath(word)
		digits, isFD := bytes.CutPrefix(rest, []byte("fd/"))
		if !ok || !isFD {
			clean = false
			continue
		}
		if _, err := strconv.ParseUint(string(digits), 10, 31); err == nil {
			r.open[pid]++
		}
	}
	return clean
}

// procPath splits "/proc/123/REST".
func procPath(path []byte) (pid int, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(path, []byte("/proc/"))
	digits, rest, found := bytes.Cut(rest, []byte("/"))
	n, err := strconv.ParseUint(string(digits), 10, 31)
	return int(n), rest, ok && found && err == nil
}

// read sets the number of threads and of open files, the address space and the
// anonymous memory that the process uses.
func (r headroomRound) read(h *Headroom) {
	if _, h.Err = (&Fast{files: r.files}).identify(h.Target); h.Err != nil {
		return
	}
	status, err := procfs.ParseStatus(r.files[file{h.PID, "status"}])
	if err == nil {
		h.Threads, h.Virtual, h.Anonymous = status.Threads, inBytes(status.VmSize), anonymousOf(status)
	}
	if !h.Threads.Known {
		h.why("threads", r.instead(h.PID, "no number in its status"))
	}
	open, counted := r.open[h.PID]
	size := r.size[h.PID]
	switch {
	case counted:
		h.Files = known.Of(open)
	case size > 0:
		h.Files = known.Of(size)
	default:
		reason := "the shell is not allowed to list them, and the kernel does not count them (before Linux 6.2)"
		if r.refused != "" {
			reason += "; " + r.refused
		}
		h.why("open files", reason)
	}
}

func (r headroomRound) instead(pid int, otherwise string) string {
	if said := r.said[pid]; said != "" {
		return said
	}
	return otherwise
}

func (r headroomRound) limits(h *Headroom) procfs.Limits {
	l, err := procfs.ParseLimits(r.files[file{h.PID, "limits"}])
	if err != nil {
		h.why("limits", r.instead(h.PID, "not in the output"))
	}
	return l
}

func (h *Headroom) why(what, reason string) { h.Reasons = append(h.Reasons, what+": "+reason) }

// readTraits reads the constant values of the device and of new processes.
func (h *Headrooms) readTraits(ctx context.Context, rooms []Headroom, r headroomRound, flags map[string][]byte) error {
	var fresh []newProcess
	for _, room := range rooms {
		if _, ok := h.known[room.Process]; ok || room.Err != nil {
			continue
		}
		// The error is always nil here: identify has already parsed this text.
		stat, _ := procfs.ParseStat(r.files[file{room.PID, "stat"}])
		fresh = append(fresh, newProcess{room.Process, stat.PPID})
	}
	if len(fresh) > 0 && len(h.known)+len(fresh) > maxTraits {
		clear(h.known)
	}
	var err error
	for len(fresh) > 0 && err == nil {
		fresh, err = h.readSomeTraits(ctx, fresh, flags)
	}
	return err
}

// readSomeTraits is like readTraits, but reads only as many processes as fit on
// one command line and returns the remaining ones.
func (h *Headrooms) readSomeTraits(ctx context.Context, fresh []newProcess, flags map[string][]byte) (rest []newProcess,
	err error) {
	some := h.most(len(fresh), func(n int) []shell.Part { return h.traitParts(fresh[:n], flags) })
	fresh, rest = fresh[:some], fresh[some:]
	m := shell.NewMarker()
	a, err := shell.Ask(ctx, h.dev, traitsTimeout, m.Join(h.traitParts(fresh, flags)))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	// Responses that arrived before a service hung are still used.
	hung := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !hung {
		return nil, fmt.Errorf("read headroom: %w", err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole && !hung {
		return nil, fmt.Errorf("read headroom: %w: truncated answer", ErrDevice)
	}
	if !h.asked {
		if _, answered := parts["pid_max"]; !answered {
			return nil, fmt.Errorf("read headroom: no answer in %v: %w", traitsTimeout, ErrNoAnswer)
		}
		h.phone, h.asked = readBounds(parts), true
		h.phone.limiter = h.readLimiter(parts)
	}
	for i, n := range fresh {
		label := strconv.Itoa(i)
		if _, asked := flags[n.Package()]; !asked {
			flags[n.Package()] = parts["flags"+label]
		}
		h.known[n.Process] = n.traits(parts, label, flags[n.Package()])
	}
	for _, n := range rest {
		if _, asked := flags[n.Package()]; hung && !asked {
			flags[n.Package()] = nil // the service would hang again
		}
	}
	return rest, nil
}

// newProcess is a process that is read for the first time.
type newProcess struct {
	Process
	parent known.Int
}

// traitParts returns the commands that read the constant values. The package
// service comes last, because it may hang. It is called for the first process
// of each package, unless flags already has its response.
func (h *Headrooms) traitParts(fresh []newProcess, flags map[string][]byte) []shell.Part {
	var parts, late []shell.Part
	if !h.asked {
		for _, name := range []string{
			"dalvik.vm.heapgrowthlimit", "dalvik.vm.heapsize", "dalvik.vm.heapmaxfree", "ro.product.cpu.abilist32",
			"ro.product.cpu.abilist64",
		} {
			parts = append(parts, shell.Part{name, "getprop " + name})
		}
		parts = append(parts, shell.Part{"machine", "uname -m 2>/dev/null"},
			shell.Part{"threads-max", "cat /proc/sys/kernel/threads-max 2>&1"},
			shell.Part{"pid_max", "cat /proc/sys/kernel/pid_max 2>&1"})
	}
	for i, n := range fresh {
		label := strconv.Itoa(i)
		if n.parent.Known {
			parts = append(parts,
				shell.Part{"parent" + label, fmt.Sprintf("cat /proc/%d/cmdline 2>/dev/null", n.parent.N)})
		}
		// This is the name of the cgroup of the process (system/core
		// libprocessgroup, ConvertUidPidToPath).
		group := fmt.Sprintf("uid_%d/pid_%d/pids.max", n.UID, n.PID)
		parts = append(parts,
			shell.Part{
				"pids" + label, "cat /sys/fs/cgroup/" + group + " /sys/fs/cgroup/apps/" + group + " 2>/dev/null",
			})
		if _, asked := flags[n.Package()]; !asked && firstOf(fresh, n) == i {
			late = append(late, shell.Part{"flags" + label, h.dumpPackage(n.Package())})
		}
	}
	return slices.Concat(parts, h.limiterParts(), late)
}

// firstOf returns the index of the first process in fresh that belongs to the
// same package as n.
func firstOf(fresh []newProcess, n newProcess) int {
	return slices.IndexFunc(fresh, func(other newProcess) bool { return other.Package() == n.Package() })
}

// dumpPackage returns the command that prints the line with an app's flags
// (frameworks/base Settings.dumpPackageLPr).
func (h *Headrooms) dumpPackage(pkg string) string {
	return "dumpsys " + dumpsys.TimeoutOption(h.facts.API, 5) + "package " + text.ShellQuote(pkg) +
		" </dev/null 2>/dev/null | grep -E '^ *flags=[[]'"
}

func readBounds(parts map[string][]byte) bounds {
	b := bounds{
		growth:  dumpsys.ParseMemorySize(parts["dalvik.vm.heapgrowthlimit"]),
		heap:    dumpsys.ParseMemorySize(parts["dalvik.vm.heapsize"]),
		maxFree: dumpsys.ParseMemorySize(parts["dalvik.vm.heapmaxfree"]),
		abi32:   shell.Clip(string(parts["ro.product.cpu.abilist32"])),
		abi64:   shell.Clip(string(parts["ro.product.cpu.abilist64"])),
		machine: shell.Clip(string(parts["machine"])),
	}
	for _, sysctl := range []struct {
		name string
		to   *known.Int
	}{{"threads-max", &b.threadsMax}, {"pid_max", &b.pidMax}} {
		text := shell.Clip(string(parts[sysctl.name]))
		if *sysctl.to = positive(text); !sysctl.to.Known {
			b.reasons = append(b.reasons, fmt.Sprintf("%s: the device answered %q", sysctl.name, text))
		}
	}
	return b
}

// foreground is how many times more ART lets the heap of a foreground process
// grow than that of a background process: 3 with concurrent copying, 2 before
// Android 8 (art/runtime/runtime.cc, kExtraDefaultHeapGrowthMultiplier).
const foreground = 3

// garbage returns the maximum number of bytes that may be allocated until the
// next collection (art/runtime/gc/heap.cc, GrowForUtilization).
func (b bounds) garbage() known.Int {
	return known.Int{N: foreground * b.maxFree.N, Known: b.maxFree.Known}
}

func positive(text string) known.Int {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil || n <= 0 {
		return known.Int{}
	}
	return known.Of(n)
}

// traits parses the output about a process and about its package.
func (n newProcess) traits(parts map[string][]byte, label string, flags []byte) traits {
	name, _, _ := bytes.Cut(parts["parent"+label], []byte{0})
	first, _, _ := bytes.Cut(parts["pids"+label], []byte("\n"))
	out := traits{parent: shell.Clip(string(name)), pidsMax: positive(string(first))}
	out.largeHeap = largeHeap(flags)
	if out.largeHeap == dumpsys.Unknown {
		out.reasons = append(out.reasons,
			fmt.Sprintf("large heap: the package service does not report the flags of %s", shell.Clip(n.Package())))
	}
	return out
}

// largeHeap parses a line such as "flags=[ HAS_CODE LARGE_HEAP ]". The first
// such line belongs to the package itself; a later one may belong to the system
// package that the package replaces.
func largeHeap(text []byte) dumpsys.Answer {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	words := strings.Fields(string(line))
	if len(words) < 2 || words[0] != "flags=[" || words[len(words)-1] != "]" {
		return dumpsys.Unknown
	}
	for _, w := range words {
		if w == "LARGE_HEAP" {
			return dumpsys.Yes
		}
	}
	return dumpsys.No
}

// bound sets the limits of the process's resources.
func (h *Headrooms) bound(room *Headroom, l procfs.Limits) {
	own := h.known[room.Process]
	room.Reasons = append(room.Reasons, own.reasons...)
	room.FileLimit = l.OpenFiles.Soft
	if !l.OpenFiles.Soft.Known && l.OpenFiles.Unlimited {
		room.why("open files", "they are not limited")
	}
	room.GrowthLimit, room.HeapSize, room.largeHeap = h.phone.growth, h.phone.heap, own.largeHeap
	room.Garbage = h.phone.garbage()
	h.threadLimit(room, l, own)
	h.addressSpace(room, l, own)
}

// threadLimit sets the limit on threads to the lowest of the limits that apply.
func (h *Headrooms) threadLimit(room *Headroom, l procfs.Limits, own traits) {
	ofUser := l.Processes.Soft
	if room.UID == 0 {
		ofUser = known.Int{} // this limit does not apply to root (kernel/fork.c, copy_process)
	}
	for _, c := range []struct {
		by string
		known.Int
	}{{"Max processes of the uid", ofUser}, {"pids.max of its cgroup", own.pidsMax},
		{"threads-max of the device", h.phone.threadsMax}, {"pid_max of the device", h.phone.pidMax}} {
		if c.Known && c.N > 0 && (!room.ThreadLimit.Known || c.N < room.ThreadLimit.N) {
			room.ThreadLimit, room.ThreadLimitBy = c.Int, c.by
		}
	}
	room.Reasons = append(room.Reasons, h.phone.reasons...)
	if !room.ThreadLimit.Known {
		room.why("threads", "no known limit")
	}
}

const (
	gigabyte = 1 << 30
	// spaceUnder64 and spaceUnder32 are the sizes of the address space of a
	// 32-bit process under a 64-bit kernel and under a 32-bit kernel, in bytes
	// (TASK_SIZE_32 of arch/arm64; TASK_SIZE of arch/arm with the split that
	// Android's kernels use; both minus a few pages or megabytes).
	spaceUnder64 = 4 * gigabyte
	spaceUnder32 = 3 * gigabyte
)

// addressSpace sets the limit of the address space.
func (h *Headrooms) addressSpace(room *Headroom, l procfs.Limits, own traits) {
	reason := ""
	room.Bits, reason = h.phone.bits(room.Virtual, own.parent)
	switch room.Bits {
	case 32:
		room.VirtualLimit, reason = h.phone.space(room.Virtual)
	case 64:
		reason = "a 64-bit process does not run out of it"
	}
	if soft := l.AddressSpace.Soft; soft.Known && soft.N > 0 &&
		(!room.VirtualLimit.Known || soft.N < room.VirtualLimit.N) {
		room.VirtualLimit, reason = soft, ""
	}
	if !room.Virtual.Known {
		room.why("address space", "no VmSize in its status")
	}
	if reason != "" {
		room.why("address space", reason)
	}
}

// bits returns the word size of an app's process, derived from its parent,
// which is called zygote64 or zygote (frameworks/base
// cmds/app_process/app_main.cpp, ZYGOTE_NICE_NAME).
func (b bounds) bits(virtual known.Int, parent string) (bits int, reason string) {
	switch {
	case virtual.Known && virtual.N > spaceUnder64:
		return 64, ""
	case b.abi32 != "" && b.abi64 == "":
		return 32, ""
	case b.abi64 != "" && b.abi32 == "":
		return 64, ""
	case parent == "zygote64":
		return 64, ""
	case parent == "zygote":
		return 32, ""
	case parent == "":
		return 0, "unknown whether it is a 32-bit process: its parent is not readable"
	}
	return 0, fmt.Sprintf("unknown whether it is a 32-bit process: its parent is %s", path.Base(parent))
}

// space returns the size of the address space of a 32-bit process, and the
// reason if the size is uncertain.
func (b bounds) space(virtual known.Int) (known.Int, string) {
	switch b.machine {
	case "aarch64", "x86_64", "armv8l": // arm64 reports armv8l to 32-bit programs
		return known.Of(spaceUnder64), ""
	}
	if b.abi64 != "" || virtual.Known && virtual.N > spaceUnder32 {
		return known.Of(spaceUnder64), ""
	}
	if b.machine == "" {
		return known.Of(spaceUnder32), "unknown whether the kernel is 64-bit; assumed to be 32-bit"
	}
	return known.Of(spaceUnder32), ""
}
