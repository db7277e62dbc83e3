package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/shell"
)

// Recipe lists what to collect from a process, in order, to answer one
// question.
type Recipe struct {
	// Name is java, native, gpu, thread, unknown, snapshot or dump.
	Name  string
	Steps []Step
}

// Step is one artifact of a recipe, with the methods to get it.
type Step struct {
	// Name is the artifact: heap, showmap, smaps, ... It is unique in a recipe.
	Name string
	// File is the name of the artifact in the folder of the diagnosis.
	File string
	// Proves describes what the artifact shows, for the report.
	Proves string
	// Substitute is the step whose artifact replaces this one if no method
	// works; it may be empty.
	Substitute string
	// Outlives marks an artifact that belongs to the device, not to the
	// process: it is also taken after the process has ended, and may show why
	// it ended.
	Outlives bool
	// Methods are tried in order until one returns the whole artifact; those
	// that lose no information and run as the fast channel's user are tried
	// first.
	Methods []Method
}

// As identifies the user that runs a method.
type As uint8

// The users that can run a method.
const (
	// AsShell is the unmodified shell: uid 2000, or root after `adb root`.
	AsShell As = iota
	// AsRoot is root: the shell itself if it is root, else su.
	AsRoot
	// AsApp is the app's own user, through run-as.
	AsApp
)

// String returns shell, root or run-as.
func (a As) String() string {
	return [...]string{"shell", "root", "run-as"}[a]
}

// Method is one way to get an artifact.
type Method struct {
	// Command is one command line for the device's shell. {pid}, {process},
	// {package} and {user} are replaced by quoted values; {{ is a brace.
	// Commands of this package may also contain {-t}, which is replaced by the
	// time limit of dumpsys if this release supports one.
	Command string
	// Heap means that the method takes a heap dump and does not run a command.
	Heap bool
	As   As
	// From and To are the first and the last API level that support the method;
	// 0 means no bound.
	From, To int
	// File is the artifact's name if this method returns a different kind of
	// output than the best method; if it is empty, Step.File is used.
	File string
	// Limit is the maximum wall-clock time; it is shorter on a simulated device
	// with a faster clock.
	Limit time.Duration
	// Max is the maximum size of the artifact in bytes.
	Max int64
	// Note describes what this method loses; it is empty if nothing is lost.
	Note string
	// Accept rejects output that is not the artifact: an error message of the
	// device or truncated output. If Accept is nil, any output that is not
	// empty is accepted.
	Accept func(text []byte) error

	// about is like Accept, and also receives the process.
	about func(p capture.Process, text []byte) error
	// own reduces device-wide output to the parts about the app; it is nil if
	// the whole output is about the process. The other parts are never written
	// to the host's disk.
	own func(app dumpsys.AppFilter, text []byte, now time.Time) dumpsys.Part
	// exits is the highest exit status with which the output can be complete.
	exits int
	// script reports whether Command comes from the user and may contain more
	// than one command.
	script bool
}

// MaxHeap is the maximum size of a heap dump in bytes: more than any Java heap
// (dalvik.vm.heapsize is 1 GB at most).
const MaxHeap = 4 << 30

const (
	// someGone is the exit status of grep and ls if a file disappeared while
	// they ran.
	someGone = 2
	// anyExit is the highest exit status accepted from dumpsys, whose output
	// itself shows whether it is complete. A higher exit status means that a
	// signal ended the command.
	anyExit = 128

	mebibyte = 1 << 20
	// maxText is the maximum size of an artifact that is taken once; the smaps
	// of a large app take 3 to 5 MB.
	maxText = 32 * mebibyte
	// maxLight is the maximum size of an artifact that is taken for later
	// comparison.
	maxLight = 5 * mebibyte
	// quickLimit is the time limit for files of /proc; reading the largest
	// takes 0.3 s on a phone.
	quickLimit = 10 * time.Second
	// dumpLimit is the time limit for system_server to respond; it exceeds the
	// default limit of dumpsys on the device.
	dumpLimit = 15 * time.Second
	// heapLimit is the time limit for writing a heap dump, which usually takes
	// a minute.
	heapLimit = 5 * time.Minute
)

// RecipeOf returns the recipe for a kind of leak (java, native, gpu, thread,
// unknown), for snapshot (light artifacts for later comparison) or for dump
// (only the heap).
func RecipeOf(name string) (Recipe, bool) {
	names, ok := recipes[name]
	if !ok {
		return Recipe{}, false
	}
	r := Recipe{Name: name}
	for _, n := range names {
		r.Steps = append(r.Steps, steps[n]())
	}
	if name == "snapshot" {
		r.lighten()
	}
	return r, true
}

// recipes lists the steps of each recipe, light ones first: a step that takes a
// long time, or stops the process, affects the steps after it.
var recipes = map[string][]string{
	"java":     {"meminfo", "heap", "logcat", "exit_info"},
	"native":   {"status", "smaps", "showmap", "maps", "meminfo", "logcat", "exit_info"},
	"gpu":      {"meminfo", "gfxinfo", "gpu", "surfaceflinger", "logcat", "exit_info"},
	"thread":   {"status", "threads", "meminfo", "logcat", "exit_info"},
	"unknown":  {"status", "smaps", "showmap", "maps", "meminfo", "heap", "logcat", "exit_info"},
	"snapshot": {"status", "threads", "smaps", "showmap", "maps", "meminfo", "gfxinfo", "gpu", "surfaceflinger"},
	"dump":     {"heap"},
}

// steps holds the definition of each artifact by its name.
var steps = map[string]func() Step{
	"heap": func() Step {
		return Step{
			Name: "heap", File: "heap.hprof", Proves: "which Java objects are held, and by which path of references",
			Methods: []Method{{Heap: true, Limit: heapLimit, Max: MaxHeap}}}
	},
	"smaps": func() Step {
		s := procStep("smaps",
			"each mapping of the process with its memory: which library, heap, stack or device file grows", wholeSmaps)
		s.Methods = append(s.Methods,
			Method{Command: "dumpsys {-t}meminfo -a {pid}", File: "smaps_meminfo.txt", Limit: dumpLimit, Max: maxText,
				Note: "only the rows of meminfo; the library is unknown", about: wholeMeminfo, exits: anyExit})
		return s
	},
	"maps": func() Step {
		return procStep("maps", "the addresses of all mappings, to read native call stacks", wholeMaps)
	},
	"showmap": func() Step {
		// showmap reads smaps, so it works only for users that may read smaps.
		method := func(as As) Method {
			return Method{Command: "showmap -v {pid}", As: as, Limit: quickLimit, Max: maxText, Accept: wholeShowmap}
		}
		plain := func(as As) Method {
			w := method(as)
			w.Command, w.Note = "showmap {pid}", "mappings with the same name are merged into one line"
			return w
		}
		return Step{Name: "showmap", File: "showmap.txt", Proves: "the memory of each library and kind of mapping",
			Substitute: "smaps",
			Methods:    []Method{method(AsRoot), method(AsApp), plain(AsRoot), plain(AsApp)}}
	},
	"status": func() Step {
		return Step{
			Name: "status", File: "status.txt",
			Proves: "the number of threads, the virtual size and the resident memory by kind",
			Methods: []Method{
				{Command: "cat /proc/{pid}/status", Limit: quickLimit, Max: mebibyte, about: wholeStatus},
			}}
	},
	"threads": func() Step {
		// One grep reads the names of hundreds of threads, and prints the path
		// of the file before each name.
		return Step{Name: "threads", File: "threads.txt", Proves: "the names of all threads: which pool grows",
			Methods: []Method{
				{
					Command: "grep -H '^' /proc/{pid}/task/*/comm", Limit: quickLimit, Max: maxLight,
					about: wholeThreads, exits: someGone,
				},
				{
					Command: "ls /proc/{pid}/task", File: "thread_ids.txt", Limit: quickLimit, Max: maxLight,
					Note: "without the names of the threads", about: wholeThreadIDs, exits: someGone,
				},
			}}
	},
	"meminfo": func() Step {
		return Step{
			Name: "meminfo", File: "meminfo.txt",
			Proves: "the memory of the process by kind, as Android sums it, and its counts of Activities and Views",
			Methods: []Method{
				{
					Command: "dumpsys {-t}meminfo {pid}", Limit: dumpLimit, Max: maxText, about: wholeMeminfo,
					exits: anyExit,
				},
			}}
	},
	"gfxinfo": func() Step {
		return Step{
			Name: "gfxinfo", File: "gfxinfo.txt",
			Proves: "the caches of the renderer and the buffers that the process holds",
			Methods: []Method{
				{
					Command: "dumpsys {-t}gfxinfo {pid}", Limit: dumpLimit, Max: maxText, about: wholeGfxinfo,
					exits: anyExit, own: untimed(dumpsys.AppFilter.Gfxinfo),
				},
			}}
	},
	"gpu": func() Step {
		// GpuService has supported --gpumem since Android 12 (frameworks/native
		// services/gpuservice).
		return Step{
			Name: "gpu", File: "gpu.txt",
			Proves: "the GPU memory of the process, as the driver reports it to the kernel",
			Methods: []Method{
				{
					Command: "dumpsys {-t}gpu --gpumem", From: 31, Limit: dumpLimit, Max: maxText, Accept: wholeGPU,
					exits: anyExit, own: untimed(dumpsys.AppFilter.GPU),
				},
			}}
	},
	"surfaceflinger": func() Step {
		return Step{
			Name: "surfaceflinger", File: "surfaceflinger.txt",
			Proves: "the graphic buffers of all windows, with the names of the app's layers",
			Methods: []Method{
				{
					Command: "dumpsys {-t}SurfaceFlinger", Limit: dumpLimit, Max: maxText, Accept: wholeSurfaceFlinger,
					exits: anyExit, own: untimed(dumpsys.AppFilter.SurfaceFlinger),
				},
			}}
	},
	"logcat": func() Step {
		// Each buffer is passed with its own -b, which every release accepts;
		// the crash buffer has existed since Android 5.
		return Step{
			Name: logcatStep, File: "logcat.txt", Proves: "recent garbage collections, crashes and kills",
			Outlives: true,
			Methods: []Method{
				{
					Command: "logcat -d -v threadtime -t 2000 -b main -b system -b crash", From: 21, Limit: dumpLimit,
					Max: maxText, Accept: wholeLogcat, own: dumpsys.AppFilter.Logcat,
				},
				{
					Command: "logcat -d -v threadtime -t 2000", Limit: dumpLimit, Max: maxText,
					Note: "without the crash buffer", Accept: wholeLogcat, own: dumpsys.AppFilter.Logcat,
				},
			}}
	},
	"exit_info": func() Step {
		return Step{
			Name: "exit_info", File: "exit_info.txt",
			Proves: "how earlier processes of the app ended: crash, ANR or kill", Outlives: true,
			Methods: []Method{
				{
					Command: "dumpsys {-t}activity exit-info {package}", From: 30, Limit: dumpLimit, Max: maxText,
					Accept: wholeExitInfo, exits: anyExit, own: untimed(dumpsys.AppFilter.ExitInfo),
				},
			}}
	},
}

// logcatStep is the name of the step that keeps the device's log.
const logcatStep = "logcat"

// untimed converts a filter for output without timestamps to the type of
// Method.own.
func untimed(filter func(dumpsys.AppFilter, []byte) dumpsys.Part) func(dumpsys.AppFilter, []byte,
	time.Time) dumpsys.Part {
	return func(app dumpsys.AppFilter, text []byte, _ time.Time) dumpsys.Part { return filter(app, text) }
}

// procStep returns a step for a file of /proc/PID that only users that may
// trace the process can read.
func procStep(file, proves string, accept func([]byte) error) Step {
	s := Step{Name: file, File: file + ".txt", Proves: proves}
	for _, as := range []As{AsShell, AsRoot, AsApp} {
		s.Methods = append(s.Methods,
			Method{Command: "cat /proc/{pid}/" + file, As: as, Limit: quickLimit, Max: maxText, Accept: accept})
	}
	return s
}

// lighten removes the methods that return a different kind of output, which
// could not be compared with later output, and limits the size of the artifacts
// of the other methods.
func (r *Recipe) lighten() {
	for i := range r.Steps {
		s := &r.Steps[i]
		s.Methods = slices.DeleteFunc(s.Methods, func(w Method) bool { return w.File != "" })
		for j := range s.Methods {
			s.Methods[j].Max = min(s.Methods[j].Max, maxLight)
		}
	}
}

// With returns the recipe with more steps appended. A step replaces an existing
// step of the same name.
func (r Recipe) With(more ...Step) Recipe {
	r.Steps = slices.Clone(r.Steps)
	for _, s := range more {
		if i := slices.IndexFunc(r.Steps, func(have Step) bool { return have.Name == s.Name }); i >= 0 {
			r.Steps[i] = s
			continue
		}
		r.Steps = append(r.Steps, s)
	}
	return r
}

const (
	maxStepName = 40
	maxCommand  = 2000
	// maxLimit is the maximum time of one command.
	maxLimit = time.Hour
)

// CustomStep returns a step that runs one line in the device's shell; the
// output is the artifact. {pid}, {process}, {package} and {user} are replaced
// by quoted values; {{ is a brace. The name consists of lower-case letters,
// digits, dashes and underscores, and must differ from the names of the
// built-in steps. The limit is in wall-clock time.
func CustomStep(name, command string, limit time.Duration) (Step, error) {
	if name == "" || len(name) > maxStepName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		return Step{}, fmt.Errorf("invalid step name %q: "+
			"want 1 to %d lower-case letters, digits, dashes and underscores", name, maxStepName)
	}
	if _, ok := steps[name]; ok {
		return Step{}, fmt.Errorf("invalid step name %q: a built-in step has this name", name)
	}
	if err := checkLine(command); err != nil {
		return Step{}, fmt.Errorf("define step %q: %w", name, err)
	}
	if limit <= 0 || limit > maxLimit {
		return Step{}, fmt.Errorf("define step %q: the limit %v is not between 0 and %v", name, limit, maxLimit)
	}
	return Step{
		// The file name has a prefix, because some systems reserve names such
		// as con.
		Name: name, File: "custom_" + name + ".txt", Proves: "what " + shell.Clip(command) + " prints",
		Methods: []Method{{Command: command, Limit: limit, Max: maxText, script: true}},
	}, nil
}
