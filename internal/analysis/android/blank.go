package android

import (
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// In a stripped dump, all characters of strings are 0. The original string is
// inferred from what remains: its length, its holder and, in a dump stripped by
// an earlier version of leakgate, its hash.

// blank reports whether a string was stripped.
func (x *characters) blank() bool {
	return x.known && len(x.units) > 0 && !slices.ContainsFunc(x.units, func(unit uint16) bool { return unit != 0 })
}

// shown is like at, but returns "" if the string was stripped.
func (t *texts) shown(n int) string {
	if n >= 0 && n < len(t.list) && t.list[n].blank() {
		return ""
	}
	return t.at(n)
}

// taken reports whether the string in a field was stripped. With the rules of
// Shark 2.14, which does not handle stripped strings, it returns false.
func (i *Inspector) taken(o heap.Object, f field) bool {
	to, ok := i.ref(o, f)
	if !ok || i.old {
		return false
	}
	x, ok := i.characters(to)
	return ok && x.blank()
}

// likeness is how similar a stripped string is to a word.
type likeness uint8

const (
	// unlike means that the string differs from the word, or was not stripped.
	unlike likeness = iota
	// alike means that the string is as long as the word.
	alike
	// same means that the string has the length and the hash of the word.
	same
)

// like returns how similar a stripped string is to an ASCII word.
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

// hash returns the hash of a String, or 0 if it was never computed or was
// stripped. In Dalvik, the field has a different name.
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

// hashOf returns the java.lang.String.hashCode of an ASCII word.
func hashOf(word string) int64 {
	var h int32
	for _, c := range []byte(word) {
		h = 31*h + int32(c)
	}
	return int64(h)
}

// constant returns the name of an enum constant whose name was stripped: the
// entry of names that the constant's ordinal selects. It returns false if the
// name was not stripped, or if its length or hash contradicts that entry.
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

// The names by which matchers and inspectors identify threads.
const (
	mainThread       = "main"
	watchdogThread   = "FinalizerWatchdogDaemon"
	leakCanaryThread = "LeakCanary-Heap-Dump"
)

// threadNamed infers the name of a thread whose name was stripped, if it is one
// of the names by which threads are identified.
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

// standsAs reports whether a thread whose name was stripped can be identified
// as the thread that had the given name. On Android, a well-known field
// references the thread. On a JVM, only the main thread is recognized: it is
// the first thread.
func (i *Inspector) standsAs(thread heap.Object, name string) bool {
	if !i.android {
		return name == mainThread && i.isFirst(thread)
	}
	if i.placed == nil {
		i.placed = i.place()
	}
	return i.placed[thread] == name
}

// isFirst reports whether a thread is the first thread of a JVM, whose ID is 1,
// or 3 in JDK 24 and later (java.lang.Thread, PRIMORDIAL_TID).
func (i *Inspector) isFirst(thread heap.Object) bool {
	id, ok := i.number(thread, threadID)
	return ok && (id == 1 || id == 3)
}

// place finds the threads that well-known fields reference, and returns the
// name that Android assigns to each of them.
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

// Matchers returns the matchers of an edition that apply to the phone of this
// dump. If the manufacturer's name was stripped, it returns the matchers of all
// possible manufacturers. In this case, matchers whose fields do not exist in
// the dump are omitted: such fields exist only in the manufacturer's own
// Android versions.
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
		return m.Applies(unknown) || slices.ContainsFunc(builds, m.Applies) && !inAOSP[m.Pattern] &&
			i.declares(m.Pattern)
	})
}

const buildClass = "android.os.Build"

// possible returns the possible values of a string field of Build. There is
// only one value if the string was not stripped, or if the hash identifies it;
// otherwise the list contains "", which stands for an unknown value.
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

// declares reports whether a class of this dump declares the field that a
// pattern names. A field of that name in a subclass, such as a class of the
// app, does not count.
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
