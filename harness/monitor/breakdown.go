package monitor

import (
	"github.com/leakgate/leakgate/capture/dumpsys"
	"github.com/leakgate/leakgate/capture/procfs"
	"github.com/leakgate/leakgate/reporters"
)

// kb is a value for samples.ndjson: nil where it is unknown.
func kb(v procfs.Value) *int64 {
	if !v.Known {
		return nil
	}
	return new(v.N)
}

// breakdown is a block of dumpsys meminfo for samples.ndjson.
func breakdown(b dumpsys.Block) *reporters.Breakdown {
	at := func(v dumpsys.Value) *int64 {
		if !v.Known {
			return nil
		}
		return new(v.N)
	}
	// As in `parse meminfo`: without shares, the plain swap stands here and
	// swap_in_total is false.
	swap := b.SwapPss
	if !swap.Known {
		swap = b.Swap
	}
	return &reporters.Breakdown{
		TotalPSS: at(b.TotalPss), SwapPSS: at(swap), SwapInTotal: told(b.SwapInTotal), RSS: at(b.TotalRss),
		JavaHeap: at(b.JavaHeap), NativeHeap: at(b.NativeHeap), Code: at(b.Code), Stack: at(b.Stack),
		Graphics: at(b.Graphics), PrivateOther: at(b.PrivateOther), System: at(b.System),
		EGL: at(b.EGLMtrack), GL: at(b.GLMtrack), OtherMtrack: at(b.OtherMtrack),
		GfxDev: at(b.GfxDev), OtherDev: at(b.OtherDev),
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
