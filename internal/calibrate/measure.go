package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// progressEvery is the time between two lines of progress.
const progressEvery = 5 * time.Second

// job is one run of one row.
type job struct {
	table string
	row   *row
	i     int
}

// seedNames converts the name of a row to the name under which the row was
// first measured, so that a better name does not change the figures.
var seedNames = strings.NewReplacer("restart every ", "restart each ", "one every ", "one in ", "gaps of ", "holes of ",
	"min every hour", "min each hour", ", every 60 to", ", each 60 to", "trimmed every hour", "trimmed each hour",
	"starting at 4 h", "from 4 h on", " MB per loop", " MB a loop", "at any time", "anywhere",
	"one per hour", "one in 1 h", "1 step of", "1 steps of", "every tenth ", "each tenth ", "a sample every ",
	"a sample each ")

// source returns the random numbers of one run of a row.
func source(seed uint64, table, row string, i int) *rand.Rand {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s\x00%d", seed, table, seedNames.Replace(row), i))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])))
}

// measure executes all runs of all rows with the given number of workers.
func measure(tables []table, seed uint64, workers int, stderr io.Writer) {
	now := time.Now()
	p := progress{to: stderr, began: now, printed: now}
	for _, t := range tables {
		for _, r := range t.rows {
			p.all += float64(r.runs) * r.hours
		}
	}
	jobs := make(chan job, 2*workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for j := range jobs {
				j.row.one(j.i, source(seed, j.table, j.row.name, j.i))
			}
		})
	}
	for _, t := range tables {
		for k := range t.rows {
			r := &t.rows[k]
			for i := range r.runs {
				jobs <- job{table: t.name, row: r, i: i}
				p.step(r.hours, t.name, r.name)
			}
		}
	}
	close(jobs)
	wg.Wait()
}

// progress prints how much has been done.
type progress struct {
	to             io.Writer
	began, printed time.Time
	// done and all are in hours of simulated time.
	done, all float64
}

func (p *progress) step(hours float64, table, row string) {
	p.done += hours
	now := time.Now()
	if now.Sub(p.printed) < progressEvery {
		return
	}
	p.printed = now
	left := time.Duration(float64(now.Sub(p.began)) * (p.all - p.done) / p.done)
	fmt.Fprintf(p.to, "calibrate: %3.0f %%, %v left, at %s, %s\n", 100*p.done/p.all, left.Round(time.Second), table,
		row)
}
