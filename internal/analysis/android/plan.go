package android

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// topic is one part of a survey. It requests the records of objects; a plan
// reads the records of all topics together, level by level.
type topic interface {
	// families returns the families of objects that the topic needs.
	families() []*heap.Family
	// begin requests the first records. It is called once the families have
	// been filled.
	begin(p *plan)
	// visit receives a requested record, with the tag and number of the
	// request. New requests belong to the next level. A large array is
	// delivered in several records.
	visit(p *plan, r *heap.Record, tag uint8, number uint32)
	// advance is called at the end of a level.
	advance(p *plan)
	// finish stores the result. It is called once all earlier topics of the
	// plan have been finished.
	finish(p *plan)
}

// request identifies an object whose record a topic needs; tag and number are
// passed to the topic's visit method.
type request struct {
	object heap.Object
	number uint32
	topic  uint8
	tag    uint8
}

// plan reads the records that its topics request.
type plan struct {
	graph   *heap.Graph
	options Options
	topics  []topic
	texts   *texts
	// current is the topic whose method is being called; requests holds the
	// requests for the next level.
	current  uint8
	requests []request
	// metadata and threads are topics whose results other topics use.
	metadata *metadataTopic
	threads  *threadsTopic
}

// deepest is the maximum number of levels that a plan reads. Topics need at
// most four levels; a malformed dump could cause requests for more.
const deepest = 8

func newPlan(g *heap.Graph, o Options) *plan {
	p := &plan{graph: g, options: o.withDefaults(), texts: newTexts(g)}
	p.add(p.texts)
	return p
}

func (p *plan) add(t topic) { p.topics = append(p.topics, t) }

// ask requests the record of an object.
func (p *plan) ask(o heap.Object, tag uint8, number int) {
	p.requests = append(p.requests, request{o, uint32(number), p.current, tag})
}

// each calls f with each topic, after making it the current one.
func (p *plan) each(f func(topic)) {
	for i, t := range p.topics {
		p.current = uint8(i)
		f(t)
	}
}

// run reads levels until no topic makes further requests, or until it has read
// the maximum number, deepest. It then finishes the topics.
func (p *plan) run(ctx context.Context) error {
	var families []*heap.Family
	p.each(func(t topic) { families = append(families, t.families()...) })
	p.graph.Gather(families...)
	p.each(func(t topic) { t.begin(p) })
	for range deepest {
		if len(p.requests) == 0 {
			break
		}
		if err := p.level(ctx); err != nil {
			return fmt.Errorf("read the objects of a topic: %w", err)
		}
		p.each(func(t topic) { t.advance(p) })
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.each(func(t topic) { t.finish(p) })
	return nil
}

// level reads the requested records and passes them to the topics.
func (p *plan) level(ctx context.Context) error {
	a := newAgenda(p.requests, p.graph.Objects)
	p.requests = nil
	return p.graph.Read(ctx, a.objects, func(r *heap.Record) error {
		for _, q := range a.of(r.Object) {
			p.current = q.topic
			p.topics[q.topic].visit(p, r, q.tag, q.number)
		}
		return nil
	})
}

// agenda finds the requests for an object. A bitmap marks the objects with
// requests. The number of bits set before an object determines where its
// requests are.
type agenda struct {
	bits     []uint64
	sums     []uint32
	starts   []uint32
	requests []request
	objects  []heap.Object
}

func newAgenda(requests []request, objects int64) *agenda {
	a := &agenda{bits: make([]uint64, (objects+63)/64), requests: make([]request, len(requests))}
	for _, q := range requests {
		a.bits[q.object>>6] |= 1 << (q.object & 63)
	}
	a.sums = make([]uint32, len(a.bits))
	count := uint32(0)
	for i, w := range a.bits {
		a.sums[i] = count
		count += uint32(bits.OnesCount64(w))
		for ; w != 0; w &= w - 1 {
			a.objects = append(a.objects, heap.Object(i<<6|bits.TrailingZeros64(w)))
		}
	}
	a.starts = make([]uint32, count+1)
	for _, q := range requests {
		a.starts[a.rank(q.object)+1]++
	}
	for i := range count {
		a.starts[i+1] += a.starts[i]
	}
	next := append([]uint32(nil), a.starts...)
	for _, q := range requests {
		at := &next[a.rank(q.object)]
		a.requests[*at] = q
		*at++
	}
	return a
}

func (a *agenda) rank(o heap.Object) uint32 {
	return a.sums[o>>6] + uint32(bits.OnesCount64(a.bits[o>>6]&(1<<(o&63)-1)))
}

func (a *agenda) of(o heap.Object) []request {
	r := a.rank(o)
	return a.requests[a.starts[r]:a.starts[r+1]]
}
