package analysis_test

import (
	"strconv"
	"testing"

	"github.com/leakgate/leakgate/internal/jvmtest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// The classes of one program are loaded in many orders. A leak with several
// paths of equal length has the same key in all orders.
func TestKeysInAnyOrder(t *testing.T) {
	t.Parallel()
	j := jvmtest.New(t)
	jar := j.Compile(t, jvmtest.Twins())
	orders := 4
	if recorded.Long() {
		orders = 20
	}
	first, prints := map[string]string{}, map[string]bool{}
	for seed := range orders {
		p := j.Start(t, jar, jvmtest.TwinsMain, strconv.Itoa(seed))
		d := readJVM(t, p.Dump(t))
		p.Stop(t)
		r := d.analyze(t, nil, jvmtest.TwinClasses()...)
		if len(r.Leaks) != len(jvmtest.TwinClasses()) {
			t.Fatalf("order %d: %d leaks", seed, len(r.Leaks))
		}
		for i := range r.Leaks {
			l := &r.Leaks[i]
			prints[l.Class+l.Fingerprint] = true
			if first[l.Class] == "" {
				first[l.Class] = l.Key
			}
			if l.Key != first[l.Class] {
				t.Errorf("order %d: %s has a different key: %q", seed, l.Class, l.KeyText)
			}
		}
	}
	if len(prints) == len(first) {
		t.Error("Shark's paths are the same in all orders: the test proves nothing")
	}
}
