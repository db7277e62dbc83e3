package gatecalibrate

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

// These are the bars, in percent: the share of pairs of one build that may
// fail, and the share of changes under a script that must be reported.
const (
	mostFailed    = 1
	leastReported = 95
)

// tally counts pairs by their results.
type tally struct{ pairs, failed, rejected, reported int }

func (t *tally) add(p *pair) {
	t.pairs++
	t.failed += count(p.failed)
	t.rejected += count(p.rejected)
	t.reported += count(p.reported)
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sum returns the tally of the selected pairs.
func sum(pairs []*pair, want func(*pair) bool) (t tally) {
	for _, p := range pairs {
		if want(p) {
			t.add(p)
		}
	}
	return t
}

func percent(hits, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g %%", 100*float64(hits)/float64(of))
}

// ofAll formats a count with its share.
func ofAll(hits, of int) string { return fmt.Sprintf("%d (%s)", hits, percent(hits, of)) }

// upper returns the one-sided upper bound of a rate with 95 % confidence
// (Clopper and Pearson, Biometrika 26, 1934).
func upper(hits, of int) float64 {
	low, high := 0.0, 1.0
	for range 60 {
		if mid := (low + high) / 2; atMost(hits, of, mid) > 0.05 {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// atMost returns the probability of at most the given number of hits.
func atMost(hits, of int, p float64) (sum float64) {
	for k := range hits + 1 {
		a, _ := math.Lgamma(float64(of + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(of - k + 1))
		sum += math.Exp(a - b - c + float64(k)*math.Log(p) + float64(of-k)*math.Log1p(-p))
	}
	return sum
}

// markdown returns a Markdown table with the given rows.
func markdown(rows ...[]string) string {
	var out strings.Builder
	for i, cells := range rows {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			fmt.Fprintf(&out, "|%s\n", strings.Repeat("---|", len(cells)))
		}
	}
	return out.String()
}

// unchanged returns the table of the pairs of one build.
func unchanged(pairs []*pair) string {
	rows := [][]string{{"program", "workload", "dumps", "pairs", "failed", "failed under the rejected rule"}}
	row := func(t tally, cells ...string) {
		rows = append(rows, append(cells, fmt.Sprint(t.pairs), ofAll(t.failed, t.pairs), ofAll(t.rejected, t.pairs)))
	}
	for _, c := range cells() {
		if t := sum(pairs, func(p *pair) bool { return p.head.change == nothing && p.head.cell == c }); t.pairs > 0 {
			row(t, c.program, c.workload(), c.dumps())
		}
	}
	all := sum(pairs, func(p *pair) bool { return p.head.change == nothing })
	row(all, "**all**", "", "")
	return fmt.Sprintf("%s\nOf %d pairs, %d fail; with 95 %% confidence the rate is below %.2g %%.\n",
		markdown(rows...),
		all.pairs, all.failed, 100*upper(all.failed, all.pairs))
}

// byBase returns the table of the pairs of one build by their number of base
// runs and the length of the head.
func byBase(pairs []*pair) string {
	rows := [][]string{{"base runs", "head", "pairs", "failed", "failed under the rejected rule"}}
	for _, n := range baseSizes {
		for _, long := range []bool{false, true} {
			t := sum(pairs,
				func(p *pair) bool { return p.head.change == nothing && len(p.base) == n && p.head.long == long })
			length := map[bool]string{false: "as long as the base", true: "1.5 times as long"}[long]
			rows = append(rows,
				[]string{
					fmt.Sprint(n), length, fmt.Sprint(t.pairs), ofAll(t.failed, t.pairs), ofAll(t.rejected, t.pairs),
				})
		}
	}
	return markdown(rows...)
}

// changed returns the table of the pairs whose builds differ.
func changed(pairs []*pair) string {
	rows := [][]string{{"difference", "status", "workload", "pairs", "reported", "by settled dumps", "by dumps in use"}}
	for _, by := range changes() {
		for _, monkey := range []bool{false, true} {
			of := func(inUse ...bool) tally {
				return sum(pairs, func(p *pair) bool {
					return p.head.change == by && p.head.monkey == monkey &&
						(len(inUse) == 0 || p.head.inUse == inUse[0])
				})
			}
			all, settled, used := of(), of(false), of(true)
			if by == tripled && !monkey {
				continue
			}
			part := func(t tally) string { return fmt.Sprintf("%d of %d", t.reported, t.pairs) }
			rows = append(rows, []string{
				builds[by], "`" + string(wanted[by]) + "`", cell{monkey: monkey}.workload(), fmt.Sprint(all.pairs),
				ofAll(all.reported, all.pairs), part(settled), part(used),
			})
		}
	}
	return markdown(rows...)
}

// missed returns the bars that the pairs do not meet.
func missed(pairs []*pair) (out []string) {
	if t := sum(pairs, func(p *pair) bool { return p.head.change == nothing }); t.pairs == 0 ||
		100*t.failed > mostFailed*t.pairs {
		out = append(out,
			fmt.Sprintf("%d of %d pairs of one build fail, want at most %d %%", t.failed, t.pairs, mostFailed))
	}
	for _, by := range []change{newLeak, oneMore, heavier} {
		t := sum(pairs, func(p *pair) bool { return p.head.change == by && !p.head.monkey })
		if t.pairs == 0 || 100*t.reported < leastReported*t.pairs {
			out = append(out,
				fmt.Sprintf("%s: %d of %d reported, want at least %d %%", builds[by], t.reported, t.pairs,
					leastReported))
		}
	}
	return out
}

// replace replaces the text between two markers of a page, each of which must
// occur once.
func replace(page []byte, name, text string) ([]byte, error) {
	from, to := fmt.Appendf(nil, "<!-- gatecalibrate:%s -->\n", name),
		fmt.Appendf(nil, "<!-- /gatecalibrate:%s -->", name)
	head, rest, begins := bytes.Cut(page, from)
	_, tail, ends := bytes.Cut(rest, to)
	if !begins || !ends || bytes.Contains(tail, from) || bytes.Contains(tail, to) {
		return nil, fmt.Errorf("find %q and %q: each must occur once", from, to)
	}
	return bytes.Join([][]byte{head, from, []byte(text), to, tail}, nil), nil
}
