package detector

import (
	"testing"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

// line returns the line of a dimension with the given growth in MB and the
// given t.
func line(growth, t float64) trend.Line {
	return trend.Line{N: 10, Span: 3600, Slope: growth * MB / 3600, SE: 1, T: t}
}

func TestKind(t *testing.T) {
	type dims map[Dimension]trend.Line
	tests := map[string]struct {
		dims dims
		want LeakKind
	}{
		"java":                          {dims{JavaHeap: line(100, 5)}, Java},
		"native":                        {dims{NativeHeap: line(100, 5), Total: line(101, 9)}, Native},
		"thread":                        {dims{Stack: line(30, 5), System: line(90, 40)}, Thread},
		"gpu":                           {dims{Graphics: line(100, 5), Code: line(5, 1.9)}, GPU},
		"private other":                 {dims{PrivateOther: line(100, 5)}, Unknown},
		"java with slight code growth":  {dims{JavaHeap: line(100, 5), Code: line(2, 9)}, Java},
		"java with slight stack growth": {dims{JavaHeap: line(100, 5), Stack: line(2, 9)}, Java},
		"equal java and native":         {dims{JavaHeap: line(100, 5), NativeHeap: line(100, 5)}, Unknown},
		"three": {
			dims{JavaHeap: line(45, 5), NativeHeap: line(30, 6), Graphics: line(25, 7)}, Unknown,
		},
		"only total":  {dims{Total: line(100, 9)}, Unknown},
		"only system": {dims{System: line(100, 9)}, Unknown},
		"nothing":     {dims{JavaHeap: line(100, 2)}, Unknown},
	}
	for name, tt := range tests {
		var r rises
		for d, l := range tt.dims {
			r[d] = rise{line: l, significant: l.T > 2}
		}
		if got, why := r.kind(); got != tt.want || why == "" {
			t.Errorf("%s: %v (%s), want %v", name, got, why, tt.want)
		}
	}
}
