package replay

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// night generates the memory of many processes, with the given number of
// samples each, 30 s apart, and passes the samples to f in time order. Every
// tenth process leaks.
func night(processes, samples int, f func(process int, t float64, kb int64)) {
	r := rand.New(rand.NewPCG(7, 7))
	for i := range samples {
		for p := range processes {
			kb := 200_000 + r.Int64N(8000)
			if p%10 == 0 {
				kb += int64(i) * 400
			}
			f(p, float64(i)*30, kb)
		}
	}
}

func nightTable(processes, samples int) []byte {
	var b bytes.Buffer
	b.WriteString("t_s,process,pid,pss_kb,swap_pss_kb\n")
	night(processes, samples, func(p int, t float64, kb int64) {
		fmt.Fprintf(&b, "%.2f,com.shop:p%d,%d,%d,0\n", t, p, 1000+p, kb)
	})
	return b.Bytes()
}

func nightLines(processes, samples int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b,
		`{"schema":%q,"started":"2026-01-02T03:04:05Z","devices":[{"device":"S1","model":"m","api":34,"started_up_s":1000,"time_scale":1}],`+articlePlan+"}\n", record.SamplesSchema)
	night(processes, samples, func(p int, t float64, kb int64) {
		fmt.Fprintf(&b,
			`{"t_s":%g,"up_s":%g,"device":"S1","user":0,"process":"com.shop:p%d","pid":%d,"start":4567,"source":"smaps_rollup","pss_kb":%d,"swap_pss_kb":0,"rss_anon_kb":123456,"swap_kb":0,"threads":30,"cost_ms":6.25}`+"\n",
			t, 1000+t, p, 1000+p, kb)
	})
	return b.Bytes()
}

// BenchmarkReplay judges a night of a thousand processes.
func BenchmarkReplay(b *testing.B) {
	const processes, samples = 1000, 960
	for _, policy := range []detector.Policy{detector.RobustPolicy(), detector.ArticlePolicy()} {
		for form, text := range map[string][]byte{
			"csv": nightTable(processes, samples), "ndjson": nightLines(processes, samples),
		} {
			b.Run(policy.Name+"/"+form, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					r, err := Run(b.Context(), []string{"-"}, Options{Policy: policy, Stdin: bytes.NewReader(text)})
					if err != nil || len(r.Processes) != processes {
						b.Fatalf("%d processes, %v", len(r.Processes), err)
					}
				}
				b.ReportMetric(float64(processes*samples*b.N)/b.Elapsed().Seconds(), "samples/s")
			})
		}
	}
}

// This measures the reader alone, for comparison. Reporters read a run line by
// line in the same way.
func BenchmarkReadSamples(b *testing.B) {
	text := nightLines(100, 960)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := record.ReadSamples(bytes.NewReader(text),
			record.Lines{Sample: func(record.Sample) error { return nil }}); err != nil {
			b.Fatal(err)
		}
	}
}
