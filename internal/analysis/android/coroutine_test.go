package android_test

import (
	"testing"

	"github.com/leakgate/leakgate/internal/hproftest"
)

// coroutines declares the classes of one version of kotlinx.coroutines. The
// names of their fields identify the version.
type coroutines struct {
	*hproftest.Heap

	suffix string
	// boxed reports whether fields reference an AtomicRef.
	boxed bool
	job   *hproftest.Class
}

func newCoroutines(suffix string, boxed bool) *coroutines {
	c := &coroutines{Heap: hproftest.Android(hproftest.Phone{SDK: 34}), suffix: suffix, boxed: boxed}
	support := c.Declare("kotlinx.coroutines.JobSupport", nil, "object _state"+suffix, "object _parentHandle"+suffix)
	c.job = c.Declare("kotlinx.coroutines.StandaloneCoroutine",
		c.Declare("kotlinx.coroutines.AbstractCoroutine", support, "object context"))
	c.Declare("kotlinx.coroutines.CompletedExceptionally", nil, "object cause")
	c.Declare("kotlinx.coroutines.Empty", nil, "boolean isActive")
	c.Declare("kotlinx.coroutines.NodeList", nil, "object _next")
	c.Declare("kotlinx.coroutines.JobSupport$Finishing", nil, "object _rootCause"+suffix, "object list")
	c.Declare("kotlin.Unit", nil)
	cancellation := c.Declare("java.util.concurrent.CancellationException", c.Declare("java.lang.Exception", nil))
	c.Declare("kotlinx.coroutines.JobCancellationException", cancellation)
	c.Declare("java.io.IOException", c.Class("java.lang.Exception"))
	c.Declare("kotlinx.atomicfu.AtomicRef", nil, "object value")
	c.Declare("kotlin.coroutines.CombinedContext", nil, "object left", "object element")
	c.Declare("com.shop.Prices", nil)
	return c
}

func (c *coroutines) make(class string, fields hproftest.Fields) hproftest.Ref {
	return c.New(c.Class(class), fields)
}

func (c *coroutines) atomic(to hproftest.Ref) hproftest.Ref {
	if !c.boxed || to == 0 {
		return to
	}
	return c.make("kotlinx.atomicfu.AtomicRef", hproftest.Fields{"value": to})
}

func (c *coroutines) jobIn(state hproftest.Ref) hproftest.Ref {
	return c.New(c.job, hproftest.Fields{"_state" + c.suffix: c.atomic(state)})
}

func (c *coroutines) ended(exception string) hproftest.Ref {
	return c.make("kotlinx.coroutines.CompletedExceptionally", hproftest.Fields{"cause": c.make(exception, nil)})
}

func (c *coroutines) finishing(cause hproftest.Ref) hproftest.Ref {
	return c.make("kotlinx.coroutines.JobSupport$Finishing", hproftest.Fields{"_rootCause" + c.suffix: c.atomic(cause)})
}

// TestInspectedJobs checks that a job that has ended is labeled, that a running
// job is not, and that neither is reported as a leak for that reason.
func TestInspectedJobs(t *testing.T) {
	t.Parallel()
	const cancelled = "kotlinx.coroutines.JobCancellationException"
	for _, c := range []*coroutines{
		newCoroutines("", false), newCoroutines("$volatile", false), newCoroutines("", true),
	} {
		jobs := []struct {
			name, want string
			state      hproftest.Ref
		}{
			{"cancelled", "=Job is cancelled, still held", c.ended(cancelled)},
			{"failed", "=Job failed with IOException, still held", c.ended("java.io.IOException")},
			{"completed", "=Job is completed, still held", c.make("kotlin.Unit", nil)},
			{"being cancelled", "=Job is being cancelled, still held", c.finishing(c.make(cancelled, nil))},
			{
				"failing", "=Job is failing with IOException, still held",
				c.finishing(c.make("java.io.IOException", nil)),
			},
			{"waiting for children", "", c.finishing(0)},
			{"active", "", c.make("kotlinx.coroutines.Empty", hproftest.Fields{"isActive": true})},
			{"with children", "", c.make("kotlinx.coroutines.NodeList", nil)},
			// The state may be the result of a job, or an Incomplete that was
			// renamed by an obfuscator.
			{"returned an object", "", c.make("com.shop.Prices", nil)},
			{"returned null", "", 0},
		}
		var refs []hproftest.Ref
		for _, j := range jobs {
			refs = append(refs, c.jobIn(j.state))
		}
		judged := judge(t, c.Heap, hproftest.Form{})
		for n, j := range jobs {
			judged.says(t, j.name, refs[n], j.want, "")
			judged.leaks(t, j.name, refs[n], false, false)
		}
	}
}

// TestInspectedScopes checks that the job of a scope is found in its context,
// among other elements.
func TestInspectedScopes(t *testing.T) {
	t.Parallel()
	for _, class := range []string{
		"androidx.lifecycle.viewmodel.internal.CloseableCoroutineScope", "androidx.lifecycle.CloseableCoroutineScope",
		"kotlinx.coroutines.internal.ContextScope",
	} {
		c := newCoroutines("$volatile", false)
		scope := c.Declare(class, nil, "object coroutineContext")
		in := func(context hproftest.Ref) hproftest.Ref {
			return c.New(scope, hproftest.Fields{"coroutineContext": context})
		}
		with := func(left, element hproftest.Ref) hproftest.Ref {
			return c.make("kotlin.coroutines.CombinedContext", hproftest.Fields{"left": left, "element": element})
		}
		other := c.make("com.shop.Prices", nil)
		gone := c.jobIn(c.ended("kotlinx.coroutines.JobCancellationException"))
		alone, left, right := in(gone), in(with(with(gone, other), other)), in(with(with(other, gone), other))
		used, none := in(with(c.jobIn(c.make("kotlinx.coroutines.Empty", nil)), other)), in(with(other, other))
		// The search ends in a context whose left field references the context
		// itself.
		circle := with(0, other)
		c.Set(circle, "left", circle)
		endless := in(circle)
		j := judge(t, c.Heap, hproftest.Form{})
		for name, r := range map[string]hproftest.Ref{"alone": alone, "left": left, "right": right} {
			j.says(t, name, r, "=its Job is cancelled, still held", "")
			j.leaks(t, name, r, false, false)
		}
		for name, r := range map[string]hproftest.Ref{"in use": used, "without a job": none, "in a circle": endless} {
			j.says(t, name, r, "", "")
		}
	}
}
