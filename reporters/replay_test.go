package reporters

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// The looks must be printed below their process. For each series, one line
// counts the looks and lists the reasons why some do not fire. In a sequence of
// firing looks, the first ones have separate lines, and the later ones share a
// line. The look that ends the sequence has its own line.
func TestWriteReplayLooks(t *testing.T) {
	var out strings.Builder
	looks := []record.ReplayLook{
		{T: 300, Series: "memory", Text: "memory: needs at least 15 min of data"},
		{T: 900, Series: "memory", Text: "memory over 15 min does not grow enough"},
		{T: 900, Series: "Java Heap", Text: "Java Heap over 2.0 h does not grow enough"},
	}
	for i := range 8 {
		looks = append(looks,
			record.ReplayLook{
				T: 1200 + 300*float64(i), Series: "memory", Fired: i != 6,
				Text: fmt.Sprintf("memory over 15 min: %d MB: %s", i,
					map[bool]string{true: "fires", false: "levels off"}[i != 6]),
			})
	}
	looks = append(looks,
		record.ReplayLook{T: 1500, Series: "Java Heap", Fired: true, Text: "Java Heap over 60 min: fires"})
	r := record.Replay{Policy: "robust", Processes: []record.ReplayProcess{{
		Process: record.Process{
			Process: "com.shop", State: detector.Normal, Worst: detector.Normal, Gate: "pass", Reason: "nothing grows",
			Warnings: []string{"line 3: no value"},
		},
		Looks: looks,
	}}, Warnings: []string{"x.csv: line 4: no name"}}
	if err := WriteReplay(&out, r); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "\n\n")
	want := `com.shop: PASS: nothing grows
  looks    memory: 10, 7 fire; the others: does not grow enough (1), levels off (1), needs at least 15 min of data (1)
  looks    Java Heap: 2, 1 fire; the others: does not grow enough (1)
  look     20m      FIRES memory over 15 min: 0 MB: fires
  look     25m      FIRES memory over 15 min: 1 MB: fires
  look     25m      FIRES Java Heap over 60 min: fires
  look     30m      FIRES memory over 15 min: 2 MB: fires
  look     35m      FIRES 3 in a row until 45m; the last: memory over 15 min: 5 MB: fires
  look     50m      -     memory over 15 min: 6 MB: levels off
  look     55m      FIRES memory over 15 min: 7 MB: fires
  warning: line 3: no value
warning: x.csv: line 4: no name
judged by policy robust
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	// However often looks start and stop firing, the report must stay short and
	// refer to --json.
	var page page
	looks = nil
	for i := range 1000 {
		looks = append(looks, record.ReplayLook{Series: "memory", Fired: i%2 == 0, Text: "\x1b[2J"})
	}
	page.looks(looks)
	if n := strings.Count(page.text.String(), "\n"); n != 1+maxLookLines+1 ||
		strings.Contains(page.text.String(), "\x1b") ||
		!strings.Contains(page.text.String(),
			fmt.Sprintf("%d more lines; use --json to list all looks", 1000-maxLookLines)) {
		t.Errorf("%d lines:\n%.500s", n, page.text.String())
	}
}
