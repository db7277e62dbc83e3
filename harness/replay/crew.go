package replay

import (
	"runtime"
	"sync"
	"time"

	"github.com/leakgate/leakgate/detector"
)

// input is one thing that a judge hears.
type input struct {
	judge     *judge
	kind      kind
	at        time.Duration
	bytes     int64
	breakdown detector.Breakdown
	text      string
}

type kind uint8

const (
	isSample kind = iota
	isBreakdown
	isRestart
	isGap
	isMark
)

// crew runs the judges of a table while it is read: each judge belongs to one
// worker, which hears its inputs in their order.
type crew struct {
	workers []*worker
	done    sync.WaitGroup
	free    chan []input
	hired   int
}

type worker struct {
	queue chan []input
	batch []input
}

const (
	// batchSize is how many inputs go to a worker at once, maxQueued how many
	// batches wait for one.
	batchSize = 256
	maxQueued = 4
)

func newCrew() *crew {
	n := runtime.GOMAXPROCS(0)
	c := &crew{free: make(chan []input, n*(maxQueued+2))}
	for range n {
		w := &worker{queue: make(chan []input, maxQueued)}
		c.workers = append(c.workers, w)
		c.done.Go(func() {
			for batch := range w.queue {
				for i := range batch {
					batch[i].judge.hear(&batch[i])
				}
				clear(batch)
				select {
				case c.free <- batch[:0]:
				default:
				}
			}
		})
	}
	return c
}

// hire gives a judge its worker.
func (c *crew) hire() *worker {
	w := c.workers[c.hired%len(c.workers)]
	c.hired++
	return w
}

// next is the place for the next input of a worker.
func (c *crew) next(w *worker) *input {
	if len(w.batch) == cap(w.batch) {
		c.send(w)
		select {
		case w.batch = <-c.free:
		default:
			w.batch = make([]input, 0, batchSize)
		}
	}
	w.batch = w.batch[:len(w.batch)+1]
	return &w.batch[len(w.batch)-1]
}

func (c *crew) send(w *worker) {
	if len(w.batch) > 0 {
		w.queue <- w.batch
	}
	w.batch = nil
}

// finish waits until everything is heard.
func (c *crew) finish() {
	for _, w := range c.workers {
		c.send(w)
		close(w.queue)
	}
	c.done.Wait()
}
