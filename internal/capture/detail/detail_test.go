package detail

import (
	"math"
	"testing"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/known"
)

func TestJavaHeapUse(t *testing.T) {
	block := dumpsys.Block{
		Rows: []dumpsys.Row{
			{Name: "Native Heap", HeapAlloc: known.Of(1)}, {Name: "Dalvik Heap", HeapAlloc: known.Of(2048)},
		},
	}
	if got := JavaHeapUse(block); got != known.Of(2<<20) {
		t.Errorf("%v", got)
	}
	for _, n := range []known.Int{{}, known.Of(-1), known.Of(math.MaxInt64)} {
		block.Rows[1].HeapAlloc = n
		if got := JavaHeapUse(block); got.Known {
			t.Errorf("%v: %v", n, got)
		}
	}
	if got := JavaHeapUse(dumpsys.Block{}); got.Known {
		t.Errorf("%v", got)
	}
}
