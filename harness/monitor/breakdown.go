package monitor

import (
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/known"
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
		GfxDev: number(b.GfxDev), OtherDev: number(b.OtherDev),
	}
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
