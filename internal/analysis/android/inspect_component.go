package android

import (
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// inspectActivity implements Shark's inspector ACTIVITY. Android before 4.2 has
// no mDestroyed.
func (i *Inspector) inspectActivity(o heap.Object, r *report) {
	if destroyed, known := i.destroyed(o); known {
		format, args := described(activityDestroyed, destroyed)
		if destroyed {
			r.leaking(format, args...)
		} else {
			r.notLeaking(format, args...)
		}
	}
}

func (i *Inspector) activityLeaks(o heap.Object) bool {
	destroyed, _ := i.destroyed(o)
	return destroyed
}

// runningServices holds the services in the ActivityThread, sorted.
type runningServices struct {
	asked, known bool
	objects      []heap.Object
}

// inspectService implements Shark's inspector SERVICE.
func (i *Inspector) inspectService(o heap.Object, r *report) {
	running, known := i.runs(o)
	switch {
	case !known:
	case running:
		r.notLeaking("Service held by ActivityThread")
	default:
		r.leaking("Service not held by ActivityThread")
	}
}

func (i *Inspector) serviceLeaks(o heap.Object) bool {
	running, known := i.runs(o)
	return known && !running
}

// runs reports whether a service is in ActivityThread.mServices
// (AndroidServices.kt). Before Android 4.4, it is unknown which services run.
func (i *Inspector) runs(service heap.Object) (running, known bool) {
	if !i.running.asked {
		i.running.asked = true
		i.readServices()
	}
	_, running = slices.BinarySearch(i.running.objects, service)
	return running, i.running.known
}

func (i *Inspector) readServices() {
	threads := heap.Family{Class: "android.app.ActivityThread", Limit: 2}
	i.graph.Gather(&threads)
	thread, ok := activityThread(i.graph, &threads)
	if !ok {
		return
	}
	services, ok := i.ref(thread, threadServices)
	if !ok {
		return
	}
	null, known := i.isNull(services, mapArray)
	i.running.known = known && null
	if array, ok := i.ref(services, mapArray); ok {
		_, i.running.known = i.array(array)
		i.elements(array, func(n int, to heap.Object) bool {
			if n%2 == 1 {
				i.running.objects = append(i.running.objects, to)
			}
			return true
		})
	}
	slices.Sort(i.running.objects)
}

// inspectLoadedApk implements Shark's inspector LOADED_APK: it lists the
// receivers that contexts have registered.
func (i *Inspector) inspectLoadedApk(o heap.Object, r *report) {
	all := i.pairs(o, apkReceivers)
	if len(all) == 0 {
		return
	}
	r.label("Receivers")
	for _, p := range all {
		r.label("..%s@%d", simple(i.className(p.key)), uint64(i.graph.ID(p.key)))
		if !p.hasValue {
			continue
		}
		for _, receiver := range i.pairsIn(p.value) {
			r.label("....%s@%d", simple(i.className(receiver.key)), uint64(i.graph.ID(receiver.key)))
		}
		if len(r.Labels) == mostRemarks {
			return
		}
	}
}

// pair is a key of an android.util.ArrayMap with its value, if the value is not
// null.
type pair struct {
	key, value heap.Object
	hasValue   bool
}

func (i *Inspector) pairs(o heap.Object, f field) []pair {
	m, ok := i.ref(o, f)
	if !ok {
		return nil
	}
	return i.pairsIn(m)
}

func (i *Inspector) pairsIn(m heap.Object) (list []pair) {
	array, ok := i.ref(m, mapArray)
	if !ok {
		return nil
	}
	last := -1
	i.elements(array, func(n int, to heap.Object) bool {
		switch {
		case n%2 == 0 && len(list) == mostRemarks:
			return false
		case n%2 == 0:
			list, last = append(list, pair{key: to}), n
		case n == last+1 && last >= 0:
			p := &list[len(list)-1]
			p.value, p.hasValue = to, true
		}
		return true
	})
	return list
}

// inspectBinder implements Shark's inspector STUB. Native code holds a Binder
// as long as another process has a proxy for it (AOSP android_util_Binder.cpp,
// JavaBBinder). A Binder that only Java objects hold may be a leak like any
// other object. Shark's main branch treats every Binder as needed, and
// therefore does not suspect the owner of a list of Binders.
func (i *Inspector) inspectBinder(o heap.Object, r *report) {
	name := simple(i.graph.Class(o))
	if i.global(o) {
		r.notLeaking("%s is a binder stub, and a stub stays in memory until the process on the other side gets GCed, "+
			"so outliving what it was made for is by design", name)
	}
	r.label("%s is a binder stub. Binder stubs will often be retained long after the associated activity or service "+
		"is destroyed, as by design stubs are retained until the other side gets GCed."+
		" If %s is not a *static* inner class then that's most likely the root cause of this leak. Make it static."+
		" If %s is an Android Framework class, file a ticket here: "+
		"https://issuetracker.google.com/issues/new?component=192705", name, name, name)
}

// global reports whether native code references a Binder object.
func (i *Inspector) global(o heap.Object) bool {
	if i.globals == nil {
		i.globals = i.findGlobals()
	}
	return i.globals[o]
}
