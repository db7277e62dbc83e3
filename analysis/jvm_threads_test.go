package analysis_test

import (
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/jvmtest"
)

// Threads that never end are reported as one suspect, with what they hold, even
// if the frames of a thread hold it as well.
func TestJVMThreads(t *testing.T) {
	t.Parallel()
	const threads = 1200
	j := jvmtest.New(t)
	jar := j.Compile(t, jvmtest.Depot())
	tests := []struct {
		kind, class, holds string
		// others is the number of threads of the class that do not leak.
		others int64
	}{
		{jvmtest.DepotCourier, "com.example.depot.Courier", "byte[]", 0},
		{jvmtest.DepotDelivery, "java.lang.Thread", "com.example.depot.Delivery", 20},
	}
	for _, test := range tests {
		t.Run(test.kind, func(t *testing.T) {
			d := run(t, j, jar, jvmtest.DepotMain, threads, test.kind)
			r := d.analyze(t, nil)
			checkNoWarning(t, r)
			if len(r.Leaks) > 0 || len(r.Suspects) != 1 {
				t.Fatalf("%d leaks, suspects %+v", len(r.Leaks), r.Suspects)
			}
			d.checkRoots(t, r.Suspects)
			s := r.Suspects[0]
			a := s.Accumulates
			if a.Root != "THREAD_OBJECT" || s.GCRoot != a.Root || a.Class != test.class || a.Count < threads ||
				a.Count > threads+test.others {
				t.Errorf("%+v", a)
			}
			if a.Holds != test.holds || a.Held < threads || a.Bytes < threads*2048 || a.HeldBytes > a.Bytes {
				t.Errorf("%+v", a)
			}
			if want := []string{"THREAD_OBJECT accumulates " + test.class}; !slices.Equal(s.KeyText, want) ||
				len(s.Trace) != 1 || s.Trace[0].Class != test.class {
				t.Errorf("key text %q, trace %+v", s.KeyText, s.Trace)
			}
		})
	}
}
