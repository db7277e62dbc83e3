// Package graphics says which memory of graphics grew between two moments of one process:
// by what the driver counts, by caches and kinds of buffers, and by the layers that the
// buffers belong to; and what this device does not let anyone see.
//
// The numbers come from sources that overlap: one buffer may be in EGL mtrack, in what
// gralloc imported and in a layer. So they are put side by side and never added up; only
// the buffers of the layers are.
//
// It refuses to read texts and to take an unknown number for zero. It is fed with the
// numbers of dumpsys meminfo, gfxinfo, gpu and SurfaceFlinger by whoever read them. Names
// of layers are hostile; those that it gives back are short and printable.
package graphics
