package hproftest

import "fmt"

// LeakCase is a small dump of an Android app with known kinds of leaks. Shark
// reads it without an error.
type LeakCase struct {
	// Name is the name of the case; it is the same in each run.
	Name string
	// Classes lists the classes whose objects a test may treat as leaking,
	// whether they leak or not.
	Classes []string
	// Form selects how the dump is written.
	Form  Form
	phone Phone
	make  func(s *scene)
}

// Heap creates the heap of the case.
func (c LeakCase) Heap() *Heap {
	s := newScene(c.phone)
	c.make(s)
	return s.Heap
}

// plainLeak is the class of the simplest leaks. If a test treats all objects of
// this class as leaking, paths may pass through leaking objects.
var plainLeak = []string{"com.example.LeakedActivity"}

// mixes is the number of cases that are mixtures; a seed determines each of
// them.
const mixes = 160

// LeakCases returns dumps for everything that Shark's inspectors, matchers and
// collection readers treat specially: one dump for each special treatment, and
// mixtures.
func LeakCases() []LeakCase {
	all := LeakSpecials()
	for _, shape := range leakShapes() {
		all = append(all,
			LeakCase{
				Name: "holder/" + shape.name, Classes: plainLeak,
				make: func(s *scene) { s.hold(shape.make(s, s.leak())) },
			})
		if shape.leaks {
			all = append(all, LeakCase{Name: "leak/" + shape.name, make: func(s *scene) {
				s.hold(s.node("com.example.Controller", "callback", shape.make(s, s.payload())))
			}})
		}
	}
	for _, shape := range collectionShapes {
		all = append(all,
			LeakCase{
				Name: "harmony/" + shape.name, phone: Phone{SDK: 23, Harmony: true},
				make: func(s *scene) { s.hold(shape.make(s, s.leak())) },
			})
	}
	for _, root := range leakRoots {
		all = append(all, LeakCase{Name: "root/" + root.name, make: func(s *scene) {
			root.make(s, s.leak())
			root.make(s, s.node("com.example.Controller", "callback", s.leak()))
		}})
	}
	for _, known := range knownLeaks {
		all = append(all, LeakCase{Name: "known/" + known.name, phone: known.phone, make: known.make})
	}
	for seed := range uint64(mixes) {
		all = append(all, LeakMix(seed))
	}
	return all
}

// LeakSpecials returns those LeakCases in which a single rule of leak traces
// determines the result: equal paths, priorities, statuses, shared objects,
// watched objects.
func LeakSpecials() []LeakCase {
	var all []LeakCase
	for _, special := range specialLeaks {
		c := LeakCase{Name: "special/" + special.name, Classes: plainLeak, phone: special.phone, make: special.make}
		switch special.name {
		case "nothing leaks", "watched and alive":
			c.Classes = []string{
				"java.lang.Thread", "android.app.ActivityThread", "com.example.App", "com.example.MainActivity",
				"java.util.ArrayList",
			}
		}
		all = append(all, c)
	}
	return all
}

// LeakMix returns a mixture of all kinds of leaks. The seed determines the
// mixture.
func LeakMix(seed uint64) LeakCase {
	return LeakCase{
		Name: fmt.Sprint("mix/", seed), phone: mixPhone(seed), make: mixed, Form: Form{Shuffle: seed%4 == 3},
		Classes: []string{"com.example.Suspect", "com.example.SoupB"},
	}
}
