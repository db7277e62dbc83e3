package gate

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"
)

// Observation contains what was observed in one run on one device, to the
// extent that it can be compared with other runs.
type Observation struct {
	// Device is the serial number of the device, which is not stored in a
	// baseline.
	Device  string  `json:"-"`
	Subject Testbed `json:"subject"`
	// Twin is the index of this device among the devices of the run that have
	// the same subject.
	Twin   int    `json:"twin,omitempty"`
	Commit string `json:"commit,omitempty"`
	Branch string `json:"branch,omitempty"`
	// PullRequest is the number of the pull request that the run tested; 0 if
	// there is none.
	PullRequest int       `json:"pull_request,omitempty"`
	Started     time.Time `json:"started"`
	Tool        string    `json:"tool,omitempty"`
	// Failed means that the run violated a rule when it was added: the run is
	// only used to excuse the leaks that it contains.
	Failed bool `json:"failed,omitempty"`
	// Unit is the unit of exposure: UnitLoop or UnitEvent.
	Unit      string     `json:"unit"`
	Processes []Observed `json:"processes"`
}

// These are the units of exposure.
const (
	UnitLoop  = "loop"
	UnitEvent = "event"
	UnitHour  = "hour"
	UnitRun   = "run"
)

// Testbed describes what must match for two runs to be comparable.
type Testbed struct {
	App     string `json:"app"`
	Variant string `json:"variant,omitempty"`
	// Test is the name of the suite or test; "" for a workload that identifies
	// itself.
	Test string `json:"test,omitempty"`
	// Workload is the digest of the workload; Marks is the digest of the marks
	// that it sets.
	Workload string `json:"workload,omitempty"`
	Marks    string `json:"marks,omitempty"`
	Model    string `json:"model,omitempty"`
	API      int    `json:"api,omitempty"`
	ABI      string `json:"abi,omitempty"`
}

// These are the parts of a subject that a configuration may exclude from the
// comparison.
const (
	MatchVariant = "variant"
	MatchAPI     = "api"
	MatchABI     = "abi"
	MatchModel   = "model"
)

// MatchAll returns all optional parts; they are compared unless a configuration
// says otherwise.
func MatchAll() []string { return []string{MatchVariant, MatchAPI, MatchABI, MatchModel} }

// narrowed returns the subject without the optional parts that need not match.
func (s Testbed) narrowed(match []string) Testbed {
	if !slices.Contains(match, MatchVariant) {
		s.Variant = ""
	}
	if !slices.Contains(match, MatchAPI) {
		s.API = 0
	}
	if !slices.Contains(match, MatchABI) {
		s.ABI = ""
	}
	if !slices.Contains(match, MatchModel) {
		s.Model = ""
	}
	return s
}

// Differences returns the names of the parts that must match but differ between
// two subjects.
func (s Testbed) Differences(o Testbed, match []string) []string {
	a, b := s.narrowed(match), o.narrowed(match)
	var out []string
	for _, part := range []struct {
		name   string
		differ bool
	}{
		{"app", a.App != b.App}, {"variant", a.Variant != b.Variant}, {"test", a.Test != b.Test},
		{"workload", a.Workload != b.Workload},
		{"marks", a.Marks != b.Marks}, {"device model", a.Model != b.Model}, {"API level", a.API != b.API},
		{"ABI", a.ABI != b.ABI},
	} {
		if part.differ {
			out = append(out, part.name)
		}
	}
	return out
}

// Observed is one process in an observation.
type Observed struct {
	Process string `json:"process"`
	// Names is the origin of the names in the heap dumps: source, mapping,
	// obfuscated or other_mapping.
	Names string `json:"names,omitempty"`
	// Heap contains the moments of the heap dumps of the process. Snapshots
	// contains the moments at which threads, native memory and graphics were
	// counted.
	Heap      Timeline `json:"heap"`
	Snapshots Timeline `json:"snapshots"`
	// Reachable is the size of the reachable heap in bytes at each dump.
	Reachable []int64 `json:"reachable_bytes,omitempty"`
	Places    []Place `json:"leaks"`
	// Undecided is the reason why there may be leaks that are not in Places.
	Undecided string `json:"undecided,omitempty"`
	// Loaded contains the classes of the app that were loaded.
	Loaded ClassSet `json:"loaded,omitempty"`
	// Measures are the measures of a trip, which repeats a scenario; nil if
	// there was no trip.
	Measures []Measure `json:"measures,omitempty"`
	// Trend is the verdict on the memory of the process over time; nil if there
	// is none.
	Trend *TrendVerdict `json:"trend,omitempty"`
	// Deaths counts the deaths of the process by reason, such as crash,
	// out_of_memory or reboot.
	Deaths map[string]int `json:"deaths,omitempty"`
	// Checked reports whether checks of specs have produced a verdict on the
	// process.
	Checked bool `json:"checked,omitempty"`
	// Gate and Reason are the run's verdict on the process.
	Gate   string `json:"gate,omitempty"`
	Reason string `json:"reason,omitempty"`
	// WholeApp marks an entry for all processes of an app together. Process is
	// then not the name of a process. Explained reports whether one of these
	// processes leaks by itself. The sum is then only used as a base for later
	// runs.
	WholeApp  bool `json:"whole_app,omitempty"`
	Explained bool `json:"explained,omitempty"`
	// Unjudged is the reason why the run itself has no verdict on the process;
	// "" if it has one. It is not part of a baseline.
	Unjudged string `json:"-"`
}

// Timeline describes the moments at which something was counted.
type Timeline struct {
	// Exposure is the number of loops done, or events sent, before each moment.
	Exposure []float64 `json:"exposure"`
	// Settled reports whether the app was idle before each moment.
	Settled bool `json:"settled,omitempty"`
	// SeparateLives means that each moment belongs to a different life of the
	// process.
	SeparateLives bool `json:"separate_lives,omitempty"`
}

// exposure returns the number of loops between the first and the last moment.
func (s Timeline) exposure() float64 {
	switch n := len(s.Exposure); {
	case s.SeparateLives:
		return float64(n)
	case n < 2:
		return 0
	default:
		return max(s.Exposure[n-1]-s.Exposure[0], 0)
	}
}

// These are the kinds of places.
const (
	TypeLeak     = "leak"
	TypeThreads  = "threads"
	TypeNative   = "native"
	TypeGraphics = "graphics"
	TypeTrend    = "trend"
	// TypeMeasure is the type for measures: numbers that a trip reads after its
	// loops.
	TypeMeasure = "measure"
)

// Measure is a number that was read after every few loops of a trip, such as
// the number of threads, of open files or of objects at a growing place, or the
// size of one kind of memory.
type Measure struct {
	// Key identifies the measure, such as "native_heap" or the key of a place.
	// Name is the name of the measure in reports.
	Key  string `json:"key"`
	Name string `json:"name"`
	// Unit is "kB" or "count".
	Unit string `json:"unit"`
	// PerLoop is the growth rate. Lower and Upper are the bounds of the 95 %
	// confidence interval of the rate; nil if unknown.
	PerLoop *float64 `json:"per_loop"`
	Lower   *float64 `json:"lower"`
	Upper   *float64 `json:"upper"`
	// Grows reports whether the trip has proved that the measure grows.
	Grows bool `json:"grows"`
}

// Place is a leak of a process or something else that grows. A leak is
// identified by what holds the leaking objects. The objects at the place are
// counted at each moment of a Timeline.
type Place struct {
	Type string `json:"type"`
	// Key is the same for every build.
	Key string `json:"key"`
	Description
	Counts []int64 `json:"counts"`
	Bytes  []int64 `json:"bytes"`
	// Classes holds the number of objects of each class at each moment.
	Classes map[string][]int64 `json:"classes,omitempty"`
	// Checks contains the names of the specs in which the leak was found, if
	// specs were checked one by one.
	Checks []string `json:"checks,omitempty"`
}

// Description contains what reports say about a place.
type Description struct {
	// Class is the class with the most objects; HeldBy is the reference that
	// holds them.
	Class        string   `json:"class,omitempty"`
	HeldBy       string   `json:"held_by,omitempty"`
	KeyText      []string `json:"key_text,omitempty"`
	Fingerprints []string `json:"fingerprints,omitempty"`
	Library      bool     `json:"library,omitempty"`
}

// last returns the number of objects at the last moment and the memory that
// they retain.
func (p *Place) last() (count, bytes int64) {
	if n := len(p.Counts); n > 0 {
		count = p.Counts[n-1]
	}
	if n := len(p.Bytes); n > 0 {
		bytes = p.Bytes[n-1]
	}
	return count, bytes
}

// leaking returns the class with the most objects at the last moment.
func (p *Place) leaking() string {
	class, most := p.Class, int64(0)
	for name, counts := range p.Classes {
		if len(counts) == 0 {
			continue
		}
		if n := counts[len(counts)-1]; n > most || n == most && n > 0 && name < class {
			class, most = name, n
		}
	}
	return class
}

// TrendVerdict is the verdict on the memory of a process over time.
type TrendVerdict struct {
	// Gate is "leak", "pass", "settled" or "inconclusive".
	Gate string `json:"gate"`
	Kind string `json:"kind,omitempty"`
	// Rate is in MB per hour. Lower and Upper are the bounds of the 95 %
	// confidence interval of the rate; nil if unknown.
	Rate  *float64 `json:"rate_mb_per_h"`
	Lower *float64 `json:"lower_mb_per_h"`
	Upper *float64 `json:"upper_mb_per_h"`
}

// decided reports whether there is a verdict.
func (t *TrendVerdict) decided() bool { return t != nil && t.Gate != "" && t.Gate != "inconclusive" }

// ClassSet is a set of class names. It contains the sorted 32-bit hashes of the
// names, encoded as base64, which keeps a baseline small. About one name in a
// million is mistaken for a member.
type ClassSet string

// NewClassSet returns a set of the given names.
func NewClassSet(names []string) ClassSet {
	hashes := make([]uint32, len(names))
	for i, name := range names {
		hashes[i] = hash(name)
	}
	slices.Sort(hashes)
	hashes = slices.Compact(hashes)
	raw := make([]byte, 0, 4*len(hashes))
	for _, h := range hashes {
		raw = binary.BigEndian.AppendUint32(raw, h)
	}
	return ClassSet(base64.StdEncoding.EncodeToString(raw))
}

// has returns a function that reports whether a name is in any of the given
// sets.
func has(sets ...ClassSet) func(string) bool {
	members := map[uint32]bool{}
	for _, s := range sets {
		raw, err := base64.StdEncoding.DecodeString(string(s))
		if err != nil {
			continue // invalid sets are rejected when they are read
		}
		for ; len(raw) >= 4; raw = raw[4:] {
			members[binary.BigEndian.Uint32(raw)] = true
		}
	}
	return func(name string) bool { return members[hash(name)] }
}

func hash(name string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()
}

// find returns the process with the given name; nil if there is none.
func (o *Observation) find(process string) *Observed {
	for i := range o.Processes {
		if o.Processes[i].Process == process {
			return &o.Processes[i]
		}
	}
	return nil
}

// place returns the place with the given kind and key; nil if there is none.
func (o *Observed) place(what, key string) *Place {
	if o == nil {
		return nil
	}
	for i := range o.Places {
		if o.Places[i].Type == what && o.Places[i].Key == key {
			return &o.Places[i]
		}
	}
	return nil
}

// series returns the series in which places of a kind were counted.
func (o *Observed) series(what string) Timeline {
	if what == TypeLeak {
		return o.Heap
	}
	return o.Snapshots
}

// newer orders observations, newest first.
func newer(a, b Observation) int {
	return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Commit, b.Commit))
}

// runID identifies a run. The observations of all its devices have the same
// runID.
type runID struct {
	started int64
	commit  string
}

func (o *Observation) runID() runID { return runID{o.Started.UnixNano(), o.Commit} }

// CountRuns returns the number of distinct runs among observations. All devices
// of a run count as one run, because they do not show how much results vary
// from run to run.
func CountRuns(list []Observation) int {
	return countRuns(len(list), func(i int) *Observation { return &list[i] })
}

func countRuns(n int, of func(i int) *Observation) int {
	met := map[runID]bool{}
	for i := range n {
		met[of(i).runID()] = true
	}
	return len(met)
}

// newestRuns returns the observations of the newest runs; most is the maximum
// number of runs. The newest observation comes first in list.
func newestRuns(list []Observation, most int) []Observation {
	met := map[runID]bool{}
	for i := range list {
		if met[list[i].runID()] = true; len(met) > most {
			return list[:i]
		}
	}
	return list
}
