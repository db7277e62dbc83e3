package androidsim

import (
	"fmt"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
)

func gfxinfoHead(up time.Duration) string {
	ms := up.Milliseconds()
	return fmt.Sprintf("Applications Graphics Acceleration Info:\nUptime: %d Realtime: %d\n\n", ms, ms)
}

// bufferKB is the size of one window buffer of 1080 by 2400 RGBA pixels.
const bufferKB = 10200

// buffers splits graphics memory into window buffers; the last one takes the
// remainder.
func buffers(kb int64) []int64 {
	const most = 256
	var out []int64
	for kb > 0 {
		n := min(kb, bufferKB)
		if len(out) == most-1 {
			n = kb
		}
		out = append(out, n)
		kb -= n
	}
	return out
}

// gfxinfoBlock formats the gfxinfo of one process. The GPU cache of the
// renderer is the memory of the GL driver; gralloc buffers are the EGL memory.
func gfxinfoBlock(v view, m memory, api int) string {
	var b strings.Builder
	frames := int64(v.age/time.Second) * 4
	gl, egl := m.rows[androidtext.GLMtrack].pss()+m.rows[androidtext.GfxDev].pss(), m.rows[androidtext.EGLMtrack].pss()
	fmt.Fprintf(&b, "** Graphics info for pid %d [%s] **\n\n", v.pid, v.name)
	fmt.Fprintf(&b, "Stats since: %dns\nTotal frames rendered: %d\nJanky frames: %d (%.2f%%)\n", v.start.Nanoseconds(),
		frames, frames/50, 2.0)
	b.WriteString("50th percentile: 5ms\n90th percentile: 9ms\n95th percentile: 12ms\n99th percentile: 32ms\n")
	fmt.Fprintf(&b,
		"Number Missed Vsync: %d\nNumber High input latency: 0\nNumber Slow UI thread: %d\nNumber Slow bitmap "+
			"uploads: 0\nNumber Slow issue draw commands: 0\n", frames/100, frames/80)
	if api < 31 {
		fmt.Fprintf(&b,
			"\nPipeline=Skia (OpenGL)\nCaches:\nCurrent memory usage / total memory usage (bytes):\n  TextureCache "+
				"%20d / 75497472\n  Layers Total %20d\n", gl<<10, 0)
		fmt.Fprintf(&b, "Total GPU memory usage:\n  %d bytes, %.2f MB (0.00 MB is purgeable)\n\n", gl<<10,
			float64(gl)/1024)
	} else {
		b.WriteString("\nPipeline=Skia (OpenGL)\nMemory policy:\n  Max surface area: 2592000\n  Max resource usage: " +
			"373.25MB (x144)\n  Background retention: 50% (altUiHidden = true)\n")
		b.WriteString("  GPU Context timeout: 10\nContexts: 1 (stopped = 0)\nCPU Caches:\n  Glyph Cache: 131.22 KB " +
			"(1 entry)\n  Glyph Count: 7 \n")
		b.WriteString("Total CPU memory usage:\n  134369 bytes, 131.22 KB (0.00 bytes is purgeable)\n")
		fmt.Fprintf(&b, "GPU Caches:\n  Scratch:\n    Texture: %.2f MB (1 entry)\n", float64(gl)/1024)
		fmt.Fprintf(&b, "Total GPU memory usage:\n  %d bytes, %.2f MB (0.00 bytes is purgeable)\n\n", gl<<10,
			float64(gl)/1024)
		writeBuffers(&b, buffersOf(v, egl, api), egl)
		writeImported(&b, buffersOf(v, egl, api), egl)
	}
	window := v.pkg() + "/" + v.window()
	fmt.Fprintf(&b,
		"Profile data in ms:\n\n\t%s/android.view.ViewRootImpl@5a0cc92 (visibility=0)\nView hierarchy:\n\n  "+
			"%s/android.view.ViewRootImpl@5a0cc92\n", window, window)
	n := v.counts(m)
	fmt.Fprintf(&b,
		"  %d views, 78.10 kB of render nodes\n\n\nTotal ViewRootImpl   : %d\nTotal attached Views : %d\nTotal "+
			"RenderNode     : 78.10 kB (used) / 217.94 kB (capacity)\n\n\n", n.views, n.roots, n.views)
	return b.String()
}

// gralloc is one graphics buffer.
type gralloc struct {
	kb    int64
	owner string
	id    uint64
}

// buffersOf returns the buffers of a process's window. Each buffer is named
// after its layer or, since Android 12, after its view.
func buffersOf(v view, kb int64, api int) []gralloc {
	var out []gralloc
	for i, size := range buffers(kb) {
		b := gralloc{kb: size, id: uint64(v.pid)<<32 + uint64(i)}
		switch {
		case api < 31:
			b.owner = fmt.Sprintf("%s/%s.MainActivity#0", v.pkg(), v.pkg())
		case api < 33:
			b.owner = fmt.Sprintf("ViewRootImpl[MainActivity]#0(BLAST Consumer)%d", i)
		default:
			b.owner = fmt.Sprintf("VRI[MainActivity]#0(BLAST Consumer)%d", i)
		}
		out = append(out, b)
	}
	return out
}

// rows returns the height in pixels of a buffer that is as wide as the screen.
func (b gralloc) rows() int64 { return max(1, b.kb*1024/(1088*4)) }

// writeBuffers lists the buffers that a process has allocated, like
// GraphicBufferAllocator::dump since Android 12.
func writeBuffers(b *strings.Builder, all []gralloc, totalKB int64) {
	b.WriteString("GraphicBufferAllocator buffers:\n        Handle |        Size |     W (Stride) x H | Layers |   " +
		"Format |      Usage | Requestor\n")
	for i, g := range all {
		fmt.Fprintf(b, "0x%016x | %8.2f KiB | %4d (%4d) x %4d | %6d | %8x | 0x%8x | %s\n",
			0xb400006dee680000+hashText(g.owner)%0xfff*0x10000+uint64(i)*0x90, float64(g.kb), 1080, 1088, g.rows(), 1,
			1, 0xb00, g.owner)
	}
	fmt.Fprintf(b, "Total allocated by GraphicBufferAllocator (estimate): %.2f KB\n", float64(totalKB))
}

// writeImported lists the buffers that a process has imported, and its own
// buffers (GraphicBufferMapper::dumpBuffersToSystemLog of mapper 4).
func writeImported(b *strings.Builder, all []gralloc, totalKB int64) {
	b.WriteString("Imported gralloc buffers:\n")
	for _, g := range all {
		fmt.Fprintf(b,
			"+ name:%s, id:%d, size:%.2fKiB, w/h:1080x%d, usage: 0xb00, req fmt:1, fourcc/mod:875708993/0, "+
				"dataspace: 0x8810000, compressed: true\n", g.owner, g.id, float64(g.kb), g.rows())
		fmt.Fprintf(b, "\tplanes: R/G/B/A:\t w/h:1080x%d, stride:4352 bytes, size:%d\n", g.rows(), g.kb*1024)
	}
	fmt.Fprintf(b, "Total imported by gralloc: %.2fKiB\n\n", float64(totalKB))
}

// gpuText returns the output of dumpsys gpu. Since Android 12, the output lists
// memory by process; before Android 10, it is empty. Many drivers do not report
// memory; counted is false for them.
func gpuText(vs []view, api int, onlyMemory, counted bool) string {
	var b strings.Builder
	if !onlyMemory && api >= 29 {
		b.WriteString("Stable Game Driver: unsupported\nPre-release Game Driver: unsupported\n\n")
	}
	switch {
	case api < 31:
		return b.String()
	case !counted:
		// services/gpuservice/gpumem/GpuMem.cpp
		b.WriteString("Failed to initialize GPU memory eBPF\n")
		return b.String()
	}
	var global int64
	var lines strings.Builder
	for _, v := range vs {
		if v.kernel || v.native || v.shell {
			continue
		}
		m := v.memory()
		bytes := m.sum(androidtext.EGLMtrack, androidtext.GLMtrack, androidtext.GfxDev).pss() << 10
		if bytes == 0 {
			continue
		}
		global += bytes
		fmt.Fprintf(&lines, "Proc %d total: %d\n", v.pid, bytes)
	}
	fmt.Fprintf(&b, "Memory snapshot for GPU 0:\nGlobal total: %d\n%s", global, lines.String())
	return b.String()
}

// surfaceFlingerText returns the buffers in dumpsys SurfaceFlinger: those of
// the screen, which SurfaceFlinger allocates, and those of every window. Since
// Android 12, SurfaceFlinger imports the buffers of windows from apps
// (BLASTBufferQueue).
func surfaceFlingerText(vs []view, api int) string {
	own := make([]gralloc, 3)
	for i := range own {
		own[i] = gralloc{kb: bufferKB, owner: "FramebufferSurface", id: uint64(i)}
	}
	var windows []gralloc
	for _, v := range vs {
		if v.app != nil && !v.frozen {
			windows = append(windows, buffersOf(v, v.memory().rows[androidtext.EGLMtrack].pss(), api)...)
		}
	}
	if api < 31 {
		own, windows = append(own, windows...), nil
	}
	sum := func(all []gralloc) (kb int64) {
		for _, g := range all {
			kb += g.kb
		}
		return kb
	}
	var b strings.Builder
	if api >= 33 {
		writeBuffers(&b, own, sum(own))
	} else {
		b.WriteString("Allocated buffers:\n")
		for i, g := range own {
			fmt.Fprintf(&b, "0x%x: %7.2f KiB | 1080 (1088) x %4d |    1 |        1 | 0x%8x | %s\n", 0x7a40000000+i*0x90,
				float64(g.kb), g.rows(), 0x1b00, g.owner)
		}
		fmt.Fprintf(&b, "Total allocated (estimate): %.2f KB\n", float64(sum(own)))
	}
	if api >= 31 {
		all := append(own, windows...)
		writeImported(&b, all, sum(all))
	}
	return b.String()
}
