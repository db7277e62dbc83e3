package monitor

import (
	"maps"
	"slices"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// number is a value for samples.ndjson: nil where it is unknown.
func number(v known.Int) *int64 {
	if !v.Known {
		return nil
	}
	return new(v.N)
}

// breakdown is a block of dumpsys meminfo for samples.ndjson.
func breakdown(b dumpsys.Block) *record.Breakdown {
	return &record.Breakdown{
		TotalPSS: number(b.TotalPss), SwapPSS: number(b.AnySwap()), SwapInTotal: told(b.SwapInTotal), RSS: number(b.TotalRss),
		JavaHeap: number(b.JavaHeap), NativeHeap: number(b.NativeHeap), Code: number(b.Code), Stack: number(b.Stack),
		Graphics: number(b.Graphics), PrivateOther: number(b.PrivateOther), System: number(b.System),
		EGL: number(b.EGLMtrack), GL: number(b.GLMtrack), OtherMtrack: number(b.OtherMtrack),
		GfxDev: number(b.GfxDev), OtherDev: number(b.OtherDev), Objects: objects(b.Objects),
	}
}

const (
	// maxObjects bounds the kinds of objects that a line has, maxObjectName their names in
	// characters; Android has about fifteen.
	maxObjects    = 40
	maxObjectName = 40
)

// objects are the counts of a block, with printable names.
func objects(counts map[string]int64) map[string]int64 {
	if len(counts) == 0 {
		return nil
	}
	out := map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if len(out) < maxObjects {
			out[text.Head(name, maxObjectName)] = counts[name]
		}
	}
	return out
}

// told is a tri-state answer: nil where it is unknown.
func told(a dumpsys.Answer) *bool {
	switch a {
	case dumpsys.Yes:
		return new(true)
	case dumpsys.No:
		return new(false)
	}
	return nil
}
