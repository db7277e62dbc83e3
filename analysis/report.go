package analysis

import (
	"fmt"

	"github.com/leakgate/leakgate/analysis/android"
	"github.com/leakgate/leakgate/analysis/hprof"
)

// Schema names the form of a Report.
const Schema = "leakgate.analysis/1"

// Report is what one dump says. docs/formats/analysis.md has the fields.
type Report struct {
	Schema     string      `json:"schema"`
	Dump       Dump        `json:"dump"`
	Leaks      []Leak      `json:"leaks"`
	Suspects   []Leak      `json:"suspects"`
	Classes    []Class     `json:"classes"`
	Dominators []Dominator `json:"dominators"`
	// Bitmaps and what follows are absent from a Histogram.
	Bitmaps    *android.Bitmaps    `json:"bitmaps,omitempty"`
	Strings    *android.Strings    `json:"strings,omitempty"`
	Threads    []android.Thread    `json:"threads"`
	Components *android.Components `json:"components,omitempty"`
	Finalizers *android.Finalizers `json:"finalizers,omitempty"`
	Exhaustion *android.Exhaustion `json:"exhaustion,omitempty"`
	Warnings   []string            `json:"warnings"`
}

// Leak is one cause with all the objects that leak by it.
type Leak struct {
	Class string `json:"class"`
}

// Dump is the file, and what is in it, reachable or not.
type Dump struct {
	Format string `json:"format"`
	IDSize int    `json:"id_size"`
	// Bytes is the size of the unpacked file.
	Bytes     int64 `json:"bytes"`
	Truncated bool  `json:"truncated"`
	// TruncatedAt is where the last, incomplete record begins.
	TruncatedAt *int64 `json:"truncated_at,omitempty"`
	// Partial tells that damage was passed over.
	Partial         bool             `json:"partial"`
	Snapshots       int              `json:"snapshots"`
	Objects         int64            `json:"objects"`
	Classes         int64            `json:"classes"`
	Instances       int64            `json:"instances"`
	ObjectArrays    int64            `json:"object_arrays"`
	PrimitiveArrays int64            `json:"primitive_arrays"`
	References      int64            `json:"references"`
	Dangling        int64            `json:"dangling_references"`
	GCRoots         map[string]int64 `json:"gc_roots"`
	// Android is what the app and its phone are, nil for a dump of a JVM.
	Android *android.Metadata `json:"android"`
	Heaps   []Heap            `json:"heaps"`
	// ReachableBytes is what GC roots reach, strongly or softly.
	ReachableBytes  int64  `json:"reachable_bytes"`
	ReachableNative int64  `json:"reachable_native_bytes"`
	SizeModel       string `json:"size_model"`
}

// Heap is one of the heaps of an Android app.
type Heap struct {
	Name    string `json:"name"`
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"`
}

// Class is one line of the histogram: the classes of one name.
type Class struct {
	Class     string `json:"class"`
	Instances int64  `json:"instances"`
	// Reachable are the instances that count for RetainedBytes.
	Reachable      int64            `json:"reachable"`
	ShallowBytes   int64            `json:"shallow_bytes"`
	RetainedBytes  int64            `json:"retained_bytes"`
	RetainedNative int64            `json:"retained_native_bytes"`
	RetainedIn     map[string]int64 `json:"retained_by_heap,omitempty"`
}

// Dominator is an object and what it dominates. Children are those that retain most
// of it; Rest is how many others there are.
type Dominator struct {
	Object         string      `json:"object"`
	Class          string      `json:"class"`
	ShallowBytes   int64       `json:"shallow_bytes"`
	RetainedBytes  int64       `json:"retained_bytes"`
	RetainedNative int64       `json:"retained_native_bytes"`
	Children       []Dominator `json:"children,omitempty"`
	Rest           int64       `json:"rest,omitempty"`
	RestBytes      int64       `json:"rest_bytes,omitempty"`
}

// ObjectsSchema names the form of Objects.
const ObjectsSchema = "leakgate.objects/1"

// Objects is what is known of single objects.
type Objects struct {
	Schema   string   `json:"schema"`
	Objects  []Object `json:"objects"`
	Warnings []string `json:"warnings"`
}

// Object is one object. RetainedBytes is Java and native bytes together, and is 0,
// and Dominator empty, for what is neither strongly nor softly reachable.
type Object struct {
	Object         string `json:"object"`
	Class          string `json:"class"`
	Heap           string `json:"heap"`
	ShallowBytes   int64  `json:"shallow_bytes"`
	NativeBytes    int64  `json:"native_bytes"`
	RetainedBytes  int64  `json:"retained_bytes"`
	RetainedNative int64  `json:"retained_native_bytes"`
	Reachable      bool   `json:"reachable"`
	Reachability   string `json:"reachability"`
	Dominator      string `json:"dominator"`
}

// Hex gives an ID as reports show it.
func Hex(id hprof.ID) string { return fmt.Sprintf("%#x", uint64(id)) }
