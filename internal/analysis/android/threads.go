package android

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/text"
)

// Threads describes the running threads: the java.lang.Thread objects that are
// THREAD_OBJECT GC roots.
type Threads struct {
	// List is ordered by serial number; Omitted is the number of threads that
	// are not listed.
	List    []Thread `json:"list"`
	Count   int64    `json:"count"`
	Omitted int64    `json:"omitted,omitempty"`
	// Idle is the number of Thread objects that were not running because they
	// had not been started yet, or had ended.
	Idle     int64   `json:"idle"`
	Warnings []error `json:"-"`
}

// Thread describes one running thread. Values that the dump does not contain
// are absent.
type Thread struct {
	Name   string   `json:"name"`
	Object hprof.ID `json:"object"`
	Class  string   `json:"class"`
	// ID is the value of Thread.getId; Priority is Java's priority, from 1 to
	// 10.
	ID       int64 `json:"id,omitempty"`
	Daemon   *bool `json:"daemon,omitempty"`
	Priority int64 `json:"priority,omitempty"`
	// Frames is the stack from the innermost frame outward, as in a stack
	// trace. Android dumps do not contain stacks.
	Frames        []string `json:"frames,omitempty"`
	FramesOmitted bool     `json:"frames_omitted,omitempty"`
	// RetainedBytes is the retained size of the Thread object, Java and native
	// bytes.
	RetainedBytes int64 `json:"retained_bytes"`
	// Locals describes the objects that the thread's frames and native code
	// hold.
	Locals ThreadLocals `json:"locals"`
}

// ThreadLocals are the objects that are GC roots as local variables: JAVA_FRAME
// and JNI_LOCAL.
type ThreadLocals struct {
	Count int64 `json:"count"`
	// RetainedBytes is the number of bytes that the locals retain together,
	// Java and native.
	RetainedBytes int64 `json:"retained_bytes"`
	// Largest is the local that retains the most bytes; nil if there are no
	// locals.
	Largest *LargestLocal `json:"largest,omitempty"`
}

// LargestLocal describes the local that retains the most bytes.
type LargestLocal struct {
	Object        hprof.ID `json:"object"`
	Class         string   `json:"class"`
	RetainedBytes int64    `json:"retained_bytes"`
}

const (
	// mostThreads is the maximum number of threads that are read; a process has
	// at most a few thousand.
	mostThreads = 1 << 14
	// mostFrames is the maximum number of frames of a stack that are shown.
	mostFrames = 64
	// mostLocals is the maximum number of locals that are visited.
	mostLocals = 1 << 22
)

// threadsTopic reads Threads.
type threadsTopic struct {
	Threads

	family  heap.Family
	objects []threadObject
	fields  struct {
		name, id, tid, daemon, priority, holder *heap.Field
		heldDaemon, heldPriority                *heap.Field
	}
	locals []local
}

type threadObject struct {
	heap.Object
	serial, trace uint32
	text          int
	Thread
}

type local struct {
	thread uint32
	object heap.Object
}

const (
	askThread uint8 = iota
	askHolder
)

func (t *threadsTopic) families() []*heap.Family {
	t.family = heap.Family{Class: "java.lang.Thread"}
	return []*heap.Family{&t.family}
}

func (t *threadsTopic) begin(p *plan) {
	const class, holder = "java.lang.Thread", "java.lang.Thread$FieldHolder"
	f := &t.fields
	f.name, f.id, f.tid, f.holder = p.graph.Field(class, "name"), p.graph.Field(class, "id"),
		p.graph.Field(class, "tid"), p.graph.Field(class, "holder")
	f.daemon, f.priority = p.graph.Field(class, "daemon"), p.graph.Field(class, "priority")
	f.heldDaemon, f.heldPriority = p.graph.Field(holder, "daemon"), p.graph.Field(holder, "priority")
	t.roots(p)
	for i := range t.objects {
		t.objects[i].text = -1
		p.ask(t.objects[i].Object, askThread, i)
	}
}

// roots finds the threads and their locals.
func (t *threadsTopic) roots(p *plan) {
	p.graph.Roots(func(r hprof.Root, o heap.Object) {
		switch r.Kind {
		case hprof.SubRootThreadObject:
			if len(t.objects) < 4*mostThreads && p.graph.InstanceOf(o, "java.lang.Thread") {
				t.objects = append(t.objects, threadObject{Object: o, serial: r.Thread, trace: r.Trace})
			}
		case hprof.SubRootJavaFrame, hprof.SubRootJNILocal:
			if len(t.locals) < mostLocals {
				t.locals = append(t.locals, local{r.Thread, o})
			}
		}
	})
	slices.SortFunc(t.objects, func(a, b threadObject) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.serial, b.serial))
	})
	t.objects = slices.CompactFunc(t.objects, func(a, b threadObject) bool { return a.Object == b.Object })
	slices.SortFunc(t.objects, func(a, b threadObject) int {
		return cmp.Or(cmp.Compare(a.serial, b.serial), cmp.Compare(a.Object, b.Object))
	})
	t.Count = int64(len(t.objects))
	t.Idle = max(0, t.family.Count-t.Count)
	t.objects, t.Omitted = cut(t.objects, mostThreads)
	if t.Omitted > 0 {
		t.Warnings = append(t.Warnings, fmt.Errorf("threads: %d of %d were not read", t.Omitted, t.Count))
	}
	slices.SortFunc(t.locals, func(a, b local) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.object, b.object))
	})
	t.locals = slices.Compact(t.locals)
}

func (t *threadsTopic) visit(p *plan, r *heap.Record, tag uint8, number uint32) {
	x := &t.objects[number]
	f := &t.fields
	if tag == askHolder {
		x.set(r, f.heldDaemon, f.heldPriority)
		return
	}
	if o, ok := r.RefOf(f.name); ok {
		x.text = p.text(o)
	}
	for _, f := range []*heap.Field{f.id, f.tid} {
		if n, ok := r.IntOf(f); ok {
			x.ID = n
		}
	}
	x.set(r, f.daemon, f.priority)
	// In JDK 19 and later, the fields daemon and priority are in
	// java.lang.Thread.FieldHolder.
	if o, ok := r.RefOf(f.holder); ok {
		p.ask(o, askHolder, int(number))
	}
}

func (x *threadObject) set(r *heap.Record, daemon, priority *heap.Field) {
	if v, ok := r.BoolOf(daemon); ok {
		x.Daemon = &v
	}
	if n, ok := r.IntOf(priority); ok {
		x.Priority = n
	}
}

func (t *threadsTopic) advance(*plan) {}

func (t *threadsTopic) finish(p *plan) {
	serials := make([]uint32, len(t.objects))
	for i, x := range t.objects {
		serials[i] = x.trace
	}
	stacks := p.graph.Stacks(serials, mostFrames+1)
	t.List = []Thread{}
	for i := range t.objects {
		x := &t.objects[i]
		x.Name, x.Thread.Object, x.Class = p.texts.shown(x.text), p.id(x.Object), p.class(x.Object)
		x.RetainedBytes = p.graph.Retained(x.Object).Total()
		x.Locals = t.held(p, x.serial)
		x.FramesOmitted = len(stacks[i]) > mostFrames
		for _, f := range stacks[i][:min(len(stacks[i]), mostFrames)] {
			x.Frames = append(x.Frames, frame(f))
		}
		t.List = append(t.List, x.Thread)
	}
	t.objects, t.locals = nil, nil
}

// held adds up the retained sizes of the locals of a thread. Objects that GC
// roots hold are dominated only by the roots, so their subtrees are disjoint.
func (t *threadsTopic) held(p *plan, serial uint32) (l ThreadLocals) {
	i, _ := slices.BinarySearchFunc(t.locals, serial, func(l local, s uint32) int { return cmp.Compare(l.thread, s) })
	var best heap.Object
	most := int64(-1)
	for ; i < len(t.locals) && t.locals[i].thread == serial; i++ {
		size := p.graph.Retained(t.locals[i].object).Total()
		l.Count++
		l.RetainedBytes = sum(l.RetainedBytes, size)
		if size > most {
			best, most = t.locals[i].object, size
		}
	}
	if l.Count > 0 {
		l.Largest = &LargestLocal{p.id(best), p.class(best), most}
	}
	return l
}

// frame formats a frame like Throwable.printStackTrace.
func frame(f heap.StackFrame) string {
	source := f.Source
	if source == "" {
		source = "Unknown Source"
	}
	switch {
	case f.Line == -3:
		source = "Native Method"
	case f.Line > 0:
		source = fmt.Sprintf("%s:%d", source, f.Line)
	}
	return text.Excerpt(fmt.Sprintf("%s.%s(%s)", f.Class, f.Method, source), longestClass)
}
