package trend

import (
	"math"
	"testing"
)

// These are quantiles of Student's t as printed in the tables (one-sided p).
var studentTable = []struct{ p, df, want float64 }{
	{0.975, 1, 12.706}, {0.975, 2, 4.303}, {0.975, 3, 3.182}, {0.975, 5, 2.571}, {0.975, 8, 2.306},
	{0.975, 10, 2.228}, {0.975, 20, 2.086}, {0.975, 30, 2.042}, {0.975, 60, 2.000}, {0.975, 120, 1.980},
	{0.95, 1, 6.314}, {0.95, 4, 2.132}, {0.95, 10, 1.812}, {0.95, 30, 1.697},
	{0.9995, 1, 636.619}, {0.9995, 5, 6.869}, {0.9995, 10, 4.587}, {0.9995, 60, 3.460},
	{0.75, 1, 1.000}, {0.75, 10, 0.700}, {0.90, 7, 1.415}, {0.99, 15, 2.602}, {0.975, 1e7, 1.960},
}

func TestStudentTable(t *testing.T) {
	for _, tt := range studentTable {
		if got := StudentQuantile(tt.p, tt.df); math.Abs(got-tt.want) > 0.0006 {
			t.Errorf("StudentQuantile(%v, %v) = %.4f, want %v", tt.p, tt.df, got, tt.want)
		}
		if got := StudentQuantile(1-tt.p, tt.df); math.Abs(got+tt.want) > 0.0006 {
			t.Errorf("StudentQuantile(%v, %v) = %.4f, want %v", 1-tt.p, tt.df, got, -tt.want)
		}
	}
}

// integrated computes the CDF by integrating the density with Simpson's rule.
func integrated(t, df float64) float64 {
	a, _ := math.Lgamma((df + 1) / 2)
	b, _ := math.Lgamma(df / 2)
	c := math.Exp(a-b) / math.Sqrt(df*math.Pi)
	density := func(x float64) float64 { return c * math.Pow(1+x*x/df, -(df+1)/2) }
	const steps = 4000
	h := t / steps
	sum := density(0) + density(t)
	for i := 1; i < steps; i++ {
		sum += density(float64(i)*h) * float64(2+2*(i%2))
	}
	return 0.5 + sum*h/3
}

func TestStudentCDFAgainstIntegration(t *testing.T) {
	for _, df := range []float64{1, 2, 3, 8, 13, 58, 238} {
		for x := -6.0; x <= 6; x += 0.37 {
			got, want := StudentCDF(x, df), integrated(x, df)
			if math.Abs(got-want) > 1e-10 {
				t.Errorf("StudentCDF(%v, %v) = %v, want %v", x, df, got, want)
			}
		}
	}
}

func TestStudentRoundTrip(t *testing.T) {
	for _, df := range []float64{1, 2, 8, 58, 238} {
		for _, p := range []float64{1e-6, 0.01, 0.3, 0.5, 0.8, 0.975, 0.9999} {
			if got := StudentCDF(StudentQuantile(p, df), df); math.Abs(got-p) > 1e-11 {
				t.Errorf("df %v: CDF(Quantile(%v)) = %v", df, p, got)
			}
		}
	}
	for _, tt := range []struct{ got, want float64 }{
		{StudentCDF(math.Inf(1), 3), 1}, {StudentCDF(math.Inf(-1), 3), 0}, {StudentCDF(0, 3), 0.5},
		{StudentCDF(1e200, 3), 1}, {StudentCDF(-1e200, 3), 0}, {NormalCDF(0), 0.5},
	} {
		if tt.got != tt.want {
			t.Errorf("got %v, want %v", tt.got, tt.want)
		}
	}
	if math.Abs(NormalCDF(1.959964)-0.975) > 1e-6 {
		t.Errorf("NormalCDF(1.96) = %v", NormalCDF(1.959964))
	}
	for _, v := range []float64{
		StudentCDF(math.NaN(), 3), StudentCDF(1, 0), StudentQuantile(0, 3), StudentQuantile(1, 3),
		StudentQuantile(0.3, -1),
	} {
		if !math.IsNaN(v) {
			t.Errorf("got %v, want NaN", v)
		}
	}
}
