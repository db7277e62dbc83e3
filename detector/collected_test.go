package detector

import (
	"testing"
	"time"
)

// Levels after forced collections are judged once there are 12 of them. Each of
// these levels is a value at one point in time, while the level that follows a
// mark "gc" is a mean over a minute.
func TestCollectedLevels(t *testing.T) {
	const every = 30 * time.Second
	for name, c := range map[string]struct {
		collections int
		want        string
	}{"enough": {12, "collections"}, "one fewer": {11, ""}} {
		d := New(DefaultPolicy())
		for i := range c.collections {
			for k := range 3 {
				at := time.Duration(i)*every + time.Duration(k)*10*time.Second
				d.AddSample(Sample{At: at, Bytes: int64(200+50*k) * MB})
				if k == 0 {
					d.AddCollected(Sample{At: at, Bytes: int64(200+i) * MB})
				}
			}
		}
		m := d.machine.(*robustMachine)
		levels, _, word, ok := m.loops.judged(m)
		if ok != (c.want != "") || word != c.want {
			t.Fatalf("%s: judged by %q, %v", name, word, ok)
		}
		for i, level := range levels {
			if level != float64(200+i) {
				t.Errorf("%s: level %d is %v", name, i, level)
			}
		}
	}
}

// Values that no device can report change nothing, and no input causes a panic.
func TestCollectedLevelsHostile(t *testing.T) {
	for _, policy := range []string{PolicyRobust, PolicyArticle} {
		p := DefaultPolicy()
		p.Name = policy
		d := New(p)
		for _, at := range []time.Duration{-1 << 62, 0, time.Hour, 1<<63 - 1} {
			d.AddCollected(Sample{At: at, Bytes: 1})
			d.AddSample(Sample{At: time.Minute, Bytes: MB})
			d.AddCollected(Sample{At: at, Bytes: -1})
			d.AddCollected(Sample{At: at, Bytes: 1 << 62})
		}
		d.Restart(2 * time.Minute)
		d.AddCollected(Sample{At: time.Minute, Bytes: MB})
		_ = d.Verdict()
	}
}
