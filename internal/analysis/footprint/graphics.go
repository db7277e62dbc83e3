package footprint

import "github.com/leakgate/leakgate/internal/known"

// maxBytes is a pebibyte, in bytes: more than any phone has.
const maxBytes = 1 << 50

// times multiplies a number, to convert it to another unit; the result is
// unknown if it is larger than any phone can have.
func times(v known.Int, n int64) known.Int {
	if !v.Known || v.N < 0 || v.N > maxBytes/n {
		return known.Int{}
	}
	return known.Of(v.N * n)
}

// Channel is the command from which a number was read.
type Channel string

// The commands.
const (
	Meminfo        Channel = "dumpsys meminfo"
	Gfxinfo        Channel = "dumpsys gfxinfo"
	GPU            Channel = "dumpsys gpu"
	SurfaceFlinger Channel = "dumpsys SurfaceFlinger"
)

// Buffer is one graphic buffer of SurfaceFlinger's list.
type Buffer struct {
	// Layer is the name of the layer that owns the buffer; empty before Android
	// 8.
	Layer string
	KB    known.Int
}

// GraphicsReading describes the graphics memory of a process at one point in
// time.
type GraphicsReading struct {
	// Rows of meminfo. Android omits rows that contain only zeros: if the
	// caller has read a whole table, missing rows are 0.
	EGLMtrackKB, GLMtrackKB, OtherMtrackKB, GfxDevKB known.Int
	// CacheBytes is the size of the renderer's caches, GrallocKB is the size of
	// the buffers that the process has mapped, and AllocatorKB is the size of
	// the buffers that it allocated. All three are from gfxinfo.
	CacheBytes             known.Int
	GrallocKB, AllocatorKB known.Int
	Views, ViewRoots       known.Int
	// GPUBytes is the memory that the driver counts for the process, in dumpsys
	// gpu.
	GPUBytes known.Int
	// Buffers lists all or some of the buffers that SurfaceFlinger has
	// allocated for all processes; BuffersRead reports whether the complete
	// list was read.
	Buffers     []Buffer
	BuffersRead bool
	// Imported lists the buffers that SurfaceFlinger has mapped, including the
	// buffers of windows that apps allocate themselves (Android 12 and later).
	Imported     []Buffer
	ImportedRead bool
	// Package is the package of the process, or the name of the process. If it
	// is empty, layers are not attributed to other apps.
	Package string
	// Why holds the reason for each source that could not be read.
	Why map[Channel]string
}

// quantity is one number of a reading.
type quantity struct {
	source Channel
	name   string
	unit   Unit
	value  func(r *GraphicsReading) known.Int
	// whole reports whether the number is about the whole device, not about the
	// process. newer reports whether older releases lack the number; its
	// absence is then not reported.
	whole, newer bool
}

var quantities = []quantity{
	{source: Meminfo, name: "EGL mtrack", unit: Bytes,
		value: func(r *GraphicsReading) known.Int { return times(r.EGLMtrackKB, 1024) }},
	{source: Meminfo, name: "GL mtrack", unit: Bytes,
		value: func(r *GraphicsReading) known.Int { return times(r.GLMtrackKB, 1024) }},
	{source: Meminfo, name: "Other mtrack", unit: Bytes,
		value: func(r *GraphicsReading) known.Int { return times(r.OtherMtrackKB, 1024) }},
	{source: Meminfo, name: "Gfx dev", unit: Bytes,
		value: func(r *GraphicsReading) known.Int { return times(r.GfxDevKB, 1024) }},
	{source: Gfxinfo, name: "caches of the renderer", unit: Bytes,
		value: func(r *GraphicsReading) known.Int { return times(r.CacheBytes, 1) }},
	{source: Gfxinfo, name: "buffers imported by gralloc", unit: Bytes,
		value: func(r *GraphicsReading) known.Int { return times(r.GrallocKB, 1024) }},
	{source: Gfxinfo, name: "buffers allocated by the process", unit: Bytes,
		value: func(r *GraphicsReading) known.Int { return times(r.AllocatorKB, 1024) }},
	{source: Gfxinfo, name: "views", unit: Count,
		value: func(r *GraphicsReading) known.Int { return times(r.Views, 1) }},
	{source: Gfxinfo, name: "windows", unit: Count,
		value: func(r *GraphicsReading) known.Int { return times(r.ViewRoots, 1) }},
	{source: GPU, name: "GPU memory of the process", unit: Bytes,
		value: func(r *GraphicsReading) known.Int { return times(r.GPUBytes, 1) }},
	{source: SurfaceFlinger, name: "buffers of the whole device", unit: Bytes, whole: true,
		value: func(r *GraphicsReading) known.Int { return sumOf(r.Buffers, r.BuffersRead) }},
	{source: SurfaceFlinger, name: "imported buffers of the whole device", unit: Bytes, whole: true, newer: true,
		value: func(r *GraphicsReading) known.Int { return sumOf(r.Imported, r.ImportedRead) }},
}

// sumOf returns the sum of the sizes of all buffers, which is unknown if the
// size of any buffer is unknown.
func sumOf(list []Buffer, read bool) known.Int {
	if !read {
		return known.Int{}
	}
	var sum layerSum
	for _, b := range list {
		sum.add(b.KB)
	}
	return sum.size()
}
