package android

import (
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// In a stripped dump the units of all texts are 0. What such a text was is told by what
// is left: its length, who holds it, and its hash in a dump that an earlier version stripped.

// blank tells that a text was taken out.
func (x *characters) blank() bool {
	return x.known && len(x.units) > 0 && !slices.ContainsFunc(x.units, func(unit uint16) bool { return unit != 0 })
}

// told is at, and "" for a text that was taken out.
func (t *texts) told(n int) string {
	if n >= 0 && n < len(t.list) && t.list[n].blank() {
		return ""
	}
	return t.at(n)
}

// taken tells that a field had a text that was taken out. Shark 2.14 does not know of
// that.
func (i *Inspector) taken(o heap.Object, f field) bool {
	to, ok := i.ref(o, f)
	if !ok || i.old {
		return false
	}
	x, ok := i.characters(to)
	return ok && x.blank()
}

// likeness is how far a text that was taken out is like a word.
type likeness uint8

const (
	// unlike is another text, or one that was not taken out.
	unlike likeness = iota
	// alike is as long as the word.
	alike
	// same has its hash too.
	same
)

// like compares a text that was taken out with a word of ASCII.
func (i *Inspector) like(o heap.Object, word string) likeness {
	if i.old {
		return unlike
	}
	x, ok := i.characters(o)
	if !ok || !x.blank() || x.cut || len(x.units) != len(word) {
		return unlike
	}
	switch hash, ok := i.hash(o); {
	case !ok || hash == 0:
		return alike
	case hash == hashOf(word):
		return same
	}
	return unlike
}

// hash is that of a String, 0 where nobody asked for it or it was taken out. Dalvik has another name for
// the field.
func (i *Inspector) hash(o heap.Object) (int64, bool) {
	if r, ok := i.record(o); !ok || r.Kind != hprof.SubInstance {
		return 0, false
	}
	for _, f := range []field{stringHash, stringHashCode} {
		if n, ok := i.number(o, f); ok {
			return n, true
		}
	}
	return 0, false
}

// hashOf is java.lang.String.hashCode.
func hashOf(word string) int64 {
	var h int32
	for _, c := range []byte(word) {
		h = 31*h + int32(c)
	}
	return int64(h)
}

// constant gives the name of an enum's constant by its ordinal, where the name was taken
// out of the dump.
func (i *Inspector) constant(o heap.Object, names []string) (string, bool) {
	n, ok := i.number(o, enumOrdinal)
	if !ok || n < 0 || n >= int64(len(names)) {
		return "", false
	}
	text, ok := i.ref(o, enumName)
	if !ok || i.like(text, names[n]) == unlike {
		return "", false
	}
	return names[n], true
}

// The threads that matchers and inspectors know by name.
const (
	mainThread       = "main"
	watchdogThread   = "FinalizerWatchdogDaemon"
	leakCanaryThread = "LeakCanary-Heap-Dump"
)

// threadNamed gives the name of a thread of which it was taken out, if that is one of
// those that are known by name.
func (i *Inspector) threadNamed(thread heap.Object) (string, bool) {
	text, ok := i.ref(thread, threadName)
	if !ok {
		return "", false
	}
	for _, name := range []string{mainThread, watchdogThread, leakCanaryThread} {
		if like := i.like(text, name); like == same || like == alike && i.standsAs(thread, name) {
			return name, true
		}
	}
	return "", false
}

// standsAs tells whether a thread stands where the one of a name does.
func (i *Inspector) standsAs(thread heap.Object, name string) bool {
	if !i.android {
		return name == mainThread && i.isFirst(thread)
	}
	if i.placed == nil {
		i.placed = i.place()
	}
	return i.placed[thread] == name
}

// isFirst tells whether a thread is the first of a JVM: the IDs begin with 1, and since
// JDK 24 with 3 (java.lang.Thread, PRIMORDIAL_TID).
func (i *Inspector) isFirst(thread heap.Object) bool {
	id, ok := i.number(thread, threadID)
	return ok && (id == 1 || id == 3)
}

// place finds the threads of Android that have a place of their own.
func (i *Inspector) place() map[heap.Object]string {
	placed := map[heap.Object]string{}
	put := func(name string, from heap.Object, way ...field) {
		for _, f := range way {
			to, ok := i.ref(from, f)
			if !ok {
				return
			}
			from = to
		}
		placed[from] = name
	}
	// LeakCanary 2 and 1 (HeapDumpTrigger.kt, AndroidWatchExecutor.java).
	for f, class := range map[field]string{triggerHandler: triggerClass, executorHandler: executorClass} {
		for _, o := range i.graph.Exactly(class) {
			put(leakCanaryThread, o, f, handlerLooper, looperThread)
		}
	}
	// AOSP libcore Daemons.java.
	if o, ok := i.graph.Static("java.lang.Daemons$FinalizerWatchdogDaemon", "INSTANCE"); ok {
		put(watchdogThread, o, daemonThread)
	}
	// AOSP Looper.java, prepareMainLooper.
	if o, ok := i.graph.Static("android.os.Looper", "sMainLooper"); ok {
		put(mainThread, o, looperThread)
	}
	return placed
}

// Matchers gives the matchers of an edition that apply to the phone of this dump. Where
// the maker's name was taken out, those of all makers apply whose names it can have been
// and whose fields the classes of this dump have: no other Android has them.
func (i *Inspector) Matchers(e Edition, m *Metadata) []trace.Matcher {
	makers, ids := namedBuilds()
	names := i.possible("MANUFACTURER", m.Manufacturer, makers)
	var id string
	if o, ok := i.graph.Static(buildClass, "ID"); ok {
		id, _ = i.Text(o)
	}
	var builds []trace.Build
	for _, name := range names {
		for _, id := range i.possible("ID", id, ids) {
			builds = append(builds, trace.Build{SDK: int(m.SDK), Manufacturer: name, ID: id})
		}
	}
	if len(builds) == 1 {
		return matchersOf(e, builds[0])
	}
	unknown := trace.Build{SDK: int(m.SDK)}
	return e.matchers(func(m *trace.Matcher) bool {
		return m.Applies(unknown) || slices.ContainsFunc(builds, m.Applies) && !inAOSP[m.Pattern] && i.declares(m.Pattern)
	})
}

const buildClass = "android.os.Build"

// possible are the names that a text of Build can have been. It is one where that was not
// taken out, or the hash tells; else "" stands for one that nobody knows.
func (i *Inspector) possible(f, text string, names []string) []string {
	o, ok := i.graph.Static(buildClass, f)
	if !ok || text != "" {
		return []string{text}
	}
	list := []string{""}
	for _, name := range names {
		switch i.like(o, name) {
		case same:
			return []string{name}
		case alike:
			list = append(list, name)
		}
	}
	return list
}

// declares tells whether a class of this dump has what a pattern names. That a subclass
// has such a field, as one of the app can, is not enough.
func (i *Inspector) declares(p trace.Pattern) bool {
	switch p.Kind {
	case trace.InstanceField:
		return i.graph.Field(p.Class, p.Name).Declared()
	case trace.StaticField:
		return i.graph.HasStatic(p.Class, p.Name)
	case trace.NativeGlobal:
		return i.graph.HasClass(p.Class)
	}
	return false
}
