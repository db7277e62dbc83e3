package stall

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := Measure(t)
		time.Sleep(time.Hour)
		if total := m.Total(); total != 0 {
			t.Errorf("%v without a stall", total)
		}
	})
}

func TestStalled(t *testing.T) {
	for passed, want := range map[time.Duration]time.Duration{
		every: 0, 2*every - 1: 0, 2 * every: 2 * every, 1600 * time.Millisecond: 1600 * time.Millisecond,
	} {
		if got := stalled(passed); got != want {
			t.Errorf("ticks %v apart: got a stall of %v, want %v", passed, got, want)
		}
	}
}
