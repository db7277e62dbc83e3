package capture

// bytesOf returns the memory that a reading reports, in bytes.
func bytesOf(r Reading) int64 {
	if r.Level.Source == Status {
		return (r.RSSAnon.N + r.Swap.N) << 10
	}
	return (r.PSS.N + r.SwapPSS.N) << 10
}
