package footprint

import "github.com/leakgate/leakgate/internal/known"

// maxBytes is what no phone has: a pebibyte, in bytes.
const maxBytes = 1 << 50

// times is the number in another unit; unknown if it is none that a phone can have.
func times(v known.Int, n int64) known.Int {
	if !v.Known || v.N < 0 || v.N > maxBytes/n {
		return known.Int{}
	}
	return known.Of(v.N * n)
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
	KB    known.Int
}

// GraphicsReading is the graphics memory of a process at one moment.
type GraphicsReading struct {
	// Rows of meminfo. Android leaves out rows of zeros: whoever read a whole table knows
	// that they are 0.
	EGLMtrackKB, GLMtrackKB, OtherMtrackKB, GfxDevKB known.Int
	// CacheBytes are the caches of the renderer, GrallocKB the buffers that the process
	// has mapped, AllocatorKB those that it allocated, all of gfxinfo.
	CacheBytes             known.Int
	GrallocKB, AllocatorKB known.Int
	Views, ViewRoots       known.Int
	// GPUBytes is what the driver counts for the process, in dumpsys gpu.
	GPUBytes known.Int
	// Buffers are those of all processes that SurfaceFlinger has allocated, or some;
	// BuffersRead tells that the list was read and is whole.
	Buffers     []Buffer
	BuffersRead bool
	// Imported are those that it has mapped, which are the windows' too where apps allocate
	// their own (Android 12 and later).
	Imported     []Buffer
	ImportedRead bool
	// Package is that of the process, or its name; empty where it is not known: then no
	// layerLine is another app's.
	Package string
	// Why says of a source what kept it from being read.
	Why map[Source]string
}

// quantity is one number of a reading.
type quantity struct {
	source Source
	name   string
	unit   Unit
	value  func(r *GraphicsReading) known.Int
	// whole is of the whole device, and not of the process; newer is what older releases do
	// not have, so that it is not missed.
	whole, newer bool
}

var quantities = []quantity{
	{source: Meminfo, name: "EGL mtrack", unit: Bytes, value: func(r *GraphicsReading) known.Int { return times(r.EGLMtrackKB, 1024) }},
	{source: Meminfo, name: "GL mtrack", unit: Bytes, value: func(r *GraphicsReading) known.Int { return times(r.GLMtrackKB, 1024) }},
	{source: Meminfo, name: "Other mtrack", unit: Bytes, value: func(r *GraphicsReading) known.Int { return times(r.OtherMtrackKB, 1024) }},
	{source: Meminfo, name: "Gfx dev", unit: Bytes, value: func(r *GraphicsReading) known.Int { return times(r.GfxDevKB, 1024) }},
	{source: Gfxinfo, name: "caches of the renderer", unit: Bytes, value: func(r *GraphicsReading) known.Int { return times(r.CacheBytes, 1) }},
	{source: Gfxinfo, name: "buffers imported by gralloc", unit: Bytes, value: func(r *GraphicsReading) known.Int { return times(r.GrallocKB, 1024) }},
	{source: Gfxinfo, name: "buffers allocated by the process", unit: Bytes, value: func(r *GraphicsReading) known.Int { return times(r.AllocatorKB, 1024) }},
	{source: Gfxinfo, name: "views", unit: Count, value: func(r *GraphicsReading) known.Int { return times(r.Views, 1) }},
	{source: Gfxinfo, name: "windows", unit: Count, value: func(r *GraphicsReading) known.Int { return times(r.ViewRoots, 1) }},
	{source: GPU, name: "memory of the process on the GPU", unit: Bytes, value: func(r *GraphicsReading) known.Int { return times(r.GPUBytes, 1) }},
	{source: SurfaceFlinger, name: "buffers of the whole device", unit: Bytes, whole: true, value: func(r *GraphicsReading) known.Int { return sumOf(r.Buffers, r.BuffersRead) }},
	{source: SurfaceFlinger, name: "imported buffers of the whole device", unit: Bytes, whole: true, newer: true, value: func(r *GraphicsReading) known.Int { return sumOf(r.Imported, r.ImportedRead) }},
}

// sumOf is the sum of all buffers, unknown if one of them is.
func sumOf(list []Buffer, read bool) known.Int {
	if !read {
		return known.Int{}
	}
	var sum pile
	for _, b := range list {
		sum.add(b.KB)
	}
	return sum.size()
}
