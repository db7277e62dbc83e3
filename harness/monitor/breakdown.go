package monitor

import (
	"time"

	"github.com/leakgate/leakgate/capture/dumpsys"
	"github.com/leakgate/leakgate/capture/field"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// number is a value for samples.ndjson: nil where it is unknown.
func number(v field.Value) *int64 {
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

// breakdownOf is a breakdown of samples.ndjson as the detector takes it.
func breakdownOf(b record.Breakdown, at time.Duration) detector.Breakdown {
	out := detector.Breakdown{
		At:  at,
		EGL: amount(b.EGL), GL: amount(b.GL), OtherMtrack: amount(b.OtherMtrack), GfxDev: amount(b.GfxDev),
	}
	out.Dim = [detector.NumDimensions]detector.Amount{
		detector.JavaHeap:     amount(b.JavaHeap),
		detector.NativeHeap:   amount(b.NativeHeap),
		detector.Code:         amount(b.Code),
		detector.Stack:        amount(b.Stack),
		detector.Graphics:     amount(b.Graphics),
		detector.PrivateOther: amount(b.PrivateOther),
		detector.System:       amount(b.System),
		detector.Total:        amount(b.TotalPSS),
	}
	return out
}

func amount(kb *int64) detector.Amount {
	if kb == nil || *kb < 0 || *kb > maxBytes>>10 {
		return detector.Amount{}
	}
	return detector.Amount{Bytes: *kb << 10, Known: true}
}
