package hostdevice

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/hostdevice/proctable"
	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

//go:embed app/*.java
var leakySources embed.FS

const leakyClass = "com.example.leaky.Leaky"

// activities maps each activity that can be started to the processes that it
// starts.
var activities = map[string][]string{
	".All":     {"java", "native", "thread", "control"},
	".Java":    {"java"},
	".Native":  {"native"},
	".Mapped":  {"mapped"},
	".Threads": {"thread"},
	".Control": {"control"},
	".Busy":    {"busy"},
	".Private": {"private"},
	".Files":   {"files"},
	".WarmUp":  {"warmup"},
	".Cache":   {"cache"},
	".Screens": {"screens"},
	".Kept":    {"kept"},
	".List":    {"list"},
	".Buffers": {"buffers"},
	".Filling": {"filling"},
	".Steady":  {"steady"},
}

// settling contains the modes in which memory grows to a certain level. These
// modes require a duration.
var settling = map[string]bool{"warmup": true, "cache": true}

// app is the installed app with its processes.
type app struct {
	device *Device

	compiling sync.Mutex
	compiled  bool

	mu        sync.Mutex
	processes map[string]*appProcess
	exits     []androidtext.Exit
	stopped   bool
	reapers   sync.WaitGroup
}

// appProcess is a running process of the app.
type appProcess struct {
	name  string
	pid   int
	ended chan struct{}
	// exitRecorded is closed when the exit has been recorded. outputEnded is
	// closed when the process's output has ended; lastLine is the last line of
	// the output.
	exitRecorded, outputEnded chan struct{}
	lastLine                  string
	// cause is the reason why the device killed the process, or nil if the
	// device did not kill it. It is guarded by the app's lock.
	cause *cause
}

func newApp(d *Device) *app { return &app{device: d, processes: map[string]*appProcess{}} }

// leak is the rate and the duration of a leak in device time, as set by the
// extras of an intent.
type leak struct {
	mbPerHour float64
	seconds   float64 // duration; 0 means forever; settleTime for the settling modes
}

const (
	// defaultRate, in MB/h, is high enough for detection within an hour of
	// device time.
	defaultRate = 300
	// settleTime is how long memory grows in the settling modes, in seconds.
	settleTime = 1800
)

// start starts the process of a mode unless it is already running. It returns
// when the process has set its name.
func (a *app) start(ctx context.Context, mode string, l leak) (started bool, err error) {
	if err := a.compile(ctx); err != nil {
		return false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	name := a.device.options.Package + ":" + mode
	if a.stopped {
		return false, errClosed
	}
	if a.processes[name] != nil {
		return false, nil
	}
	p, err := a.launch(name, mode, l)
	if err != nil {
		return false, fmt.Errorf("start process %s: %w", name, err)
	}
	a.processes[name] = p
	a.device.log(os.Getpid(), 'I', "ActivityManager", fmt.Sprintf("Start proc %d:%s/%s for top-activity {%s/.%s}",
		p.pid, name, androidtext.ShortUser(a.device.options.AppUID), a.device.options.Package, mode))
	return true, p.awaitName(ctx)
}

// compile compiles the app unless it has been compiled before.
func (a *app) compile(ctx context.Context) error {
	a.compiling.Lock()
	defer a.compiling.Unlock()
	if a.compiled {
		return nil
	}
	if err := CheckJava(); err != nil {
		return err
	}
	sources, err := a.install()
	if err != nil {
		return fmt.Errorf("install app: %w", err)
	}
	// sun.misc.Signal causes warnings that cannot be suppressed in any other
	// way.
	cmd := exec.CommandContext(ctx, "javac",
		append([]string{"-J-XX:-UsePerfData", "-XDignore.symbol.file", "-g", "-d", a.device.dir.App()}, sources...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile app: %w: %s", err, out)
	}
	a.compiled = true
	return nil
}

// install writes the app's sources and returns their paths.
func (a *app) install() (paths []string, err error) {
	files, err := leakySources.ReadDir("app")
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := leakySources.ReadFile("app/" + f.Name())
		if err != nil {
			return nil, err
		}
		path := filepath.Join(a.device.dir.App(), f.Name())
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// flags returns the flags of the Java virtual machine. With these flags, all
// memory except for the leak stays constant. The code is not gradually
// compiled. The young generation is small, has a fixed size and is soon
// entirely touched. The old generation is reserved at the start, touched as it
// fills, and fully compacted. No memory pools grow with the number of threads.
func (a *app) flags(mode string) []string {
	heap := strconv.Itoa(a.device.options.HeapMB)
	return []string{
		"-Xint", "-XX:+UseSerialGC", "-Xms" + heap + "m", "-Xmx" + heap + "m", "-Xmn2m", "-XX:MarkSweepDeadRatio=0",
		"-XX:MaxDirectMemorySize=" + heap + "m", "-XX:ReservedCodeCacheSize=8m", "-XX:CompressedClassSpaceSize=16m",
		"-XX:-UsePerfData", "-Xlog:gc:stdout:none", "-XX:+ExitOnOutOfMemoryError", "-XX:-CreateCoredumpOnCrash",
		"-XX:ErrorFile=" + filepath.Join(a.device.dir.Log(), "crash-%p.txt"),
		"-Dheap.used=" + a.device.heapUsedFile(mode), "-cp", a.device.dir.App(), leakyClass,
	}
}

func (a *app) launch(name, mode string, l leak) (*appProcess, error) {
	d := a.device
	log, err := os.OpenFile(filepath.Join(d.dir.Log(), mode+".txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	said, out, err := os.Pipe()
	if err != nil {
		log.Close()
		return nil, err
	}
	defer out.Close()
	args := append([]string{"launch", name, "java"}, a.flags(mode)...)
	args = append(args, mode, "--mb-per-h", formatNumber(l.mbPerHour), "--scale", formatNumber(d.options.Scale))
	if l.seconds == 0 && settling[mode] {
		l.seconds = settleTime
	}
	if l.seconds > 0 {
		args = append(args, "--for-s", formatNumber(l.seconds))
	}
	cmd := exec.Command(d.program(), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = d.dir.Home(), out, out
	// Without MALLOC_ARENA_MAX, glibc creates a memory pool for every thread.
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + d.dir.Home(), "LANG=C", "MALLOC_ARENA_MAX=1", state.Variable + "=" +
			string(d.dir),
	}
	if limit := d.options.FileLimit; limit > 0 {
		cmd.Env = append(cmd.Env, state.FilesVariable+"="+strconv.Itoa(limit))
	}
	// The file may still contain the value of the previous process.
	if err := os.Remove(d.heapUsedFile(mode)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, said.Close(), log.Close())
	}
	if err := d.starter.start(cmd, d.options.AppUID, os.Getuid()); err != nil {
		said.Close()
		log.Close()
		return nil, err
	}
	p := &appProcess{
		name: name, pid: cmd.Process.Pid, ended: make(chan struct{}), exitRecorded: make(chan struct{}),
		outputEnded: make(chan struct{}),
	}
	a.reapers.Go(func() { p.copyOutput(said, log, d) })
	a.reapers.Go(func() { a.reap(p, cmd) })
	return p, nil
}

// heapUsedFile returns the file to which a process writes how much of its Java
// heap is in use. The kernel cannot report this: pages that a collection freed
// stay resident.
func (d *Device) heapUsedFile(mode string) string {
	return filepath.Join(d.dir.Home(), "heap-used-"+mode)
}

// heapUsed returns the latest value that a process wrote to the file, in kB, or
// 0 if there is none.
func (d *Device) heapUsed(p *appProcess) int64 {
	_, mode, _ := strings.Cut(p.name, ":")
	text, err := os.ReadFile(d.heapUsedFile(mode))
	if err != nil || len(text) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(text) >> 10)
}

func formatNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func (a *app) reap(p *appProcess, cmd *exec.Cmd) {
	cmd.Wait()
	os.Remove(state.AttachSocket(p.pid))
	close(p.ended) // before taking the lock, which start holds while it waits for the name
	a.recordExit(p, cmd)
	close(p.exitRecorded)
}

// nameWithin is the maximum time that a process may take to set its name.
const nameWithin = 10 * time.Second

func (p *appProcess) awaitName(ctx context.Context) error {
	deadline := time.After(nameWithin)
	for {
		if q, err := proctable.Read(p.pid); err == nil && q.Name == p.name {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.ended:
			return fmt.Errorf("start process %s: it exited immediately", p.name)
		case <-deadline:
			return fmt.Errorf("start process %s: it did not set its name", p.name)
		case <-time.After(time.Millisecond):
		}
	}
}

// list returns the running processes, sorted by name.
func (a *app) list() []*appProcess {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*appProcess
	for _, p := range a.processes {
		list = append(list, p)
	}
	slices.SortFunc(list, func(p, q *appProcess) int { return bytes.Compare([]byte(p.name), []byte(q.name)) })
	return list
}

// find returns the process with the given name or pid.
func (a *app) find(target string) (*appProcess, bool) {
	for _, p := range a.list() {
		if p.name == target || strconv.Itoa(p.pid) == target {
			return p, true
		}
	}
	return nil, false
}

// stop kills processes, records the cause, and waits until they have exited.
func (a *app) stop(list []*appProcess, why cause) {
	a.mu.Lock()
	for _, p := range list {
		select {
		case <-p.ended:
		default:
			p.cause = &why
			syscall.Kill(-p.pid, syscall.SIGKILL)
		}
	}
	a.mu.Unlock()
	for _, p := range list {
		<-p.exitRecorded
	}
}

func (a *app) stopAll() {
	a.mu.Lock()
	a.stopped = true
	a.mu.Unlock()
	a.stop(a.list(), inBackground)
	a.reapers.Wait()
}

// dump writes the heap of a process to a file on this machine; if all is set,
// the dump includes garbage.
func (a *app) dump(ctx context.Context, p *appProcess, file string, all bool) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	began, api := time.Now(), a.device.options.API
	a.device.log(p.pid, 'I', a.device.tagOf(p), androidtext.DumpBegins(api, a.device.shown(file)))
	args := []string{"-J-XX:-UsePerfData", "-J-XX:+UseSerialGC", "-J-Xint", strconv.Itoa(p.pid), "GC.heap_dump"}
	if all {
		args = append(args, "-all")
	}
	cmd := exec.Command("jcmd", append(args, file)...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", &out, &out
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C", state.Variable + "=" + string(a.device.dir)}
	if err := a.device.starter.start(cmd, a.device.options.AppUID, os.Getuid()); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	err := cmd.Wait()
	stop()
	info, missing := os.Stat(file)
	if err != nil || missing != nil {
		return fmt.Errorf("dump heap: %w: %s", errors.Join(err, missing), out.Bytes())
	}
	a.device.log(p.pid, 'I', a.device.tagOf(p), androidtext.DumpEnds(info.Size(), time.Since(began), 0))
	// The shell must be able to read and remove the file.
	return os.Chmod(file, 0o644)
}
