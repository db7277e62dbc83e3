package main

import "testing"

// TestSmoke measures a small part of the first two tables and compares it with
// the bars as far as the small number of runs allows. make calibrate measures
// everything.
func TestSmoke(t *testing.T) {
	o := must(t, "-runs", "20", "-detections", "10", "-tables", "alarms,detection")
	if racing {
		o.runs, o.detections = 3, 2
	}
	b := bars{loose: true}
	text := texts(o, 2, &b)
	for _, m := range b.missed {
		t.Errorf("missed: %s", m)
	}
	if t.Failed() {
		t.Log(text)
	}
}
