package trace_test

import (
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// ballast returns a dump of about a million objects of all kinds.
func ballast(tb testing.TB) []byte {
	tb.Helper()
	h := hproftest.Java(1)
	h.Fill(hproftest.Ballast{Bytes: 50 << 20, Seed: 1})
	dump, _, err := h.Dump(hproftest.Form{})
	if err != nil {
		tb.Fatal(err)
	}
	return dump
}

// BenchmarkSearch searches a whole heap of a million objects. Limits on two
// cores: one microsecond per object, and no more memory per object than
// documented for Search.
func BenchmarkSearch(b *testing.B) {
	g, out, err := opened(b.Context(), ballast(b))
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	defer out.Close()
	targets := g.Exactly("ballast.Row")[:100]
	each := func(b *testing.B, o trace.Options, do func(*trace.Search)) {
		b.ReportAllocs()
		start := time.Now()
		for range b.N {
			r := trace.NewReader(g, out, known())
			s, err := trace.Find(b.Context(), r, targets, o)
			if err != nil {
				b.Fatal(err)
			}
			do(s)
			s.Close()
		}
		b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N)/float64(g.Objects), "ns/object")
	}
	b.Run("outbound", func(b *testing.B) {
		b.ReportAllocs()
		start := time.Now()
		for range b.N {
			out, err := g.Outbound(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			out.Close()
		}
		b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N)/float64(g.Objects), "ns/object")
	})
	b.Run("find", func(b *testing.B) { each(b, trace.Options{}, func(*trace.Search) {}) })
	b.Run("leaks", func(b *testing.B) {
		each(b, trace.Options{}, func(s *trace.Search) {
			if _, err := s.Leaks(b.Context(), silent); err != nil {
				b.Fatal(err)
			}
		})
	})
	all := g.Exactly("java.util.HashMap$Node")
	b.Run("tree", func(b *testing.B) {
		each(b, trace.Options{Through: true}, func(s *trace.Search) {
			if _, err := s.Tree(b.Context(), all); err != nil {
				b.Fatal(err)
			}
		})
		b.ReportMetric(float64(len(all)), "targets")
	})
	_ = heap.Object(0)
}
