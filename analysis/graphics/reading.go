package graphics

// Value is a number that a phone may not say. The zero Value is unknown.
type Value struct {
	N     int64 `json:"n"`
	Known bool  `json:"known"`
}

// Known is a number that a phone said.
func Known(n int64) Value { return Value{N: n, Known: true} }

// most is what no phone has: a pebibyte, in bytes.
const most = 1 << 50

// times is the number in another unit; unknown if it is none that a phone can have.
func (v Value) times(n int64) Value {
	if !v.Known || v.N < 0 || v.N > most/n {
		return Value{}
	}
	return Known(v.N * n)
}

// Source is where a number comes from.
type Source string

// The sources.
const (
	Meminfo        Source = "dumpsys meminfo"
	Gfxinfo        Source = "dumpsys gfxinfo"
	GPU            Source = "dumpsys gpu"
	SurfaceFlinger Source = "dumpsys SurfaceFlinger"
)

// Buffer is one graphic buffer of SurfaceFlinger's list.
type Buffer struct {
	// Layer is who asked for it; empty before Android 8.
	Layer string
	KB    Value
}

// Reading is the graphics memory of a process at one moment.
type Reading struct {
	// Rows of meminfo. Android leaves out rows of zeros: whoever read a whole table knows
	// that they are 0.
	EGLMtrackKB, GLMtrackKB, OtherMtrackKB, GfxDevKB Value
	// CacheBytes are the caches of the renderer, GrallocKB the buffers that the process
	// has mapped, AllocatorKB those that it allocated, all of gfxinfo.
	CacheBytes             Value
	GrallocKB, AllocatorKB Value
	Views, ViewRoots       Value
	// GPUBytes is what the driver counts for the process, in dumpsys gpu.
	GPUBytes Value
	// Buffers are those of all processes that SurfaceFlinger knows, or of some;
	// BuffersRead tells that the list was read and is whole.
	Buffers     []Buffer
	BuffersRead bool
	// Why says of a source what kept it from being read.
	Why map[Source]string
}

// quantity is one number of a reading.
type quantity struct {
	source Source
	name   string
	unit   Unit
	value  func(r *Reading) Value
}

var quantities = []quantity{
	{Meminfo, "EGL mtrack", Bytes, func(r *Reading) Value { return r.EGLMtrackKB.times(1024) }},
	{Meminfo, "GL mtrack", Bytes, func(r *Reading) Value { return r.GLMtrackKB.times(1024) }},
	{Meminfo, "Other mtrack", Bytes, func(r *Reading) Value { return r.OtherMtrackKB.times(1024) }},
	{Meminfo, "Gfx dev", Bytes, func(r *Reading) Value { return r.GfxDevKB.times(1024) }},
	{Gfxinfo, "caches of the renderer", Bytes, func(r *Reading) Value { return r.CacheBytes.times(1) }},
	{Gfxinfo, "buffers imported by gralloc", Bytes, func(r *Reading) Value { return r.GrallocKB.times(1024) }},
	{Gfxinfo, "buffers allocated by the process", Bytes, func(r *Reading) Value { return r.AllocatorKB.times(1024) }},
	{Gfxinfo, "views", Count, func(r *Reading) Value { return r.Views.times(1) }},
	{Gfxinfo, "windows", Count, func(r *Reading) Value { return r.ViewRoots.times(1) }},
	{GPU, "memory of the process on the GPU", Bytes, func(r *Reading) Value { return r.GPUBytes.times(1) }},
	{SurfaceFlinger, "buffers", Bytes, func(r *Reading) Value { return r.buffers() }},
}

// buffers is the sum of all buffers, unknown if one of them is.
func (r *Reading) buffers() Value {
	if !r.BuffersRead {
		return Value{}
	}
	var sum pile
	for _, b := range r.Buffers {
		sum.add(b.KB)
	}
	return sum.size()
}
