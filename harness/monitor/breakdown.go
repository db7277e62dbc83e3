package monitor

import (
	"github.com/leakgate/leakgate/capture/dumpsys"
	"github.com/leakgate/leakgate/capture/field"
	"github.com/leakgate/leakgate/reporters"
)

// kb is a value for samples.ndjson: nil where it is unknown.
func kb(v field.Value) *int64 {
	if !v.Known {
		return nil
	}
	return new(v.N)
}

// breakdown is a block of dumpsys meminfo for samples.ndjson.
func breakdown(b dumpsys.Block) *reporters.Breakdown {
	// As in `parse meminfo`: without shares, the plain swap stands here and
	// swap_in_total is false.
	swap := b.SwapPss
	if !swap.Known {
		swap = b.Swap
	}
	return &reporters.Breakdown{
		TotalPSS: kb(b.TotalPss), SwapPSS: kb(swap), SwapInTotal: told(b.SwapInTotal), RSS: kb(b.TotalRss),
		JavaHeap: kb(b.JavaHeap), NativeHeap: kb(b.NativeHeap), Code: kb(b.Code), Stack: kb(b.Stack),
		Graphics: kb(b.Graphics), PrivateOther: kb(b.PrivateOther), System: kb(b.System),
		EGL: kb(b.EGLMtrack), GL: kb(b.GLMtrack), OtherMtrack: kb(b.OtherMtrack),
		GfxDev: kb(b.GfxDev), OtherDev: kb(b.OtherDev),
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
