package detector_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/known"
)

// attack adds bytes to a detector as inputs in any order, and checks the
// invariants after each.
type attack struct {
	d            *detector.Detector
	at           time.Duration
	level        int64
	state, worst detector.State
	looks        int
	// old reports whether a reading was added that is not newer than an earlier
	// one; impossible reports whether a sample of impossible size was added. In
	// both cases, the verdict must contain a warning.
	old, impossible bool
}

func newAttack() *attack {
	a := &attack{d: detector.New(detector.RobustPolicy()), level: 200 * detector.MB}
	a.d.OnLook(func(detector.Look) { a.looks++ })
	return a
}

// inputBytes is the number of bytes of one input.
const inputBytes = 4

// input adds one input, encoded in 4 bytes: its kind, the time since the
// previous input, and a number.
func (a *attack) input(data []byte) []detector.Transition {
	op, step, n := data[0], data[1], binary.LittleEndian.Uint16(data[2:])
	a.at += time.Duration(step) * 500 * time.Millisecond
	a.level += int64(int16(n)) * 40
	switch op % 32 {
	case 0, 1, 2, 3, 4, 5, 6, 7:
		return a.d.AddBreakdown(a.breakdown(op, n))
	case 8:
		a.at -= time.Duration(n) * time.Second
		return a.d.Restart(a.at)
	case 9:
		return a.d.Gap(a.at)
	case 10:
		return a.d.ChangeQuantity(a.at)
	case 11:
		return a.d.DiagnosisFinished(a.at - time.Duration(int16(n))*time.Second)
	case 12, 13:
		a.d.AddMark(detector.Mark{
			At:   a.at + time.Duration(int16(n))*time.Second,
			Text: [...]string{"loop 1", "gc", "LOOP 2", "", "7", "other \xff\x1b[2J", strings.Repeat("ä", 100)}[n%7],
		})
		return nil
	case 14:
		a.at += time.Duration(n) * time.Minute
		return nil
	case 15:
		return a.far(op, n)
	case 16:
		a.impossible = true
		return a.d.AddSample(detector.Sample{
			At: a.at, Bytes: [...]int64{0, -1, math.MinInt64, math.MaxInt64, 1<<50 + 1}[n%5],
		})
	case 17:
		a.old = true
		a.d.AddSample(detector.Sample{At: a.at, Bytes: 1 + int64(n)})
		return a.d.AddSample(detector.Sample{At: a.at - time.Duration(n), Bytes: 1 + int64(n)})
	case 18:
		a.d.SetFamilySize([...]int{-5, 0, 1, 100, math.MaxInt32}[n%5])
		return nil
	}
	return a.d.AddSample(detector.Sample{At: a.at, Bytes: max(1, a.level)})
}

// far adds readings with extreme times.
func (a *attack) far(op byte, n uint16) []detector.Transition {
	at := [...]time.Duration{
		math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, -1, 1 << 62, a.at + 1000*time.Hour, a.at + 100000*time.Hour,
	}[n%7]
	switch n / 7 % 6 {
	case 0:
		return a.d.AddSample(detector.Sample{At: at, Bytes: a.level})
	case 1:
		b := a.breakdown(op, n)
		b.At = at
		return a.d.AddBreakdown(b)
	case 2:
		return a.d.Gap(at)
	case 3:
		a.d.AddMark(detector.Mark{At: at, Text: "loop"})
		return nil
	case 4:
		return a.d.ChangeQuantity(at)
	}
	return a.d.Restart(at)
}

func (a *attack) breakdown(op byte, n uint16) detector.Breakdown {
	amount := func(i int, bytes int64) detector.Amount {
		switch {
		case op/32 == 7:
			return known.Of([...]int64{math.MaxInt64, math.MinInt64, -1, 0, 1 << 50, 1 << 62}[(int(n)+i)%6])
		case n>>i&1 == 0:
			return known.Of(bytes)
		}
		return detector.Amount{}
	}
	b := detector.Breakdown{
		At: a.at, EGL: amount(8, int64(n)<<12), GL: amount(9, int64(n)), OtherMtrack: amount(10, 1<<20),
		GfxDev: amount(11, a.level/9),
	}
	for i := range b.Dim {
		b.Dim[i] = amount(i, a.level/int64(i+1))
	}
	return b
}

// after checks the invariants that hold after any input.
func (a *attack) after(steps []detector.Transition) error {
	for _, step := range steps {
		if err := arrowFault(step, a.state); err != nil {
			return err
		}
		a.state, a.worst = step.To, max(a.worst, step.To)
	}
	return demandFault(a.d.Demand(), a.state)
}

// end compares the verdict with the transitions, and checks that reading the
// verdict changes nothing.
func (a *attack) end() error {
	v := a.d.Verdict()
	if v.State != a.state || v.Worst != a.worst {
		return fmt.Errorf("verdict %v %v, want %v %v", v.State, v.Worst, a.state, a.worst)
	}
	if w := a.d.Verdict(); !reflect.DeepEqual(v, w) {
		return fmt.Errorf("verdict %+v, then %+v", v, w)
	}
	text := warningText(v)
	if a.impossible && !ignoredValues.MatchString(text) || a.old && !ignoredReadings.MatchString(text) {
		return errors.New("no warning about ignored inputs: " + text)
	}
	against, err := a.d.CompareTo(a.d)
	return errors.Join(err, verdictFault(v), verdictFault(against))
}

// FuzzRobust adds any inputs in any order, at any times. It checks that each
// input causes a bounded number of looks, that every transition is in the
// diagram and that every number is finite.
func FuzzRobust(f *testing.F) {
	r := rand.New(rand.NewPCG(4, 4))
	f.Add([]byte{})
	for range 12 {
		data := make([]byte, 6000)
		for i := range data {
			data[i] = byte(r.IntN(256))
		}
		f.Add(data)
	}
	// This seed is a leak, a restart in LEAKING, and then extreme times.
	var leak []byte
	for range 400 {
		leak = append(leak, 31, 60, 0xff, 0x7f)
	}
	f.Add(append(leak, 8, 0, 0, 0, 31, 60, 0, 0, 15, 0, 0, 0, 15, 0, 1, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		a := newAttack()
		for n := 0; len(data) >= inputBytes && n < 1<<14; n++ {
			before := a.looks
			if err := a.after(a.input(data)); err != nil {
				t.Fatal(err)
			}
			// MaxGap is 45 min, so one input causes about 10 looks at each of 5
			// series; the limit is twice that.
			if a.looks-before > 50*2 {
				t.Fatalf("one input caused %d looks, want at most 100", a.looks-before)
			}
			data = data[inputBytes:]
			if n%500 == 0 {
				if err := a.end(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestClockJumpCost checks that a jump of the clock, however large, causes at
// most as many looks as MaxGap allows.
func TestClockJumpCost(t *testing.T) {
	for _, by := range []time.Duration{
		29 * time.Minute, time.Hour, 30 * 24 * time.Hour, 100 * 365 * 24 * time.Hour,
		math.MaxInt64 - bootTime - 27*time.Minute,
	} {
		for name, leap := range map[string]func(d *detector.Detector, at time.Duration){
			"sample": func(d *detector.Detector, at time.Duration) {
				d.AddSample(detector.Sample{At: at, Bytes: detector.MB})
			},
			"breakdown": func(d *detector.Detector, at time.Duration) { d.AddBreakdown(wholeReading(at, 200)) },
			"mark": func(d *detector.Detector, at time.Duration) {
				d.AddMark(detector.Mark{At: at, Text: "loop 1"})
			},
			"gap":       func(d *detector.Detector, at time.Duration) { d.Gap(at) },
			"change":    func(d *detector.Detector, at time.Duration) { d.ChangeQuantity(at) },
			"restart":   func(d *detector.Detector, at time.Duration) { d.Restart(at) },
			"diagnosis": func(d *detector.Detector, at time.Duration) { d.DiagnosisFinished(at) },
		} {
			l := newLeaker()
			l.grow(26 * time.Minute)
			looks := 0
			l.d.OnLook(func(detector.Look) { looks++ })
			leap(l.d, l.at+by)
			v := l.d.Verdict()
			if err := verdictFault(v); err != nil || looks > 35 || v.Worst != detector.Leaking {
				t.Errorf("%s %v later: %d looks, %v", name, by, looks, err)
			}
			reading := name == "sample" || name == "breakdown"
			if broken := reading || name == "change" || name == "restart"; by > 30*time.Minute &&
				broken != (v.State == detector.Normal) {
				t.Errorf("%s %v later: %v", name, by, v.State)
			}
		}
	}
}

// TestImplausibleNumbers checks that a breakdown with implausible numbers is
// not evidence, and that the verdict reports that these numbers are missing.
func TestImplausibleNumbers(t *testing.T) {
	for _, bytes := range []int64{-1, math.MinInt64, 1<<50 + 1, 1 << 62, math.MaxInt64} {
		for name, set := range map[string]func(b *detector.Breakdown){
			"Java Heap":    func(b *detector.Breakdown) { b.Dim[detector.JavaHeap] = known.Of(bytes) },
			"Graphics":     func(b *detector.Breakdown) { b.Dim[detector.Graphics] = known.Of(bytes) },
			"Total":        func(b *detector.Breakdown) { b.Dim[detector.Total] = known.Of(bytes) },
			"EGL":          func(b *detector.Breakdown) { b.EGL = known.Of(bytes) },
			"Other mtrack": func(b *detector.Breakdown) { b.OtherMtrack = known.Of(bytes) },
			"all rows": func(b *detector.Breakdown) {
				b.EGL, b.GL, b.OtherMtrack, b.GfxDev = known.Of(bytes), known.Of(bytes), known.Of(bytes),
					known.Of(bytes)
			},
		} {
			d := detector.New(detector.RobustPolicy())
			r := rand.New(rand.NewPCG(5, 6))
			var steps []detector.Transition
			for i := range 480 {
				at := bootTime + time.Duration(i)*30*time.Second
				if i%3 == 0 {
					b := wholeReading(at, 200)
					if i == 240 {
						set(&b)
					}
					steps = append(steps, d.AddBreakdown(b)...)
				}
				steps = append(steps,
					d.AddSample(detector.Sample{At: at, Bytes: 200*detector.MB + r.Int64N(5*detector.MB)})...)
			}
			v := d.Verdict()
			if err := verdictFault(v); err != nil || v.Gate != detector.Pass || len(steps) > 0 {
				t.Errorf("%s of %d bytes in one breakdown: %v %v %v: %s", name, bytes, v.Gate, steps, err, v.Because)
			}
			if used := name != "Graphics" && name != "Total"; used && len(v.Warnings) == 0 {
				t.Errorf("%s of %d bytes in one breakdown: no warning", name, bytes)
			}
		}
	}
}

// TestFamilySizeBounds checks that any number of processes may be judged
// together.
func TestFamilySizeBounds(t *testing.T) {
	for _, n := range []int{math.MinInt, 0, 1, 1 << 20, math.MaxInt32, math.MaxInt} {
		l := newLeaker()
		l.d.SetFamilySize(n)
		for range 3 {
			l.grow(50 * time.Minute)
			l.d.Restart(l.at)
		}
		if v := l.d.Verdict(); verdictFault(v) != nil || v.Gate != detector.Leak && n <= 1<<20 {
			t.Errorf("among %d: %v %v", n, v.Gate, verdictFault(v))
		}
	}
}

// TestLoopMarksWithDigits checks that marks that differ only in their digits
// begin the loops of one series, whatever else they contain, and that a mark
// from the future causes no error.
func TestLoopMarksWithDigits(t *testing.T) {
	for name, text := range map[string]func(i int) string{
		"loop 1":                 func(i int) string { return fmt.Sprintf("loop %d", i) },
		"1":                      func(i int) string { return fmt.Sprint(i) },
		"one mark in the future": func(i int) string { return "loop" },
	} {
		d := detector.New(detector.RobustPolicy())
		r := rand.New(rand.NewPCG(7, 8))
		for i := range 960 {
			at := bootTime + time.Duration(i)*30*time.Second
			d.AddSample(detector.Sample{
				At: at, Bytes: 200*detector.MB + int64(i)*detector.MB + r.Int64N(5*detector.MB),
			})
			if i == 100 && name == "one mark in the future" {
				d.AddMark(detector.Mark{At: at + 1000*time.Hour, Text: "loop"})
			}
			if i%20 == 1 {
				d.AddMark(detector.Mark{At: at, Text: text(i)})
			}
		}
		if v := d.Verdict(); v.Gate != detector.Leak || !strings.Contains(v.Because, "judged by loops") {
			t.Errorf("%s: %v: %s", name, v.Gate, v.Because)
		}
	}
}

var (
	ignoredValues   = regexp.MustCompile(`1 value ignored|values ignored`)
	ignoredReadings = regexp.MustCompile(`1 reading ignored|readings ignored`)
)
