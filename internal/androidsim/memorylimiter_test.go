package androidsim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Since API 37, the memory limiter kills a process half a minute after its
// memory and swap exceed the limit.
func TestMemoryLimiter(t *testing.T) {
	limiter := &MemoryLimiter{Visible: 200, VisibleSwap: 56, NotVisible: 100, NotVisibleSwap: 28}
	old := *limiter
	old.OldReason = true
	for name, c := range map[string]struct {
		api     int
		limiter *MemoryLimiter
		process string
		exit    string
	}{
		"API 37.2":          {37, limiter, "com.shop", "reason=17 (MEMORY LIMITER)"},
		"API 37":            {37, &old, "com.shop", "reason=13 (OTHER KILLS BY SYSTEM)"},
		"in the background": {37, limiter, "com.shop:push", "reason=17 (MEMORY LIMITER)"},
		"no limiter":        {37, nil, "com.shop", ""},
		"Android 16":        {36, limiter, "com.shop", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				steady := func(name string, mb float64) ProcessSpec {
					return ProcessSpec{Name: name, Models: []Model{Steady(NativeHeap, mb)}, RestartAfter: time.Hour}
				}
				specs := []ProcessSpec{steady("com.shop", 150), steady("com.shop:push", 50)}
				for i := range specs {
					if specs[i].Name == c.process {
						specs[i].Models = append(specs[i].Models, Leak(Native, 600, 0))
					}
				}
				p := New(Options{
					API: c.api, MemoryLimiter: c.limiter, Apps: []App{{Package: "com.shop", Processes: specs}},
				})
				time.Sleep(time.Minute)
				if p.PID(c.process) == 0 {
					t.Fatal("the process was killed below its limit")
				}
				time.Sleep(20 * time.Minute)
				var out strings.Builder
				p.Shell(t.Context(), "dumpsys activity exit-info com.shop; logcat -d", strings.NewReader(""), &out,
					&out)
				if killed := p.PID(c.process) == 0; killed != (c.exit != "") || killed &&
					!strings.Contains(out.String(), c.exit) {
					t.Fatalf("killed %t\n%s", killed, out.String())
				}
				if c.exit == "" {
					return
				}
				for _, want := range []string{
					"description=MemoryLimiter:AnonSwap", "MemoryLimiter: onLimitExceeded: pid=",
					" type=anon+swap memHigh=", "): MemoryLimiter:AnonSwap",
				} {
					if !strings.Contains(out.String(), want) {
						t.Errorf("no %q in\n%s", want, out.String())
					}
				}
			})
		})
	}
}
