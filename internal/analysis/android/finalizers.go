package android

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/text"
)

// Finalizers describes the objects with a finalizer. Android records them in
// FinalizerReference objects; a JVM records them in Finalizer objects.
type Finalizers struct {
	// Registered is the number of objects that have not been finalized yet.
	Registered int64 `json:"registered"`
	// Pending is the number of objects that are held only by their finalizer:
	// they are freed after it has run. Queued is the number of pending objects
	// that are finalized next, because the garbage collector has already
	// enqueued them. Many pending objects mean that the finalizer thread cannot
	// keep up.
	Pending int64 `json:"pending"`
	Queued  int64 `json:"queued"`
	// PendingBytes is the size of the pending objects (Java and native) and of
	// everything that only they hold; in a FinalizerClass, it is the size of
	// the pending objects alone.
	PendingBytes int64 `json:"pending_bytes"`
	// Classes lists the classes; the ones with the most pending objects come
	// first.
	Classes  []FinalizerClass `json:"classes"`
	Omitted  int64            `json:"omitted,omitempty"`
	Warnings []error          `json:"-"`
}

// FinalizerClass stands for the objects of one class that have a finalizer.
type FinalizerClass struct {
	Class        string `json:"class"`
	Registered   int64  `json:"registered"`
	Pending      int64  `json:"pending"`
	Queued       int64  `json:"queued"`
	PendingBytes int64  `json:"pending_bytes"`
}

// mostFinalizers is the maximum number of objects that are read.
const mostFinalizers = 1 << 20

// finalizersTopic reads Finalizers.
type finalizersTopic struct {
	Finalizers

	android, jvm    heap.Family
	referent, queue *heap.Field
	zombie          *heap.Field
	// enqueued is the value that a JVM assigns to the queue field of a
	// Finalizer object when it enqueues the object.
	enqueued    heap.Object
	hasEnqueued bool
	classes     map[string]*FinalizerClass
}

const askFinalizer uint8 = 0

func (t *finalizersTopic) families() []*heap.Family {
	t.android = heap.Family{Class: "java.lang.ref.FinalizerReference", Limit: mostFinalizers}
	t.jvm = heap.Family{Class: "java.lang.ref.Finalizer", Limit: mostFinalizers}
	return []*heap.Family{&t.android, &t.jvm}
}

func (t *finalizersTopic) begin(p *plan) {
	t.referent, t.queue = p.graph.Field("java.lang.ref.Reference", "referent"),
		p.graph.Field("java.lang.ref.Reference", "queue")
	t.zombie = p.graph.Field("java.lang.ref.FinalizerReference", "zombie")
	t.enqueued, t.hasEnqueued = p.graph.Static("java.lang.ref.ReferenceQueue", "ENQUEUED")
	t.classes = map[string]*FinalizerClass{}
	for _, f := range []*heap.Family{&t.android, &t.jvm} {
		for _, o := range f.Objects {
			p.ask(o, askFinalizer, 0)
		}
		if n := f.Count - int64(len(f.Objects)); n > 0 {
			t.Warnings = append(t.Warnings, fmt.Errorf("finalizers: %d of %d were not read", n, f.Count))
		}
	}
}

func (t *finalizersTopic) visit(p *plan, r *heap.Record, _ uint8, _ uint32) {
	queued := false
	o, ok := r.RefOf(t.referent)
	if zombie, there := r.RefOf(t.zombie); there {
		// Android moves the referent to zombie when it puts the reference into
		// its queue (libcore FinalizerReference.java, art reference_queue.cc).
		o, ok, queued = zombie, true, true
	}
	if !ok {
		return
	}
	if queue, there := r.RefOf(t.queue); there && t.hasEnqueued && queue == t.enqueued {
		queued = true
	}
	name := p.graph.Class(o)
	c := t.classes[name]
	if c == nil {
		c = &FinalizerClass{Class: text.Excerpt(name, longestClass)}
		t.classes[name] = c
	}
	c.Registered++
	t.Registered++
	if queued {
		c.Queued++
		t.Queued++
	}
	if queued || p.graph.Reachability(o) == heap.Finalizer {
		c.Pending++
		t.Pending++
		bytes := p.graph.Shallow(o).Total()
		c.PendingBytes, t.PendingBytes = sum(c.PendingBytes, bytes), sum(t.PendingBytes, bytes)
	}
}

func (t *finalizersTopic) advance(*plan) {}

func (t *finalizersTopic) finish(p *plan) {
	t.Classes = []FinalizerClass{}
	for _, c := range t.classes {
		t.Classes = append(t.Classes, *c)
	}
	slices.SortFunc(t.Classes, func(a, b FinalizerClass) int {
		return cmp.Or(cmp.Compare(b.Pending, a.Pending), cmp.Compare(b.Registered, a.Registered),
			cmp.Compare(a.Class, b.Class))
	})
	t.PendingBytes = max(t.PendingBytes, p.graph.WaitingForFinalizer().Bytes)
	t.Classes, t.Omitted = cut(t.Classes, p.options.Top)
	t.classes = nil
}
