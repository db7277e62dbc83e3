package monitor

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// number converts a value for samples.ndjson; the result is nil if the value is
// unknown.
func number(v known.Int) *int64 {
	if !v.Known {
		return nil
	}
	return new(v.N)
}

// breakdown converts a block of dumpsys meminfo for samples.ndjson. Values that
// are negative or exceed the device's memory and swap are omitted and reported
// as warnings.
func breakdown(b dumpsys.Block, memTotalKB int64) (out *record.Breakdown, warnings []string) {
	memory, swap := procfs.Bounds(memTotalKB)
	most := memory + swap // TOTAL includes swapped memory if dumpsys prints it
	number := func(name string, kb known.Int) *int64 {
		if kb.Known && (kb.N < 0 || kb.N > most) {
			warnings = append(warnings,
				fmt.Sprintf("%s: %d kB exceeds the %d kB that a process can have on this device", name, kb.N, most))
			return nil
		}
		return number(kb)
	}
	return &record.Breakdown{
		TotalPSS: number("TOTAL PSS", b.TotalPss), SwapPSS: number("TOTAL SWAP PSS", b.AnySwap()),
		SwapInTotal: triState(b.SwapInTotal), RSS: number("TOTAL RSS", b.TotalRss),
		JavaHeap: number("Java Heap", b.JavaHeap), NativeHeap: number("Native Heap", b.NativeHeap),
		Code: number("Code", b.Code), Stack: number("Stack", b.Stack),
		Graphics: number("Graphics", b.Graphics), PrivateOther: number("Private Other", b.PrivateOther),
		System: number("System", b.System),
		EGL:    number("EGL mtrack", b.EGLMtrack), GL: number("GL mtrack", b.GLMtrack),
		OtherMtrack: number("Other mtrack", b.OtherMtrack),
		GfxDev:      number("Gfx dev", b.GfxDev), OtherDev: number("Other dev", b.OtherDev),
		Objects: objects(b.Objects),
	}, warnings
}

const (
	// maxObjects bounds the number of kinds of objects in a line; maxObjectName
	// bounds the length of their names in characters. dumpsys meminfo prints
	// about fifteen kinds.
	maxObjects    = 40
	maxObjectName = 40
)

// objects returns the object counts of a block of dumpsys meminfo, with
// printable names.
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

// triState converts an answer to a pointer to a bool, or to nil if the answer
// is unknown.
func triState(a dumpsys.Answer) *bool {
	switch a {
	case dumpsys.Yes:
		return new(true)
	case dumpsys.No:
		return new(false)
	}
	return nil
}
