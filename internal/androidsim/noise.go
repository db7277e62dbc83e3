package androidsim

import (
	"hash/fnv"
	"math"
	"time"
)

// mix applies the finalizer of splitmix64 (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, 2014) to a stream and an index: each number
// of a stream can be computed independently of the others.
func mix(stream, index uint64) uint64 {
	z := stream + (index+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// hashText returns the stream for the given name.
func hashText(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return h.Sum64()
}

// uniform returns the number at index of the stream, uniform in [0, 1).
func uniform(stream uint64, index int64) float64 {
	return float64(mix(stream, uint64(index))>>11) / (1 << 53)
}

// normal returns the standard normal number at index (Box and Muller).
func normal(stream uint64, index int64) float64 {
	u := 1 - uniform(stream, 2*index)
	v := uniform(stream, 2*index+1)
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}

const (
	// noiseGrid is how long one value of the noise lasts.
	noiseGrid = 15 * time.Second
	// rhoLag is the time between two values to which Noise's rho applies.
	rhoLag = 30 * time.Second
	// maxTaps bounds the cost of computing a value if rho is close to 1.
	maxTaps = 4096
)

// autoregression is a stationary AR(1) series on a grid, with unit variance. It
// is computed as a moving average, x[i] = sum of phi^k e[i-k], so x[i] can be
// computed for any i, in any order and without state. The truncated terms
// contribute less than a millionth of the variance unless phi is above 0.9983.
type autoregression struct {
	weights []float64
}

func newAutoregression(rho float64) autoregression {
	phi := math.Pow(math.Min(math.Max(rho, 0), 0.9999), float64(noiseGrid)/float64(rhoLag))
	var weights []float64
	sum := 0.0
	for w := 1.0; len(weights) < maxTaps && w > 1e-3*math.Sqrt(1-phi*phi); w *= phi {
		weights = append(weights, w)
		sum += w * w
	}
	for i := range weights {
		weights[i] /= math.Sqrt(sum)
	}
	return autoregression{weights}
}

func (a autoregression) at(stream uint64, i int64) float64 {
	x := 0.0
	for k, w := range a.weights {
		x += w * normal(stream, i-int64(k))
	}
	return x
}
