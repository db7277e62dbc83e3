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
