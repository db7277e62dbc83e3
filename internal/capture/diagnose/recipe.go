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

// Recipe is what to collect of a process for one question, in order.
type Recipe struct {
	// Name is java, native, gpu, thread, unknown, snapshot or dump.
	Name  string
	Steps []Step
}

// Step is one artifact of a recipe, with the ways to get it.
type Step struct {
	// Name says which artifact: heap, showmap, smaps, ... It is unique in a recipe.
	Name string
	// File is the name of the artifact in the folder of the diagnosis.
	File string
	// Proves is what the artifact tells, for the report.
	Proves string
	// Instead is the step whose artifact takes the place of this one where no way gives
	// it; empty for none.
	Instead string
	// Outlives says that the artifact is the device's, not the process's: it is taken
	// after the end of the process too, and may tell the reason of it.
	Outlives bool
	// Ways are tried in order until one gives the whole artifact. Of those that lose
	// nothing the one by which the fast channel reads goes first.
	Ways []Way
}

// As says under which user a way runs.
type As uint8

// The users of a way.
const (
	// AsShell is the shell as it is: user 2000, or root after `adb root`.
	AsShell As = iota
	// AsRoot is root: the shell itself where it is root, else su.
	AsRoot
	// AsApp is the app's own user, by run-as.
	AsApp
)

// String gives shell, root or run-as.
func (a As) String() string {
	return [...]string{"shell", "root", "run-as"}[a]
}

// Way is one way to get an artifact.
type Way struct {
	// Command is one line for the device's shell. {pid}, {process}, {package} and {user}
	// are filled in, quoted; {{ is a brace. What this package sends itself also has
	// {-t}, the time limit of dumpsys where this release knows one.
	Command string
	// Heap makes it a heap dump instead of a command.
	Heap bool
	As   As
	// From and To are the API levels that have it; 0 is no bound.
	From, To int
	// File is the artifact's name where this way gives another text than the best
	// one; empty for the step's.
	File string
	// Limit is the real time that it may take; a stand-in device whose time runs faster
	// gets less.
	Limit time.Duration
	// Max is the size of the artifact in bytes beyond which it is refused.
	Max int64
	// Note is what is lost where this way had to be taken; empty if nothing is.
	Note string
	// Accept refuses a text that is not the artifact: the device's words of an error, a
	// text that was cut. Nil takes any that is not empty.
	Accept func(text []byte) error

	// about is Accept that knows the process.
	about func(p capture.Process, text []byte) error
	// own keeps of a text of the whole device what is about the app; nil where the text is the
	// process's. Nothing else of it comes to the host's disk.
	own func(app dumpsys.AppFilter, text []byte, now time.Time) dumpsys.Part
	// exits is the greatest exit status with which the command may end and have printed
	// all that there is.
	exits int
	// script is a line of somebody else's, which may be more than one command.
	script bool
}

// MaxHeap is the size in bytes beyond which a heap dump is refused: more than any Java
// heap (dalvik.vm.heapsize is 1 GB at most).
const MaxHeap = 4 << 30

const (
	// someGone is that of grep and ls where a file has gone while they listed it.
	someGone = 2
	// anyExit is for dumpsys, whose text tells by itself whether it is whole. More than
	// that is a signal's.
	anyExit = 128

	mebibyte = 1 << 20
	// maxText is for what is taken once; smaps of a large app has 3 to 5 MB.
	maxText = 32 * mebibyte
	// maxLight is for what is taken to compare with later.
	maxLight = 5 * mebibyte
	// quickLimit is for files of /proc; the largest takes 0.3 s on a phone.
	quickLimit = 10 * time.Second
	// dumpLimit is for what system_server answers, with the default limit of dumpsys on the device.
	dumpLimit = 15 * time.Second
	// heapLimit is for the writing of a heap dump: a minute is usual.
	heapLimit = 5 * time.Minute
)

// RecipeOf gives the recipe for a kind of leak (java, native, gpu, thread, unknown), for
// snapshot (what is light, to compare with later) or dump (the heap alone).
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

// recipes are what each question takes, the light first: what takes long, or stops the
// process, changes what comes after it.
var recipes = map[string][]string{
	"java":     {"meminfo", "heap", "logcat", "exit_info"},
	"native":   {"status", "smaps", "showmap", "maps", "meminfo", "logcat", "exit_info"},
	"gpu":      {"meminfo", "gfxinfo", "gpu", "surfaceflinger", "logcat", "exit_info"},
	"thread":   {"status", "threads", "meminfo", "logcat", "exit_info"},
	"unknown":  {"status", "smaps", "showmap", "maps", "meminfo", "heap", "logcat", "exit_info"},
	"snapshot": {"status", "threads", "smaps", "showmap", "maps", "meminfo", "gfxinfo", "gpu", "surfaceflinger"},
	"dump":     {"heap"},
}

// steps are all artifacts that there are.
var steps = map[string]func() Step{
	"heap": func() Step {
		return Step{Name: "heap", File: "heap.hprof", Proves: "which Java objects are held, and by which path of references",
			Ways: []Way{{Heap: true, Limit: heapLimit, Max: MaxHeap}}}
	},
	"smaps": func() Step {
		s := procStep("smaps", "each mapping of the process with its memory: which library, heap, stack or device file grows", wholeSmaps)
		s.Ways = append(s.Ways, Way{Command: "dumpsys {-t}meminfo -a {pid}", File: "smaps_meminfo.txt", Limit: dumpLimit, Max: maxText,
			Note: "only the rows of meminfo: which library cannot be told", about: wholeMeminfo, exits: anyExit})
		return s
	},
	"maps": func() Step {
		return procStep("maps", "the addresses of all mappings, by which native call stacks are read", wholeMaps)
	},
	"showmap": func() Step {
		// showmap reads smaps: who may not read the one gets nothing of the other.
		way := func(as As) Way {
			return Way{Command: "showmap -v {pid}", As: as, Limit: quickLimit, Max: maxText, Accept: wholeShowmap}
		}
		plain := func(as As) Way {
			w := way(as)
			w.Command, w.Note = "showmap {pid}", "the mappings of one name are one line"
			return w
		}
		return Step{Name: "showmap", File: "showmap.txt", Proves: "the memory of each library and kind of mapping",
			Instead: "smaps",
			Ways:    []Way{way(AsRoot), way(AsApp), plain(AsRoot), plain(AsApp)}}
	},
	"status": func() Step {
		return Step{Name: "status", File: "status.txt", Proves: "the number of threads, the virtual size and the resident memory by kind",
			Ways: []Way{{Command: "cat /proc/{pid}/status", Limit: quickLimit, Max: mebibyte, about: wholeStatus}}}
	},
	"threads": func() Step {
		// One grep reads the names of hundreds of threads, and names the file of each.
		return Step{Name: "threads", File: "threads.txt", Proves: "the names of all threads: which pool grows",
			Ways: []Way{
				{Command: "grep -H '^' /proc/{pid}/task/*/comm", Limit: quickLimit, Max: maxLight, about: wholeThreads, exits: someGone},
				{Command: "ls /proc/{pid}/task", File: "thread_ids.txt", Limit: quickLimit, Max: maxLight, Note: "without the names of the threads", about: wholeThreadIDs, exits: someGone},
			}}
	},
	"meminfo": func() Step {
		return Step{Name: "meminfo", File: "meminfo.txt", Proves: "the memory of the process by kind, as Android sums it, and its counts of Activities and Views",
			Ways: []Way{{Command: "dumpsys {-t}meminfo {pid}", Limit: dumpLimit, Max: maxText, about: wholeMeminfo, exits: anyExit}}}
	},
	"gfxinfo": func() Step {
		return Step{Name: "gfxinfo", File: "gfxinfo.txt", Proves: "the caches of the renderer and the buffers that the process holds",
			Ways: []Way{{Command: "dumpsys {-t}gfxinfo {pid}", Limit: dumpLimit, Max: maxText, about: wholeGfxinfo, exits: anyExit, own: untimed(dumpsys.AppFilter.Gfxinfo)}}}
	},
	"gpu": func() Step {
		// GpuService knows --gpumem since Android 12 (frameworks/native services/gpuservice).
		return Step{Name: "gpu", File: "gpu.txt", Proves: "the GPU memory of the process, as the driver reports it to the kernel",
			Ways: []Way{{Command: "dumpsys {-t}gpu --gpumem", From: 31, Limit: dumpLimit, Max: maxText, Accept: wholeGPU, exits: anyExit, own: untimed(dumpsys.AppFilter.GPU)}}}
	},
	"surfaceflinger": func() Step {
		return Step{Name: "surfaceflinger", File: "surfaceflinger.txt", Proves: "the graphic buffers of all windows, with the names of the app's layers",
			Ways: []Way{{Command: "dumpsys {-t}SurfaceFlinger", Limit: dumpLimit, Max: maxText, Accept: wholeSurfaceFlinger, exits: anyExit, own: untimed(dumpsys.AppFilter.SurfaceFlinger)}}}
	},
	"logcat": func() Step {
		// The list of buffers is given by one -b each, which every release takes; the
		// buffer of crashes came with Android 5.
		return Step{Name: logcatStep, File: "logcat.txt", Proves: "garbage collections, crashes and kills around the moment", Outlives: true,
			Ways: []Way{
				{Command: "logcat -d -v threadtime -t 2000 -b main -b system -b crash", From: 21, Limit: dumpLimit, Max: maxText, Accept: wholeLogcat, own: dumpsys.AppFilter.Logcat},
				{Command: "logcat -d -v threadtime -t 2000", Limit: dumpLimit, Max: maxText, Note: "without the buffer of crashes", Accept: wholeLogcat, own: dumpsys.AppFilter.Logcat},
			}}
	},
	"exit_info": func() Step {
		return Step{Name: "exit_info", File: "exit_info.txt", Proves: "how earlier processes of the app have ended: crash, ANR or kill", Outlives: true,
			Ways: []Way{{Command: "dumpsys {-t}activity exit-info {package}", From: 30, Limit: dumpLimit, Max: maxText, Accept: wholeExitInfo, exits: anyExit, own: untimed(dumpsys.AppFilter.ExitInfo)}}}
	},
}

// logcatStep is the step that keeps the device's log.
const logcatStep = "logcat"

// untimed is a filter of a text without times.
func untimed(filter func(dumpsys.AppFilter, []byte) dumpsys.Part) func(dumpsys.AppFilter, []byte, time.Time) dumpsys.Part {
	return func(app dumpsys.AppFilter, text []byte, _ time.Time) dumpsys.Part { return filter(app, text) }
}

// procStep is a file of /proc/PID that only those may read who may trace the process.
func procStep(file, proves string, accept func([]byte) error) Step {
	s := Step{Name: file, File: file + ".txt", Proves: proves}
	for _, as := range []As{AsShell, AsRoot, AsApp} {
		s.Ways = append(s.Ways, Way{Command: "cat /proc/{pid}/" + file, As: as, Limit: quickLimit, Max: maxText, Accept: accept})
	}
	return s
}

// lighten takes the ways away that give another text, which cannot be compared with the
// one that comes later, and bounds the rest.
func (r *Recipe) lighten() {
	for i := range r.Steps {
		s := &r.Steps[i]
		s.Ways = slices.DeleteFunc(s.Ways, func(w Way) bool { return w.File != "" })
		for j := range s.Ways {
			s.Ways[j].Max = min(s.Ways[j].Max, maxLight)
		}
	}
}

// With gives the recipe with more steps at its end. A step of a name that is there
// already takes its place.
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
	// maxLimit is the longest that one command may take.
	maxLimit = time.Hour
)

// CustomStep makes a step of one line for the device's shell, whose output is the
// artifact. {pid}, {process}, {package} and {user} are filled in, quoted; {{ is a brace.
// The name is lower-case letters, digits, dashes and underscores, and none of this package's
// own. The limit is real time.
func CustomStep(name, command string, limit time.Duration) (Step, error) {
	if name == "" || len(name) > maxStepName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		return Step{}, fmt.Errorf("make step %q: a name has 1 to %d lower-case letters, digits, dashes and underscores", name, maxStepName)
	}
	if _, ok := steps[name]; ok {
		return Step{}, fmt.Errorf("make step %q: there is a step of this name already", name)
	}
	if err := checkLine(command); err != nil {
		return Step{}, fmt.Errorf("make step %q: %w", name, err)
	}
	if limit <= 0 || limit > maxLimit {
		return Step{}, fmt.Errorf("make step %q: the limit %v is not between 0 and %v", name, limit, maxLimit)
	}
	return Step{
		// A name of its own: some systems do not take every word for a file.
		Name: name, File: "custom_" + name + ".txt", Proves: "what " + shell.Clip(command) + " prints",
		Ways: []Way{{Command: command, Limit: limit, Max: maxText, script: true}},
	}, nil
}
