package android

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/text"
)

// Exhaustion describes how close a process was to running out of memory, for
// each possible cause, as far as a heap dump shows this.
type Exhaustion struct {
	// Causes are JavaHeap, ThreadCount, FileDescriptors, VirtualMemory and
	// Fragmentation.
	Causes []ExhaustionCause `json:"causes"`
	// ThreadGroups are groups of threads whose names differ only in numbers.
	ThreadGroups        []ThreadGroup `json:"thread_groups"`
	ThreadGroupsOmitted int64         `json:"thread_groups_omitted,omitempty"`
	Files               OpenFiles     `json:"files"`
	// Arrays are the largest arrays, which need contiguous space.
	Arrays   []LargeArray `json:"arrays"`
	Warnings []error      `json:"-"`
}

// The causes of an OutOfMemoryError on Android.
const (
	JavaHeap        = "java_heap"
	ThreadCount     = "threads"
	FileDescriptors = "file_descriptors"
	VirtualMemory   = "virtual_memory"
	Fragmentation   = "fragmentation"
)

// ExhaustionCause is one way of running out of memory. Value and Limit are nil
// if they cannot be determined from the dump.
type ExhaustionCause struct {
	Cause string `json:"cause"`
	Value *int64 `json:"value"`
	// Limit is the lowest known limit of a phone, in the unit of Value: bytes
	// or a count.
	Limit *int64 `json:"limit"`
	Unit  string `json:"unit"`
	// NearLimit reports whether Value is at least three quarters of Limit.
	NearLimit bool `json:"near_limit"`
	// Note explains the numbers.
	Note string `json:"note"`
}

// ThreadGroup describes threads whose names differ only in numbers. In Pattern,
// an asterisk stands for the last number, and also for earlier numbers if
// several groups would otherwise differ only in them.
type ThreadGroup struct {
	Pattern string `json:"pattern"`
	Threads int64  `json:"threads"`
}

// OpenFiles counts the objects with an open file descriptor.
type OpenFiles struct {
	// Descriptors is the number of open java.io.FileDescriptor objects;
	// Distinct is the number of different descriptors in them. Unreachable is
	// the number of java.io.FileDescriptor objects that are open but
	// unreachable: their descriptors leak until the objects are finalized.
	Descriptors int64 `json:"descriptors"`
	Distinct    int64 `json:"distinct"`
	Unreachable int64 `json:"unreachable"`
	// Parcel is the number of open android.os.ParcelFileDescriptor objects.
	Parcel int64 `json:"parcel"`
	// Sockets is the number of open sockets of java.net and android.net.
	Sockets int64 `json:"sockets"`
	// Omitted is the number of objects that were not read.
	Omitted int64 `json:"omitted,omitempty"`
}

// LargeArray is one of the largest arrays of the dump.
type LargeArray struct {
	Object hprof.ID `json:"object"`
	Class  string   `json:"class"`
	Heap   string   `json:"heap"`
	Bytes  int64    `json:"bytes"`
	Owner  *Owner   `json:"owner,omitempty"`
}

const (
	// mostFiles is the maximum number of objects of each class that are read.
	mostFiles = 1 << 18
	// largestArrays is the maximum length of Arrays.
	largestArrays = 10
	// threadLimit is the lowest limit of any known phone: EMUI 5 to 8 kill a
	// process at 500 threads. The kernel's own limit is over ten thousand.
	threadLimit = 500
	// fileLimit is the limit before Android 9; newFileLimit is the limit since
	// Android 9 (AOSP rootdir/init.rc, setrlimit nofile).
	fileLimit    = 1024
	newFileLimit = 32768
	newFileSDK   = 28
)

// exhaustionTopic reads Exhaustion. Its finish method uses the results of the
// topics metadata and threads.
type exhaustionTopic struct {
	Exhaustion

	descriptors, parcels heap.Family
	sockets              []*heap.Family
	descriptor, fd       *heap.Field
	parcelClosed         *heap.Field
	socketClosed         []*heap.Field
	numbers              []int64
}

// socketClasses are classes of sockets, each with the field that is true once a
// socket is closed.
var socketClasses = []struct{ class, closed string }{
	{"java.net.Socket", "closed"}, {"java.net.ServerSocket", "closed"}, {"java.net.DatagramSocket", "closed"},
	{"android.net.LocalSocket", "isClosed"},
}

const (
	askDescriptor uint8 = iota
	askParcel
	// askSocket is the tag for sockets of the first class; each further class
	// has the next tag.
	askSocket
)

func (t *exhaustionTopic) families() []*heap.Family {
	t.descriptors = heap.Family{Class: "java.io.FileDescriptor", Limit: mostFiles}
	t.parcels = heap.Family{Class: "android.os.ParcelFileDescriptor", Limit: mostFiles}
	list := []*heap.Family{&t.descriptors, &t.parcels}
	for _, s := range socketClasses {
		f := &heap.Family{Class: s.class, Limit: mostFiles}
		t.sockets = append(t.sockets, f)
		list = append(list, f)
	}
	return list
}

func (t *exhaustionTopic) begin(p *plan) {
	// The field is named descriptor on Android, and fd in the JDK.
	t.descriptor, t.fd = p.graph.Field("java.io.FileDescriptor", "descriptor"),
		p.graph.Field("java.io.FileDescriptor", "fd")
	t.parcelClosed = p.graph.Field("android.os.ParcelFileDescriptor", "mClosed")
	all := func(f *heap.Family, tag uint8) {
		for _, o := range f.Objects {
			p.ask(o, tag, int(o))
		}
		if n := f.Count - int64(len(f.Objects)); n > 0 {
			t.Files.Omitted += n
			t.Warnings = append(t.Warnings,
				fmt.Errorf("files: %d of %d objects of %s were not read", n, f.Count, f.Class))
		}
	}
	all(&t.descriptors, askDescriptor)
	all(&t.parcels, askParcel)
	for i, f := range t.sockets {
		t.socketClosed = append(t.socketClosed, p.graph.Field(f.Class, socketClasses[i].closed))
		all(f, askSocket+uint8(i))
	}
}

func (t *exhaustionTopic) visit(p *plan, r *heap.Record, tag uint8, _ uint32) {
	switch tag {
	case askDescriptor:
		n, ok := r.IntOf(t.descriptor)
		if !ok {
			n, ok = r.IntOf(t.fd)
		}
		if !ok || n < 0 {
			return
		}
		t.Files.Descriptors++
		if !p.reachable(r.Object) {
			t.Files.Unreachable++
		}
		t.numbers = append(t.numbers, n)
	case askParcel:
		if closed, ok := r.BoolOf(t.parcelClosed); ok && !closed {
			t.Files.Parcel++
		}
	default:
		if closed, ok := r.BoolOf(t.socketClosed[tag-askSocket]); ok && !closed {
			t.Files.Sockets++
		}
	}
}

func (t *exhaustionTopic) advance(*plan) {}

func (t *exhaustionTopic) finish(p *plan) {
	slices.Sort(t.numbers)
	t.Files.Distinct = int64(len(slices.Compact(t.numbers)))
	t.numbers = nil
	t.Arrays = []LargeArray{}
	for _, o := range p.graph.LargestArrays(min(largestArrays, p.options.Top)) {
		t.Arrays = append(t.Arrays,
			LargeArray{
				p.id(o), p.class(o), text.Excerpt(p.graph.Heaps[p.graph.HeapOf(o)].Name, longestClass),
				p.graph.Shallow(o).Java, p.owner(o),
			})
	}
	t.groups(p)
	t.Causes = []ExhaustionCause{t.javaHeap(p), t.threads(p), t.files(p), {
		Cause: VirtualMemory, Unit: "bytes",
		Note: "a heap dump does not contain the mappings of the process; use smaps or showmap",
	}, t.fragmentation()}
}

func (t *exhaustionTopic) javaHeap(p *plan) ExhaustionCause {
	total := int64(0)
	for _, h := range p.graph.Heaps {
		// The boot image is mapped from a file and is not part of what an app
		// may allocate.
		if h.ID != 'I' {
			total = sum(total, h.Bytes)
		}
	}
	garbage := max(0, total-p.graph.ReachableBytes().Java)
	note := fmt.Sprintf("objects of the app and of the zygote, without headers and padding of arrays; up to %d bytes "+
		"of these are garbage; a dump does not contain the limit (dalvik.vm.heapgrowthlimit)", garbage)
	if p.metadata.LargeHeap {
		note += "; the app requests a large heap (dalvik.vm.heapsize)"
	}
	return ExhaustionCause{Cause: JavaHeap, Value: &total, Unit: "bytes", Note: note}
}

func (t *exhaustionTopic) threads(p *plan) ExhaustionCause {
	c := ExhaustionCause{
		Cause: ThreadCount, Value: &p.threads.Count, Unit: "count",
		Note: "threads with a java.lang.Thread; a dump does not contain purely native threads",
	}
	if p.metadata.Runtime == RuntimeAndroid {
		c.limited(threadLimit, "the lowest limit of a known phone; most allow thousands (/proc/sys/kernel/threads-max)")
	}
	return c
}

func (t *exhaustionTopic) files(p *plan) ExhaustionCause {
	c := ExhaustionCause{
		Cause: FileDescriptors, Value: &t.Files.Distinct, Unit: "count",
		Note: "descriptors in java.io.FileDescriptor objects; a dump does not contain those opened by native code",
	}
	switch {
	case p.metadata.Runtime != RuntimeAndroid || p.metadata.SDK == 0:
	case p.metadata.SDK < newFileSDK:
		c.limited(fileLimit, "the limit before Android 9")
	default:
		c.limited(newFileLimit, "the limit since Android 9")
	}
	return c
}

// limited sets Limit and NearLimit, and appends a description of the limit to
// the note.
func (c *ExhaustionCause) limited(limit int64, what string) {
	c.Limit = &limit
	c.NearLimit = *c.Value >= limit-limit/4
	c.Note += "; " + what
}

func (t *exhaustionTopic) fragmentation() ExhaustionCause {
	c := ExhaustionCause{
		Cause: Fragmentation, Unit: "bytes",
		Note: "the largest array, which needs that much contiguous space; a dump does not show the fragmentation " +
			"of the free space",
	}
	if len(t.Arrays) > 0 {
		c.Value = &t.Arrays[0].Bytes
	}
	return c
}

var digits = regexp.MustCompile(`[0-9]+`)

// pattern returns two forms of a name: one with its last number replaced by an
// asterisk, and one with all of its numbers replaced. Both results are "" if
// the name contains no number.
func pattern(name string) (last, all string) {
	found := digits.FindAllStringIndex(name, -1)
	if len(found) == 0 {
		return "", ""
	}
	at := found[len(found)-1]
	return name[:at[0]] + "*" + name[at[1]:], digits.ReplaceAllString(name, "*")
}

// groups finds groups of threads whose names differ only in numbers.
func (t *exhaustionTopic) groups(p *plan) {
	counts, members := map[string]int64{}, map[string]map[string]bool{}
	wide := map[string]int64{}
	for _, thread := range p.threads.List {
		last, all := pattern(thread.Name)
		if last == "" {
			continue
		}
		counts[last]++
		wide[all]++
		if members[all] == nil {
			members[all] = map[string]bool{}
		}
		members[all][last] = true
	}
	for all, n := range wide {
		// The name of a pool contains a different number each time the pool is
		// created.
		if len(members[all]) > 1 && strings.Count(all, "*") > 1 {
			counts[all] = n
		}
	}
	t.ThreadGroups = []ThreadGroup{}
	for pattern, n := range counts {
		if n > 1 {
			t.ThreadGroups = append(t.ThreadGroups, ThreadGroup{pattern, n})
		}
	}
	slices.SortFunc(t.ThreadGroups, func(a, b ThreadGroup) int {
		return cmp.Or(cmp.Compare(b.Threads, a.Threads), cmp.Compare(a.Pattern, b.Pattern))
	})
	t.ThreadGroups, t.ThreadGroupsOmitted = cut(t.ThreadGroups, p.options.Top)
}
