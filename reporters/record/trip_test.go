package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The documentation page of the format lists every field of a trip.
func TestTripPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/trip.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []any{Trip{}, TripMeasure{}} {
		names := ownNames(reflect.TypeOf(of))
		for name := range names {
			if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), "`"+name+"[]`") {
				t.Errorf("%T: no field %s", of, name)
			}
		}
		if len(names) < 9 {
			t.Errorf("%T has %d fields", of, len(names))
		}
	}
	for _, word := range []string{
		TripSchema, TripStoppedQuiet, TripStoppedLoops, TripStoppedInterrupted, TripStoppedLoop, TripStoppedRestart,
		TripStoppedGone, TripStoppedUnread, UnitKB, UnitCount,
	} {
		if !strings.Contains(string(page), "`"+word+"`") {
			t.Errorf("no %s", word)
		}
	}
}

// A trip is decoded as it was encoded, with null for unknown values.
func TestWriteTrip(t *testing.T) {
	trip := Trip{
		Schema: TripSchema, Process: "com.shop", Verdict: VerdictLeak, Growing: []Finding{}, Warnings: []string{},
		Measures: []TripMeasure{
			{
				Name: "threads", Unit: UnitCount, PerLoop: new(1.0), Interval: []float64{0.9, 1.1},
				Values: []*float64{new(20.0), nil, new(22.0)}, Grows: true, Verdict: VerdictLeak,
			},
			{Name: "heap", Unit: UnitCount, Values: []*float64{}, Verdict: VerdictNotChecked},
		}}
	dir := t.TempDir()
	if err := WriteTrip(dir, trip); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, TripName))
	if err != nil {
		t.Fatal(err)
	}
	var again Trip
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, trip) {
		t.Errorf("%+v, %v", again, err)
	}
	for _, want := range []string{
		`"per_loop": null`, `"interval_per_loop": null`, `"smallest_found_per_loop": null`,
		"20,\n        null,\n        22",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if err := WriteTrip(filepath.Join(dir, "missing"), trip); err == nil {
		t.Error("a trip was written into a directory that does not exist")
	}
}
