package analysis

import (
	"fmt"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// analysisSchema is the schema of a Report.
const analysisSchema = "leakgate.analysis/1"

// Report is the analysis of one dump. docs/formats/analysis.md describes the
// fields.
type Report struct {
	Schema string `json:"schema"`
	Dump   Dump   `json:"dump"`
	Leaks  []Leak `json:"leaks"`
	// LeakedBytes is what becomes unreachable if all leaks of the app are
	// fixed, including what they share; it is a lower bound if LeakedIsBound is
	// true.
	LeakedBytes   int64  `json:"leaked_bytes"`
	LeakedIsBound bool   `json:"leaked_is_bound,omitempty"`
	Suspects      []Leak `json:"suspects"`
	// Unreachable lists objects that should be gone according to their own
	// state, but are not strongly held: a garbage collection would have freed
	// them. The class with the most objects comes first.
	Unreachable []Garbage `json:"unreachable"`
	// Undecided lists the reasons why leaks cannot be ruled out in the dump; it
	// is empty if they can.
	Undecided []string `json:"undecided"`
	// Loaders lists the classes that at least three class loaders have loaded,
	// such as those of a plugin that is deployed again and again.
	Loaders    []loadedClass `json:"class_loaders,omitempty"`
	Classes    []Class       `json:"classes"`
	Dominators []Dominator   `json:"dominators"`
	// Bitmaps and the following fields are absent from a Histogram.
	Bitmaps    *android.Bitmaps    `json:"bitmaps,omitempty"`
	Strings    *android.Strings    `json:"strings,omitempty"`
	Threads    []android.Thread    `json:"threads"`
	Components *android.Components `json:"components,omitempty"`
	Finalizers *android.Finalizers `json:"finalizers,omitempty"`
	Exhaustion *android.Exhaustion `json:"exhaustion,omitempty"`
	// Unused counts the unused slots of collections that are at most a quarter
	// full.
	Unused   *unusedSlots `json:"unused_slots,omitempty"`
	Warnings []string     `json:"warnings"`
}

// unusedSlots counts ArrayLists and HashMaps that are empty or at most a
// quarter full, and the bytes of the unused slots in their arrays. Collections
// is the number of collections, Empty is the number of those that are empty,
// and Sparse is the number of other collections that are at most a quarter
// full. EmptyBytes and SparseBytes are the sizes of the unused slots of these
// collections.
type unusedSlots struct {
	Collections int64 `json:"collections"`
	Empty       int64 `json:"empty"`
	EmptyBytes  int64 `json:"empty_bytes"`
	Sparse      int64 `json:"sparse"`
	SparseBytes int64 `json:"sparse_bytes"`
}

// Leak is a cause together with all objects that leak because of it. In the
// list of suspects, a Leak describes a place where memory accumulates.
type Leak struct {
	// Key is stable from build to build; KeyText is the text from which Key is
	// computed. Fingerprints are computed like those of Shark: one for each
	// leak that Shark would report. Fingerprint is the first of these
	// fingerprints. A leak to which Shark has no strong path has no
	// fingerprint.
	Fingerprint  string   `json:"fingerprint"`
	Fingerprints []string `json:"fingerprints"`
	Key          string   `json:"key"`
	KeyText      []string `json:"key_text"`
	// Library reports whether the leak is caused by the platform or by a
	// library, that is, whether it matches a known Pattern.
	Library     bool   `json:"library"`
	Pattern     string `json:"pattern"`
	Description string `json:"description,omitempty"`
	Source      string `json:"source,omitempty"`
	// Class is the class of the first object in Objects. Instances is the
	// number of all objects; Classes contains the number of objects of each
	// class.
	Class     string      `json:"class"`
	Instances int         `json:"instances"`
	Classes   []leakClass `json:"classes,omitempty"`
	Objects   []string    `json:"objects"`
	// HeldOnlyBy describes what holds a leak that Shark does not detect, such
	// as a local variable of the main thread; "" for all other leaks.
	HeldOnlyBy string `json:"held_only_by,omitempty"`
	// GCRoot is the GC root at which Trace begins; GCRootText describes it.
	GCRoot     string `json:"gc_root"`
	GCRootText string `json:"gc_root_text"`
	// RetainedBytes is the number of Java and native bytes that become
	// unreachable if all Objects are released; it is a lower bound if
	// RetainedIsBound is true. CreditedBytes is the size that Shark attributes
	// to this leak; Shark attributes each object to only one leak. SharedBytes
	// is the size of the objects that this leak shares with other leaks and
	// that are freed only if all of these leaks are fixed; SharedWith is the
	// number of the other leaks.
	RetainedBytes   int64 `json:"retained_bytes"`
	RetainedNative  int64 `json:"retained_native_bytes"`
	RetainedIsBound bool  `json:"retained_is_bound,omitempty"`
	CreditedBytes   int64 `json:"credited_bytes"`
	SharedBytes     int64 `json:"shared_bytes,omitempty"`
	SharedWith      int   `json:"shared_with,omitempty"`
	// Parts lists the parts of what the first object retains, one for each of
	// its fields. A part is listed if it is at least a tenth of what the object
	// retains.
	Parts []Part `json:"parts,omitempty"`
	// Trace is the trace of the first object.
	Trace []TraceElement `json:"trace"`
	// Consequences lists at most 1,000 objects that leak only because of this
	// leak. If Options.LeakingClasses is set, the consequences are the objects
	// whose shortest path goes through an object of this leak. ConsequenceCount
	// is the number of all consequences.
	Consequences     []Related `json:"consequences,omitempty"`
	ConsequenceCount int       `json:"consequence_count,omitempty"`
	// Accumulates is set for suspects; ExplainedBy is the key of the leak that
	// explains a suspect.
	Accumulates *Accumulation `json:"accumulates,omitempty"`
	ExplainedBy string        `json:"explained_by,omitempty"`
}

// TraceElement is an object on a leak trace, with the reference to the next
// element. The last element has no reference.
type TraceElement struct {
	Object string `json:"object"`
	Class  string `json:"class"`
	// Type is instance, array or class.
	Type string `json:"type"`
	// Reference is the name of a field, an array index or a map key; Owner is
	// the class that declares the field. Kind is instance_field, static_field,
	// array_entry or local.
	Reference string `json:"reference"`
	Kind      string `json:"reference_kind"`
	Owner     string `json:"owner,omitempty"`
	// Leaking is NO, UNKNOWN or YES; Reason says why.
	Leaking string `json:"leaking"`
	Reason  string `json:"reason"`
	Suspect bool   `json:"suspect"`
	// Repeat is the number of further objects of the same class that follow
	// this one, each referenced in the same way by the one before it. Omitted
	// is the number of elements omitted after these objects.
	Repeat  int `json:"repeat,omitempty"`
	Omitted int `json:"omitted,omitempty"`
	// Labels describe the object.
	Labels []string `json:"labels,omitempty"`
	// RetainedBytes is absent if Leaking is NO.
	RetainedBytes *int64 `json:"retained_bytes,omitempty"`
}

// loadedClass is a class that several class loaders have loaded.
type loadedClass struct {
	Class string `json:"class"`
	// Loaders is the number of loaders, and LoaderClass is the class of the
	// first one; Classes is the number of classes that all of them together
	// have loaded.
	Loaders     int    `json:"loaders"`
	LoaderClass string `json:"loader_class"`
	Classes     int    `json:"loaded_classes"`
	// RetainedBytes is what becomes unreachable if the loaders and all their
	// classes are released.
	RetainedBytes   int64 `json:"retained_bytes"`
	RetainedIsBound bool  `json:"retained_is_bound,omitempty"`
}

// leakClass holds the number of objects of one class in a leak.
type leakClass struct {
	Class     string `json:"class"`
	Instances int    `json:"instances"`
}

// Part describes what one field of an object holds.
type Part struct {
	Reference     string `json:"reference"`
	Class         string `json:"class"`
	RetainedBytes int64  `json:"retained_bytes"`
}

// Related is an object that leaks only because of another leak.
type Related struct {
	Object string `json:"object"`
	Class  string `json:"class"`
}

// Garbage stands for the objects of one class that should be gone and that
// nothing holds strongly.
type Garbage struct {
	Class     string `json:"class"`
	Instances int    `json:"instances"`
	// Reachability is the strongest kind of reference through which the objects
	// can still be reached: soft, finalizer, weak or phantom. It is
	// "unreachable" if there is no such reference.
	Reachability string `json:"reachability"`
	// Objects lists the first ten objects.
	Objects []string `json:"objects"`
	// Reason says why the first object should be gone; it is "" if no inspector
	// has a reason.
	Reason string `json:"reason"`
}

// Accumulation describes the objects that accumulate in a single object, or
// that GC roots hold.
type Accumulation struct {
	// Class is the class of the accumulated objects; Linked reports whether
	// they reference each other.
	Class  string `json:"class"`
	Count  int64  `json:"count"`
	Linked bool   `json:"linked"`
	// Root is the kind of GC root if each object is held by a GC root of its
	// own; it is "" if a single object holds them.
	Root string `json:"root,omitempty"`
	// Bytes is the number of bytes that the objects retain together; Share is
	// the ratio of Bytes to the reachable bytes, from 0 to 1.
	Bytes int64   `json:"bytes"`
	Share float64 `json:"share"`
	// OtherClasses lists other classes in the same place that have at least ten
	// objects and a fifth of the place's retained bytes.
	OtherClasses []ClassSum `json:"other_classes,omitempty"`
	// Holds is the class that accounts for most of the bytes that the
	// accumulated objects hold, and Held is the number of its objects.
	// OtherHeld lists other classes of objects that the accumulated objects
	// hold, selected like OtherClasses.
	Holds     string     `json:"holds,omitempty"`
	Held      int64      `json:"held,omitempty"`
	HeldBytes int64      `json:"held_bytes,omitempty"`
	OtherHeld []ClassSum `json:"other_held,omitempty"`
	// If Holds is a class of a library, AppClass is the first class of the app
	// on the path to most of the bytes.
	AppClass *ClassSum `json:"app_class,omitempty"`
	// Cache is the class of the cache that contains the objects and limits
	// their number.
	Cache string `json:"cache,omitempty"`
	// Sharers are the static fields and GC roots that all hold the objects:
	// each of them alone keeps the objects alive. The static fields come first,
	// in the form CLASS.FIELD; the GC roots have the form KIND CLASS. The trace
	// leads to what the first field references, or to the first GC root.
	Sharers []string `json:"sharers,omitempty"`
}

// ClassSum is the number of objects of one class, and the number of bytes that
// they retain together.
type ClassSum struct {
	Class string `json:"class"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
}

// Dump describes the file and its contents, reachable or not.
type Dump struct {
	Format string `json:"format"`
	IDSize int    `json:"id_size"`
	// Bytes is the size of the unpacked file.
	Bytes     int64 `json:"bytes"`
	Truncated bool  `json:"truncated"`
	// TruncatedAt is the offset of the last, incomplete record.
	TruncatedAt *int64 `json:"truncated_at,omitempty"`
	// Partial reports whether damaged parts were skipped.
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
	// Android describes the app and its phone; it is nil for a dump of a JVM.
	Android *android.Metadata `json:"android"`
	Heaps   []Heap            `json:"heaps"`
	// ReachableBytes is the size of the objects that are strongly or softly
	// reachable from GC roots.
	ReachableBytes  int64  `json:"reachable_bytes"`
	ReachableNative int64  `json:"reachable_native_bytes"`
	SizeModel       string `json:"size_model"`
	// Names records whether the names are obfuscated.
	Names Naming `json:"names"`
}

// Heap is one of the heaps of an Android app.
type Heap struct {
	Name    string `json:"name"`
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"`
}

// Class is one line of the histogram: all classes with one name.
type Class struct {
	Class     string `json:"class"`
	Instances int64  `json:"instances"`
	// Reachable counts the instances included in RetainedBytes.
	Reachable    int64 `json:"reachable"`
	ShallowBytes int64 `json:"shallow_bytes"`
	// RetainedBytes is what becomes unreachable if all instances are released;
	// it is a lower bound if RetainedIsBound is true.
	RetainedBytes   int64            `json:"retained_bytes"`
	RetainedNative  int64            `json:"retained_native_bytes"`
	RetainedIsBound bool             `json:"retained_is_bound,omitempty"`
	RetainedIn      map[string]int64 `json:"retained_by_heap,omitempty"`
}

// Dominator is an object with the objects that it dominates. Children are the
// dominated objects that retain the most bytes; Omitted is the number of the
// others.
type Dominator struct {
	Object         string      `json:"object"`
	Class          string      `json:"class"`
	ShallowBytes   int64       `json:"shallow_bytes"`
	RetainedBytes  int64       `json:"retained_bytes"`
	RetainedNative int64       `json:"retained_native_bytes"`
	Children       []Dominator `json:"children,omitempty"`
	Omitted        int64       `json:"omitted,omitempty"`
	OmittedBytes   int64       `json:"omitted_bytes,omitempty"`
}

// objectsSchema is the schema of an Objects.
const objectsSchema = "leakgate.objects/1"

// Objects describes single objects.
type Objects struct {
	Schema string `json:"schema"`
	// Selection is set if the objects of a class were requested, instead of
	// objects by their IDs.
	Selection *selection `json:"selection,omitempty"`
	Objects   []Object   `json:"objects"`
	Warnings  []string   `json:"warnings"`
}

// selection describes which objects of a class were requested: those that pass
// all comparisons.
type selection struct {
	Class string   `json:"class"`
	Where []string `json:"where"`
	// Instances is the number of all objects of the class, and Matching is the
	// number of those that pass the comparisons. ShallowBytes is the size of
	// the matching objects themselves. RetainedBytes is the size of what
	// becomes unreachable if all matching objects are released; it is a lower
	// bound if RetainedIsBound is true.
	Instances       int   `json:"instances"`
	Matching        int   `json:"matching"`
	ShallowBytes    int64 `json:"shallow_bytes"`
	RetainedBytes   int64 `json:"retained_bytes"`
	RetainedIsBound bool  `json:"retained_is_bound,omitempty"`
}

// Object describes one object of the dump. RetainedBytes includes Java and
// native bytes. For an object that is neither strongly nor softly reachable,
// RetainedBytes is 0 and Dominator is empty.
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
	// Fields are the fields of an instance, the static fields of a class, or
	// the first elements of an array. Holders are the first of the HolderCount
	// objects that reference the object. Fields and Holders are present if
	// there are at most 16 objects. If the objects of a class were requested,
	// Fields are always present.
	Fields      []fieldValue `json:"fields,omitempty"`
	Holders     []holder     `json:"holders,omitempty"`
	HolderCount int          `json:"holder_count,omitempty"`
}

// fieldValue is a field and its value. If the field references an object,
// Object and Class describe that object, and Value is nil unless the object is
// a string. Value is also nil for a null reference.
type fieldValue struct {
	Owner string `json:"owner,omitempty"`
	Name  string `json:"name"`
	Type  string `json:"type"`
	// Value is a number, a boolean or a character; for a string, it is the
	// contents, or a hash if strings are redacted.
	Value  *string `json:"value"`
	Object string  `json:"object,omitempty"`
	Class  string  `json:"class,omitempty"`
}

// holder is an object that references another one.
type holder struct {
	Object    string `json:"object"`
	Class     string `json:"class"`
	Reference string `json:"reference"`
}

// Hex formats an ID the way reports do: in hexadecimal, with the prefix 0x.
func Hex(id hprof.ID) string { return fmt.Sprintf("%#x", uint64(id)) }
