package android

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// The states of components. A component that is Destroyed and still reachable
// is held by something that should have released it.
const (
	Alive     = "alive"
	Finished  = "finished"
	Destroyed = "destroyed"
	// NotAttached is the state of a fragment before it is attached.
	NotAttached = "not_attached"
	// Unknown means that the dump lacks the field that determines the state.
	Unknown = "unknown"
)

// Components describes the parts of an app that have a life cycle.
type Components struct {
	// Activities are Finished once finish has been called, and Destroyed after
	// onDestroy.
	Activities ComponentGroup `json:"activities"`
	// Fragments are those of android.app, of the support library and of
	// AndroidX.
	Fragments ComponentGroup `json:"fragments"`
	// Services are Alive while they are in ActivityThread.mServices.
	Services  ComponentGroup `json:"services"`
	Databases Databases      `json:"databases"`
	// Counts holds the number of objects of some classes, reachable or not:
	// Views, ViewRootImpl, AppContexts, Activities, AssetManagers,
	// LocalBinders, ProxyBinders, WebViews (the names of `dumpsys meminfo`),
	// and more.
	Counts   map[string]int64 `json:"counts"`
	Warnings []error          `json:"-"`
}

// ComponentGroup describes the components of one kind, reachable or not.
type ComponentGroup struct {
	Count int64 `json:"count"`
	// States holds the number of components in each state. Held is the number
	// of components that are Destroyed and still reachable.
	States map[string]int64 `json:"states"`
	Held   int64            `json:"held"`
	// List holds the destroyed components first, followed by the components
	// that retain the most bytes; Omitted is the number of components that are
	// not listed.
	List    []Component `json:"list"`
	Omitted int64       `json:"omitted,omitempty"`
}

// Component is an activity, a fragment or a service.
type Component struct {
	Object       hprof.ID `json:"object"`
	Class        string   `json:"class"`
	State        string   `json:"state"`
	Reachability string   `json:"reachability"`
	// RetainedBytes includes Java and native bytes.
	RetainedBytes int64 `json:"retained_bytes"`
}

// Databases describes the android.database.sqlite.SQLiteDatabase objects.
type Databases struct {
	Count   int64      `json:"count"`
	Open    int64      `json:"open"`
	List    []Database `json:"list"`
	Omitted int64      `json:"omitted,omitempty"`
}

// Database describes one SQLiteDatabase object. Path is the path that the app
// opened, which may be ":memory:".
type Database struct {
	Object        hprof.ID `json:"object"`
	Path          string   `json:"path"`
	Open          bool     `json:"open"`
	RetainedBytes int64    `json:"retained_bytes"`
}

// countedClasses maps the names in Counts to classes; Android itself counts
// most of these classes (ActivityThread.java, dumpMemInfoTable).
var countedClasses = map[string]string{
	"Activities":     "android.app.Activity",
	"Views":          "android.view.View",
	"ViewRootImpl":   "android.view.ViewRootImpl",
	"AppContexts":    "android.app.ContextImpl",
	"Contexts":       "android.content.Context",
	"AssetManagers":  "android.content.res.AssetManager",
	"LocalBinders":   "android.os.Binder",
	"ProxyBinders":   "android.os.BinderProxy",
	"WebViews":       "android.webkit.WebView",
	"Dialogs":        "android.app.Dialog",
	"Handlers":       "android.os.Handler",
	"HandlerThreads": "android.os.HandlerThread",
	"Cursors":        "android.database.AbstractCursor",
}

// mostComponents is the maximum number of objects of each kind that are read.
const mostComponents = 1 << 16

// componentsTopic reads Components.
type componentsTopic struct {
	Components

	counted map[string]*heap.Family
	// The families of the components that are read; fragments has one family
	// for each fragment library.
	activities, services, databases heap.Family
	fragments                       [3]heap.Family
	activityThreads                 heap.Family
	destroyed, finished             *heap.Field
	serviceMap, mapArray            *heap.Field
	pool, configuration, path       *heap.Field
	fragment                        fragmentFields

	states struct {
		activities, services []string
		fragments            [3][]fragment
	}
	// running holds the services in the ActivityThread, sorted; known reports
	// whether the ActivityThread was read.
	running []heap.Object
	known   bool
	// open reports for each database whether it is open; texts holds, for each
	// database, the number of the request for its path, plus 1.
	open  []bool
	texts []int
}

const (
	askActivity uint8 = iota
	askThreadOfServices
	askServiceMap
	askServiceArray
	askDatabase
	askConfiguration
	askLifecycle
	askState
	// askFragment is the tag for fragments of the first library; the next two
	// values are for those of the other libraries.
	askFragment
)

func (t *componentsTopic) families() []*heap.Family {
	t.activities = heap.Family{Class: "android.app.Activity", Limit: mostComponents}
	t.services = heap.Family{Class: "android.app.Service", Limit: mostComponents}
	t.databases = heap.Family{Class: "android.database.sqlite.SQLiteDatabase", Limit: mostComponents}
	t.activityThreads = heap.Family{Class: "android.app.ActivityThread", Limit: 2}
	list := []*heap.Family{&t.activities, &t.services, &t.databases, &t.activityThreads}
	for i, class := range fragmentClasses {
		t.fragments[i] = heap.Family{Class: class, Limit: mostComponents}
		list = append(list, &t.fragments[i])
	}
	t.counted = map[string]*heap.Family{}
	for name, class := range countedClasses {
		t.counted[name] = &heap.Family{Class: class}
		list = append(list, t.counted[name])
	}
	return list
}

func (t *componentsTopic) begin(p *plan) {
	field := p.graph.Field
	t.destroyed, t.finished = field("android.app.Activity", "mDestroyed"), field("android.app.Activity", "mFinished")
	t.serviceMap, t.mapArray = field("android.app.ActivityThread", "mServices"),
		field("android.util.ArrayMap", "mArray")
	t.pool = field("android.database.sqlite.SQLiteDatabase", "mConnectionPoolLocked")
	t.configuration = field("android.database.sqlite.SQLiteDatabase", "mConfigurationLocked")
	t.path = field("android.database.sqlite.SQLiteDatabaseConfiguration", "path")
	t.fragment = newFragmentFields(p.graph)
	t.states.activities = make([]string, len(t.activities.Objects))
	t.states.services = make([]string, len(t.services.Objects))
	t.open, t.texts = make([]bool, len(t.databases.Objects)), make([]int, len(t.databases.Objects))
	all := func(f *heap.Family, tag uint8) {
		for i, o := range f.Objects {
			p.ask(o, tag, i)
		}
		if n := f.Count - int64(len(f.Objects)); n > 0 {
			t.Warnings = append(t.Warnings,
				fmt.Errorf("components: %d of %d objects of %s were not read", n, f.Count, f.Class))
		}
	}
	all(&t.activities, askActivity)
	all(&t.databases, askDatabase)
	for i := range t.fragments {
		t.states.fragments[i] = make([]fragment, len(t.fragments[i].Objects))
		all(&t.fragments[i], askFragment+uint8(i))
	}
	if o, ok := activityThread(p.graph, &t.activityThreads); ok && t.services.Count > 0 {
		p.ask(o, askThreadOfServices, 0)
	}
}

func (t *componentsTopic) visit(p *plan, r *heap.Record, tag uint8, number uint32) {
	switch tag {
	case askActivity:
		t.states.activities[number] = t.activity(r)
	case askThreadOfServices:
		if o, ok := r.RefOf(t.serviceMap); ok {
			p.ask(o, askServiceMap, 0)
		}
	case askServiceMap:
		t.servicesIn(p, r)
	case askServiceArray:
		t.serviceArray(r)
	case askDatabase:
		null, ok := r.IsNull(t.pool)
		t.open[number] = ok && !null
		if o, ok := r.RefOf(t.configuration); ok {
			p.ask(o, askConfiguration, int(number))
		}
	case askConfiguration:
		if o, ok := r.RefOf(t.path); ok {
			// 0 means that no string was requested.
			t.texts[number] = p.text(o) + 1
		}
	default:
		t.visitFragment(p, r, tag, number)
	}
}

func (t *componentsTopic) activity(r *heap.Record) string {
	destroyed, ok := r.BoolOf(t.destroyed)
	finished, _ := r.BoolOf(t.finished)
	switch {
	case destroyed:
		return Destroyed
	case finished:
		return Finished
	case !ok:
		return Unknown
	}
	return Alive
}

// servicesIn reads the values of ActivityThread.mServices. Before Android 4.4,
// the field is a HashMap, and the state of services is unknown.
func (t *componentsTopic) servicesIn(p *plan, r *heap.Record) {
	if null, ok := r.IsNull(t.mapArray); ok && null {
		t.known = true
	}
	if o, ok := r.RefOf(t.mapArray); ok {
		p.ask(o, askServiceArray, 0)
	}
}

// serviceArray appends the values of an ArrayMap to running; keys and values
// alternate in its array.
func (t *componentsTopic) serviceArray(r *heap.Record) {
	t.known = true
	for i := range r.Elements() {
		if (uint64(r.First)+uint64(i))%2 == 0 {
			continue
		}
		if o, ok := r.Element(i); ok && len(t.running) < mostComponents {
			t.running = append(t.running, o)
		}
	}
}

func (t *componentsTopic) advance(*plan) {}

func (t *componentsTopic) finish(p *plan) {
	slices.Sort(t.running)
	for i, o := range t.services.Objects {
		state := Unknown
		if _, running := slices.BinarySearch(t.running, o); running {
			state = Alive
		} else if t.known {
			state = Destroyed
		}
		t.states.services[i] = state
	}
	t.Activities = p.group(groupPart{&t.activities, t.states.activities})
	t.Services = p.group(groupPart{&t.services, t.states.services})
	var parts []groupPart
	for i := range t.fragments {
		states := make([]string, len(t.states.fragments[i]))
		for k, f := range t.states.fragments[i] {
			states[k] = f.state()
		}
		parts = append(parts, groupPart{&t.fragments[i], states})
	}
	t.Fragments = p.group(parts...)
	t.listDatabases(p)
	t.Counts = map[string]int64{}
	for name, f := range t.counted {
		t.Counts[name] = f.Count
	}
}

// groupPart holds a family of objects and the state of each object.
type groupPart struct {
	family *heap.Family
	states []string
}

func (p *plan) group(parts ...groupPart) ComponentGroup {
	g := ComponentGroup{States: map[string]int64{}, List: []Component{}}
	type member struct {
		object   heap.Object
		state    string
		held     bool
		retained int64
	}
	// All other states come last: slices.Index returns -1 for them, which
	// becomes 3 here.
	first := func(state string) int { return slices.Index([]string{Destroyed, Finished}, state) & 3 }
	top := best[member]{limit: p.options.Top, order: func(a, b member) int {
		if a.held != b.held {
			return map[bool]int{true: -1, false: 1}[a.held]
		}
		return cmp.Or(cmp.Compare(first(a.state), first(b.state)), cmp.Compare(b.retained, a.retained),
			cmp.Compare(a.object, b.object))
	}}
	for _, part := range parts {
		g.Count += part.family.Count
		for i, o := range part.family.Objects {
			m := member{o, part.states[i], false, p.graph.Retained(o).Total()}
			if m.state == "" {
				m.state = Unknown
			}
			m.held = m.state == Destroyed && p.reachable(o)
			g.States[m.state]++
			if m.held {
				g.Held++
			}
			top.add(m)
		}
	}
	for _, m := range top.sorted() {
		g.List = append(g.List,
			Component{p.id(m.object), p.class(m.object), m.state, p.graph.Reachability(m.object).String(), m.retained})
	}
	g.Omitted = g.Count - int64(len(g.List))
	return g
}

func (t *componentsTopic) listDatabases(p *plan) {
	d := Databases{Count: t.databases.Count, List: []Database{}}
	for i, o := range t.databases.Objects {
		if t.open[i] {
			d.Open++
		}
		d.List = append(d.List,
			Database{p.id(o), p.texts.shown(t.texts[i] - 1), t.open[i], p.graph.Retained(o).Total()})
	}
	slices.SortStableFunc(d.List, func(a, b Database) int {
		if a.Open != b.Open {
			return map[bool]int{true: -1, false: 1}[a.Open]
		}
		return cmp.Compare(b.RetainedBytes, a.RetainedBytes)
	})
	d.List, _ = cut(d.List, p.options.Top)
	d.Omitted = d.Count - int64(len(d.List))
	t.Databases = d
}
