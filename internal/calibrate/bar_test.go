package main

import (
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/scenario"
)

// TestBars checks which figures meet a bar, which miss it, and which need more
// runs to be decided.
func TestBars(t *testing.T) {
	tests := map[string]struct {
		call          func(b *bars)
		strict, loose bool // whether the bar is missed
	}{
		"exactly the maximum":    {func(b *bars) { b.most("x", 30, 2000, 1.5) }, false, false},
		"slightly too many":      {func(b *bars) { b.most("x", 31, 2000, 1.5) }, true, false},
		"far too many":           {func(b *bars) { b.most("x", 100, 2000, 1.5) }, true, true},
		"few runs":               {func(b *bars) { b.most("x", 2, 20, 1.5) }, true, false},
		"few runs, far too many": {func(b *bars) { b.most("x", 6, 20, 1.5) }, true, true},
		"one, maximum of zero":   {func(b *bars) { b.most("x", 1, 2000, 0) }, true, true},
		"no runs, maximum":       {func(b *bars) { b.most("x", 0, 0, 1.5) }, false, false},
		"exactly the minimum":    {func(b *bars) { b.least("x", 285, 300, 95) }, false, false},
		"slightly too few":       {func(b *bars) { b.least("x", 284, 300, 95) }, true, false},
		"far too few":            {func(b *bars) { b.least("x", 200, 300, 95) }, true, true},
		"no runs, minimum":       {func(b *bars) { b.least("x", 0, 0, 95) }, true, true},
		"in time":                {func(b *bars) { b.soon("x", 30, 30) }, false, false},
		"late":                   {func(b *bars) { b.soon("x", 31, 30) }, true, false},
		"much too late":          {func(b *bars) { b.soon("x", 61, 30) }, true, true},
		"never":                  {func(b *bars) { b.soon("x", never, 30) }, true, true},
	}
	for name, tt := range tests {
		for _, loose := range []bool{false, true} {
			b := bars{loose: loose, at: "table, row"}
			tt.call(&b)
			want := tt.strict
			if loose {
				want = tt.loose
			}
			if (len(b.missed) > 0) != want {
				t.Errorf("%s, loose %v: %q", name, loose, b.missed)
			}
			for _, m := range b.missed {
				if !strings.HasPrefix(m, "table, row: x") {
					t.Errorf("%s: %q", name, m)
				}
			}
		}
	}
}

// Every bar must name an existing row: if a row with its own bar were renamed,
// the general bar would silently apply to it.
func TestNightBarsHaveRows(t *testing.T) {
	rows := map[string]bool{}
	for _, n := range scenario.Nights() {
		rows[n.Name] = true
	}
	for name := range nightBars {
		if !rows[name] {
			t.Errorf("the table has no row %q", name)
		}
	}
}

// TestPrototype checks that the figures of the prototype belong to existing
// rows, and that every row without a leak has such a figure.
func TestPrototype(t *testing.T) {
	null := map[string]bool{}
	for _, s := range scenario.Null(whole) {
		null[s.Name] = true
		if _, ok := prototypeAlarms[s.Name]; !ok {
			t.Errorf("the prototype has no figure for %q", s.Name)
		}
	}
	leaks := map[string]bool{}
	for _, s := range append(scenario.Leaks(0, whole), scenario.Leaks(onset, 10)...) {
		leaks[s.Name] = true
	}
	check := func(name string, known map[string]bool) {
		if !known[name] {
			t.Errorf("the table has no row %q", name)
		}
	}
	for name := range prototypeAlarms {
		check(name, null)
	}
	for name := range undecidable {
		check(name, null)
	}
	for name, l := range prototypeFinds {
		check(name, leaks)
		if l.p50 > l.p90 || l.p50 < 15 {
			t.Errorf("%s: %v", name, l)
		}
	}
	for name := range prototypeLate {
		check(name, leaks)
	}
	check(foundSlowly, leaks)
	check(lateBarRow, leaks)
	for name, want := range map[string]float64{
		"iid s5": 0.5, "AR 0.97 s20": 2.7, "warm-up 150 tau 120": 100, "realistic": 0.5, "realistic 2": 5,
	} {
		for _, s := range scenario.Null(whole) {
			if s.Name == name && liveBar(s) != want {
				t.Errorf("%s: live bar %g, want %g", name, liveBar(s), want)
			}
		}
	}
}
