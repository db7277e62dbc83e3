package hproftest

import (
	"math/rand/v2"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// mixSDKs and mixManufacturers are the API levels and manufacturers of the
// phones with known leaks.
var (
	mixSDKs          = []int{23, 24, 25, 26, 28, 29, 30, 31, 33, 34, 35}
	mixManufacturers = []string{"Google", "Google", "samsung", "HUAWEI", "LGE", "Xiaomi"}
)

// mixPhone returns the phone for a seed.
func mixPhone(seed uint64) Phone {
	rng := rand.New(rand.NewPCG(seed, 0x9807e))
	p := Phone{
		SDK: mixSDKs[rng.IntN(len(mixSDKs))], Manufacturer: mixManufacturers[rng.IntN(len(mixManufacturers))],
		Seed: seed,
	}
	p.Harmony = p.SDK == 23 && rng.IntN(3) > 0
	return p
}

// mixed adds paths and a graph to a heap. The paths consist of shapes in random
// order, share objects and reference each other. The graph consists of objects
// whose classes no inspector treats specially.
func mixed(s *scene) {
	m := mixer{scene: s, shapes: leakShapes(), pool: []Ref{}}
	s.legacy = s.rng.IntN(6) == 0
	paths := 2 + s.rng.IntN(8)
	for i := range paths {
		if i == paths/2 {
			m.soup(s.rng.IntN(120))
		}
		m.path()
	}
	for range s.rng.IntN(4) {
		s.watch(m.any(), []string{"", "screen was left"}[s.rng.IntN(2)], s.rng.IntN(3) > 0)
	}
}

type mixer struct {
	*scene
	shapes []leakShape
	// pool holds objects that may be referenced again.
	pool []Ref
}

// any returns a random object of the pool. If the pool is empty, it adds a new
// leak first.
func (m *mixer) any() Ref {
	if len(m.pool) == 0 {
		m.pool = append(m.pool, m.leak())
	}
	return m.pool[m.rng.IntN(len(m.pool))]
}

// path creates a root and a chain of shapes, each of which holds the next one;
// the last shape often leaks.
func (m *mixer) path() {
	at := m.end()
	m.pool = append(m.pool, at)
	for range m.rng.IntN(7) {
		at = m.shape().make(m.scene, at)
		m.pool = append(m.pool, at)
	}
	root := leakRoots[0]
	if m.rng.IntN(3) > 0 {
		root = leakRoots[m.rng.IntN(len(leakRoots))]
	}
	root.make(m.scene, at)
}

// end returns the last object of a path: a leaking object, an object with a
// payload, or an object of another path.
func (m *mixer) end() Ref {
	switch m.rng.IntN(6) {
	case 0:
		return m.any()
	case 1:
		return m.payload()
	case 2:
		return m.leak()
	case 3:
		return m.New(m.class("com.example.Suspect", "", "object extra"), Fields{"extra": m.payload()})
	}
	for {
		if shape := m.shape(); shape.leaks {
			return shape.make(m.scene, m.payload())
		}
	}
}

func (m *mixer) shape() leakShape { return m.shapes[m.rng.IntN(len(m.shapes))] }

// soup creates a graph of plain objects with random references, some of which
// lead to objects of the paths. Some objects of the paths can only be reached
// through this graph.
func (m *mixer) soup(n int) {
	if n == 0 {
		return
	}
	classes := []*Class{
		m.class("com.example.SoupA", "", "object a", "object b"),
		m.class("com.example.SoupB", "", "object x"),
		m.class("com.example.SoupC", "com.example.SoupA", "object c", "object a2"),
	}
	fields := [][]string{{"a", "b"}, {"x"}, {"a", "b", "c", "a2"}}
	soup := make([]Ref, n)
	kinds := make([]int, n)
	for i := range soup {
		kinds[i] = m.rng.IntN(len(classes))
		soup[i] = m.New(classes[kinds[i]], nil)
	}
	for i, r := range soup {
		for _, f := range fields[kinds[i]] {
			switch m.rng.IntN(8) {
			case 0:
			case 1:
				m.Set(r, f, m.any())
			default:
				m.Set(r, f, soup[m.rng.IntN(n)])
			}
		}
	}
	m.pool = append(m.pool, soup[:1+n/20]...)
	for range 1 + m.rng.IntN(3) {
		m.hold(soup[m.rng.IntN(n)])
	}
	if m.rng.IntN(2) == 0 {
		m.local("soup", soup[m.rng.IntN(n)])
	}
	if m.rng.IntN(2) == 0 {
		m.Root(hprof.SubRootJNIGlobal, soup[m.rng.IntN(n)])
	}
}
