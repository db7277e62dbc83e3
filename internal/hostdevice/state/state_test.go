package state

import (
	"math"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/capture/procfs"
)

func TestClock(t *testing.T) {
	for _, scale := range []float64{0.5, 1, 20, 10000} {
		c := Clock{Base: 1000 * time.Second, Scale: scale}
		if got := c.At(c.Base); got != c.Base {
			t.Errorf("scale %g: device time at the start is %v, want %v", scale, got, c.Base)
		}
		span := 30 * time.Second
		if got, want := c.At(c.Base+span)-c.Base, time.Duration(float64(span)*scale); got != want {
			t.Errorf("scale %g: %v in %v, want %v", scale, got, span, want)
		}
		if got := c.Real(c.At(c.Base+span) - c.Base); (got - span).Abs() > time.Microsecond {
			t.Errorf("scale %g: converted back to %v, want %v", scale, got, span)
		}
	}
}

func TestClockFile(t *testing.T) {
	dir := Dir(t.TempDir())
	if _, err := dir.Clock(); err == nil {
		t.Error("reading a missing clock succeeded")
	}
	for _, c := range []Clock{{123456789 * time.Nanosecond, 20}, {0, 1.0 / 3}, {math.MaxInt64, 10000}} {
		if err := dir.WriteClock(c); err != nil {
			t.Fatal(err)
		}
		if got, err := dir.Clock(); got != c || err != nil {
			t.Errorf("read %+v, %v; want %+v", got, err, c)
		}
	}
}

func TestUptime(t *testing.T) {
	for up, want := range map[time.Duration]string{
		0:                          "0.00 0.00\n",
		1234567 * time.Millisecond: "1234.56 1234.56\n",
		50 * time.Millisecond:      "0.05 0.05\n",
		400 * 24 * time.Hour:       "34560000.00 34560000.00\n",
	} {
		if got := Uptime(up); got != want {
			t.Errorf("%v: %q, want %q", up, got, want)
		}
		if got, err := procfs.ParseUptime([]byte(Uptime(up))); err != nil || up-got < 0 ||
			up-got >= 10*time.Millisecond {
			t.Errorf("%v was parsed as %v, %v", up, got, err)
		}
	}
}

func TestProperties(t *testing.T) {
	dir := Dir(t.TempDir())
	list := []Property{{"a.b", "x=y z"}, {"empty", ""}}
	if err := dir.WriteProperties(list); err != nil {
		t.Fatal(err)
	}
	for _, p := range append(list, Property{"unknown", ""}) {
		if got, err := dir.Property(p.Key); got != p.Value || err != nil {
			t.Errorf("%s = %q, %v; want %q", p.Key, got, err, p.Value)
		}
	}
	for _, bad := range []Property{{"a\nb", "c"}, {"a=b", "c"}, {"a", "b\nc=d"}} {
		if err := dir.WriteProperties([]Property{bad}); err == nil {
			t.Errorf("%q was written", bad)
		}
	}
}
