package ledger

import (
	"cmp"
	"slices"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// growth records the memory of each process of an app over time, in at most
// maxCells cells of equal length. It is used to determine which process caused
// the growth of the sum.
type growth struct {
	// from is the t_s at which the first cell begins; width is the length of
	// each cell in seconds.
	from, width float64
	// sums holds, for each cell, how many sums of the app were added to it.
	sums []float64
}

const (
	maxCells  = 64
	firstCell = 300
)

// add adds the value of each living process to the cell for the time t.
func (g *growth) add(t float64, members []*member) {
	if g.width == 0 {
		g.from, g.width = t, firstCell
	}
	if t < g.from {
		return
	}
	for t-g.from >= g.width*maxCells {
		g.width *= 2
		g.sums = paired(g.sums)
		for _, m := range members {
			m.cells = paired(m.cells)
		}
	}
	i := int((t - g.from) / g.width)
	g.sums = addAt(g.sums, i, 1)
	for _, m := range members {
		if m.live {
			m.cells = addAt(m.cells, i, float64(m.bytes)/detector.MB)
		}
	}
}

// addAt adds x to element i of a list, which is extended as needed.
func addAt(list []float64, i int, x float64) []float64 {
	for len(list) <= i {
		list = append(list, 0)
	}
	list[i] += x
	return list
}

// paired merges each pair of adjacent cells into one cell and returns the
// shorter list. A last cell without a partner is kept.
func paired(list []float64) []float64 {
	for i := range (len(list) + 1) / 2 {
		cell := list[2*i]
		if 2*i+1 < len(list) {
			cell += list[2*i+1]
		}
		list[i] = cell
	}
	return list[:(len(list)+1)/2]
}

// mean returns the mean contribution of a process to the sums of cells from to
// to-1, in MB.
func (g *growth) mean(cells []float64, from, to int) float64 {
	n, total := 0.0, 0.0
	for i := from; i < to; i++ {
		n += g.sums[i]
		if i < len(cells) {
			total += cells[i]
		}
	}
	return total / max(n, 1)
}

// maxShares is the maximum number of processes of an app whose growth is
// listed.
const maxShares = 20

// since returns the growth of each process after a time of the run, the largest
// first. grown is the total growth of all processes, and born is the part of
// grown that is due to processes that started after that time. Growth is the
// difference between the means of the last and the first third of the period.
// With too few sums, the list is empty and the totals are 0.
func (x *AppSum) since(t float64) (list []record.ProcessGrowth, grown, born float64) {
	g := &x.growth
	if g.width == 0 {
		return nil, 0, 0
	}
	from, to := max(0, int((t-g.from)/g.width)), len(g.sums)
	third := (to - from) / 3
	if third == 0 {
		return nil, 0, 0
	}
	risen := 0.0
	for _, m := range x.members {
		before := g.mean(m.cells, from, from+third)
		by := g.mean(m.cells, to-third, to) - before
		grown += by
		risen += max(by, 0)
		if m.since >= t {
			born += max(0, min(by, float64(m.early)/detector.MB-before))
		}
		if by = record.Round(by, 2); by != 0 {
			list = append(list, record.ProcessGrowth{Process: m.Key().Name, Growth: by})
		}
	}
	for i := range list {
		if risen > 0 && list[i].Growth > 0 {
			list[i].Share = record.Round(list[i].Growth/risen, 4)
		}
	}
	slices.SortStableFunc(list, func(a, b record.ProcessGrowth) int { return cmp.Compare(b.Growth, a.Growth) })
	return list[:min(len(list), maxShares)], grown, born
}
