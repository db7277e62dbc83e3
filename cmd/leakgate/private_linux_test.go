//go:build realtime && e2e

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
)

// Two runs, one with dumps at marks and one with several kinds of leaks,
// neither write nor print personal data, except in their dumps.
func TestPrivateRunOnTheHostDevice(t *testing.T) {
	hostdevicetest.RequireJava(t)
	r := hostdevicetest.StartNested(t, hostdevice.Options{Scale: 20, AppUID: appUser})
	r.Must(t, "shell", "am start -n "+r.Package()+"/.Private --es mb_per_h 150 && am start -n "+r.Package()+"/.Control")
	w := begin(t, r, 3*time.Minute, strings.ReplaceAll(marking, "PACKAGE", r.Package())).end(t)
	if len(w.diagnosesOf("private", "mark")) != 4 || len(w.diagnosis(t, "private", "marks").Findings) == 0 {
		t.Errorf("%+v", w.Diagnoses)
	}
	assertPrivate(t, w.dir, w.text)

	n := beginNight(t, r).end(t)
	if len(n.diagnosesOf("private", "leak")) == 0 {
		t.Errorf("got no diagnosis of a leak: %+v", n.Diagnoses)
	}
	assertPrivate(t, n.dir, n.text)
}
