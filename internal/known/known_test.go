package known

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

func TestUnknownIsNotZero(t *testing.T) {
	if (Int{}).Known || Of(0) == (Int{}) || OfDuration(0) == (Duration{}) {
		t.Error("unknown equals zero")
	}
	if Of(-7) != (Int{N: -7, Known: true}) || OfDuration(time.Second).N != time.Second {
		t.Error("a known number differs from its argument")
	}
}

func TestJSON(t *testing.T) {
	text, err := json.Marshal(map[string]any{
		"duration": OfDuration(time.Second), "least": Of(math.MinInt64), "unknown": Int{N: 7}, "zero": Of(0),
	})
	if want := `{"duration":1000000000,"least":-9223372036854775808,"unknown":null,"zero":0}`; err != nil ||
		string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
}
