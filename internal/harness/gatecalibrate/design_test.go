package gatecalibrate

// size is the number of runs of each cell in a calibration.
type size struct {
	// usual is the number of runs of the unchanged build that are compared with
	// each other. long is the number of longer runs (one and a half times as
	// long), which are compared with the usual ones.
	usual, long int
	// changed is the number of runs of each changed build.
	changed int
}

var (
	// jvmSize and phoneSize result in 300 pairs of one build and, for the
	// script and for monkey, in 40 pairs of each change.
	jvmSize   = size{usual: 14, long: 6, changed: 5}
	phoneSize = size{usual: 11, long: 4, changed: 5}
)

func sizeOf(c cell) size {
	if c.program == phone {
		return phoneSize
	}
	return jvmSize
}

// cells returns every combination of a program, a workload, and an app that is
// idle or in use at its dumps.
func cells() (out []cell) {
	for _, program := range []string{shop, reader, chat, phone} {
		for _, monkey := range []bool{false, true} {
			for _, inUse := range []bool{false, true} {
				out = append(out, cell{program, monkey, inUse})
			}
		}
	}
	return out
}

// plan contains the runs of a calibration and the pairs formed from them.
type plan struct {
	trials []*trial
	pairs  []*pair
	seed   uint64
}

// baseSizes lists the numbers of base runs with which a run is compared; they
// are used in turn.
var baseSizes = []int{1, 3, 10}

// add adds the runs and pairs of a cell. Every pair has a different head.
func (p *plan) add(c cell, n size) {
	usual := p.runs(c, nothing, false, n.usual)
	for i, head := range usual {
		p.pair(head, usual, i+1, baseSizes[i%len(baseSizes)])
	}
	for i, head := range p.runs(c, nothing, true, n.long) {
		p.pair(head, usual, 2*i, baseSizes[i%len(baseSizes)])
	}
	for _, by := range changes() {
		if by == tripled && !c.monkey {
			continue // with a script, even one more object per loop is detected
		}
		sizes := baseSizes
		if by != newLeak {
			sizes = sizes[1:] // with fewer than three base runs, only a new leak fails
		}
		for i, head := range p.runs(c, by, false, n.changed) {
			p.pair(head, usual, 3*i, sizes[i%len(sizes)])
		}
	}
}

// runs adds the given number of runs of a build.
func (p *plan) runs(c cell, by change, long bool, n int) (out []*trial) {
	for range n {
		p.seed++
		out = append(out, &trial{cell: c, change: by, long: long, seed: p.seed})
	}
	p.trials = append(p.trials, out...)
	return out
}

// pair compares a run with up to n of the other runs, beginning at the given
// index and skipping the run itself.
func (p *plan) pair(head *trial, others []*trial, from, n int) {
	made := &pair{head: head}
	for i := range others {
		if b := others[(from+i)%len(others)]; b != head && len(made.base) < n {
			made.base = append(made.base, b)
		}
	}
	p.pairs = append(p.pairs, made)
}
