package analysis

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/hproftest"
)

// historyDump returns a dump with values of one variable in several threads,
// and of another variable in one thread.
func historyDump(t *testing.T, h *hproftest.Heap, form hproftest.Form, names []string) []byte {
	t.Helper()
	type f = hproftest.Fields
	local := h.Declare("java.lang.ThreadLocal", nil, "int threadLocalHashCode")
	entry := h.Declare("java.lang.ThreadLocal$ThreadLocalMap$Entry", h.Class("java.lang.ref.WeakReference"),
		"object value")
	table := h.Declare("java.lang.ThreadLocal$ThreadLocalMap", nil, "object table", "int size")
	history, other := h.New(local, nil), h.New(local, nil)
	h.Hold("com.shop.RequestContext", "HISTORY", history)
	h.Hold("com.shop.Locale", "CURRENT", other)
	screen := h.Declare("com.shop.Screen", nil, "int id")
	inThread := func(name string, variable hproftest.Ref) {
		thread := h.Thread(name)
		e := h.New(entry, f{"referent": variable, "value": h.ArrayList(h.New(screen, nil)).Ref})
		h.Set(thread.Ref, "threadLocals", h.New(table, f{"table": h.Objects(entry, 0, e), "size": 1}))
	}
	for _, name := range names {
		inThread(name, history)
	}
	inThread("alice 0171 234", other)
	dump, _, err := h.Dump(form)
	if err != nil {
		t.Fatal(err)
	}
	return dump
}

// A value of a thread local variable is reported with the threads that have a
// value. Numbers in the names of threads are replaced by an asterisk, and names
// that the app chose are redacted.
func TestThreadsOfThreadLocals(t *testing.T) {
	t.Parallel()
	const value = "value of ThreadLocal RequestContext.HISTORY"
	pool := []string{"pool-1-thread-1", "pool-1-thread-2", "pool-1-thread-12"}
	tests := []struct {
		names         []string
		shown, hidden string
	}{
		{pool, " in 3 threads pool-1-thread-*", " in 3 threads pool-1-thread-*"},
		{[]string{"Thread-7"}, " in thread Thread-7", " in thread Thread-7"},
		{[]string{"sync of bob"}, " in thread sync of bob", " in thread …#HASH"},
		{[]string{"upload 1", "upload 2"}, " in 2 threads upload *", " in 2 threads …#HASH"},
		{
			append([]string{"upload 1", "main2"}, pool...),
			" in 5 threads: pool-1-thread-* (3), main* (1), upload * (1)",
			" in 5 threads: pool-1-thread-* (3), …#HASH (1), …#HASH (1)",
		},
		{
			append([]string{"a", "b", "c", "d"}, pool...),
			" in 7 threads: pool-1-thread-* (3), a (1), b (1) and 2 more",
			" in 7 threads: pool-1-thread-* (3), …#HASH (1), …#HASH (1) and 2 more",
		},
	}
	hash := regexp.MustCompile(`#[a-p]{6}`)
	for _, test := range tests {
		for name, dump := range map[string][]byte{
			"jvm":     historyDump(t, hproftest.Java(1), hproftest.Form{Runtime: hproftest.HotSpot}, test.names),
			"android": historyDump(t, hproftest.Android(hproftest.Phone{SDK: 34}), hproftest.Form{}, test.names),
		} {
			for _, show := range []bool{true, false} {
				r, err := Analyze(t.Context(), bytes.NewReader(dump), int64(len(dump)),
					Options{LeakingClasses: []string{"com.shop.Screen"}, ShowTexts: show})
				if err != nil {
					t.Fatal(err)
				}
				want := value + test.hidden
				if show {
					want = value + test.shown
				}
				var got []string
				for _, l := range r.Leaks {
					for _, e := range l.Trace {
						for _, label := range e.Labels {
							if strings.HasPrefix(label, "value of ThreadLocal") {
								got = append(got, hash.ReplaceAllString(label, "#HASH"))
							}
						}
					}
				}
				if !slices.Contains(got, want) {
					t.Errorf("%s, %q: %q, want %q", name, test.names, got, want)
				}
			}
		}
	}
}
