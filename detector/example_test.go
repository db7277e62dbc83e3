package detector_test

import (
	"fmt"
	"time"

	"github.com/leakgate/leakgate/detector"
)

// A process grows by 300 MB an hour for four hours. The caller adds samples
// with the device's clock, prints the transitions as they happen and reads the
// verdict at the end.
func ExampleDetector() {
	d := detector.New(detector.DefaultPolicy())
	for at := time.Duration(0); at <= 4*time.Hour; at += d.Demand().Interval {
		grown := int64(at.Hours() * 300 * detector.MB)
		for _, step := range d.AddSample(detector.Sample{At: time.Minute + at, Bytes: 200*detector.MB + grown}) {
			fmt.Println(step.From, "to", step.To)
		}
	}
	v := d.Verdict()
	fmt.Printf("%s: %.0f MB/h\n", v.Gate, v.Rate/detector.MB)
	// Output:
	// NORMAL to SUSPICIOUS
	// SUSPICIOUS to CONFIRMING
	// CONFIRMING to LEAKING
	// leak: 300 MB/h
}
