package footprint

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"

	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/recorded"
)

// recordedMappings reads smaps in the simplest way.
func recordedMappings(tb testing.TB, file string) (list []Mapping) {
	tb.Helper()
	for line := range bytes.Lines(recorded.Read(tb, "device", file)) {
		fields := bytes.Fields(line)
		name, ok := bytes.CutSuffix(fields[0], []byte(":"))
		if !ok {
			var x Mapping
			if _, err := fmt.Sscanf(string(fields[0]), "%x-%x", &x.Start, &x.End); err != nil {
				tb.Fatal(err)
			}
			copy(x.Perms[:], fields[1])
			if len(fields) > 5 {
				x.Name = bytes.TrimSpace(line[bytes.Index(line, append([]byte(" "), fields[5]...)):])
			}
			list = append(list, x)
			continue
		}
		n, err := strconv.ParseInt(string(fields[min(1, len(fields)-1)]), 10, 64)
		if err != nil {
			continue
		}
		x := &list[len(list)-1]
		switch string(name) {
		case "Pss":
			x.PSS = known.Of(n)
		case "SwapPss":
			x.SwapPSS = known.Of(n)
		case "Size":
			x.Size = known.Of(n)
		case "Private_Dirty":
			x.PrivateDirty = known.Of(n)
		}
	}
	return list
}

// This checks the totals of real files against those recorded in their
// MANIFEST.
func TestRecordedTotals(t *testing.T) {
	for file, want := range map[string]Sum{
		"api36-memorylab-smaps.txt.gz":           {Mappings: 4068, PSS: 282363, SwapPSS: 162, PrivateDirty: 238524},
		"api29-x86_64-systemserver-smaps.txt.gz": {Mappings: 2760, PSS: 108384},
		"api29-x86_64-smaps_short.txt":           {Mappings: 6, PSS: 19119},
	} {
		m := mapOf(recordedMappings(t, file)...)
		got := m.total()
		got.Size = 0
		if want.PrivateDirty == 0 {
			got.PrivateDirty = 0
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", file, got, want)
		}
		g := CompareMaps(NewMap(), m)
		checkSums(t, g)
		if g.Total.After != m.total() {
			t.Errorf("%s: %+v", file, g.Total)
		}
	}
}

// The totals by kind are those that dumpsys meminfo printed for the same
// process in the same minute (api36-memorylab-meminfo-d.txt): Native Heap,
// Stack, and Gfx dev with Other dev; /dmabuf is Other mmap in that output.
func TestRecordedKinds(t *testing.T) {
	g := CompareMaps(NewMap(), mapOf(recordedMappings(t, "api36-memorylab-smaps.txt.gz")...))
	pss := map[Kind]int64{}
	for _, k := range g.Kinds {
		pss[k.Kind] = k.After.PSS
	}
	for _, r := range g.Rows {
		if r.Name == "/dmabuf:" {
			pss[r.Kind] -= r.After.PSS
		}
	}
	// All processes share the system properties, so the share of this process
	// changes by one kB within a minute.
	if other := pss[Device] - 1908 - 460; pss[Heap] != 80860 || pss[Stack] != 2072 || other < -1 || other > 1 {
		t.Errorf("%v", pss)
	}
}
