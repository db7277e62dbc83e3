package androidsim

import (
	"fmt"
	"strings"
	"time"
)

// gfxinfoHead begins the output of dumpsys gfxinfo.
func gfxinfoHead(up time.Duration) string {
	ms := up.Milliseconds()
	return fmt.Sprintf("Applications Graphics Acceleration Info:\nUptime: %d Realtime: %d\n\n", ms, ms)
}

// bufferKB is the size of one window buffer, 1080 by 2400 in RGBA.
const bufferKB = 10200

// buffers cuts graphics memory into window buffers; the last may be smaller.
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

// gfxinfoBlock is the answer for one process. The GPU cache of the renderer is
// what the GL driver holds; gralloc buffers are the EGL memory.
func gfxinfoBlock(v view, m memory, api int) string {
	var b strings.Builder
	frames := int64(v.age/time.Second) * 4
	gl, egl := m.rows[rowGL].pss()+m.rows[rowGfxDev].pss(), m.rows[rowEGL].pss()
	fmt.Fprintf(&b, "** Graphics info for pid %d [%s] **\n\n", v.pid, v.name)
	fmt.Fprintf(&b, "Stats since: %dns\nTotal frames rendered: %d\nJanky frames: %d (%.2f%%)\n", v.start.Nanoseconds(), frames, frames/50, 2.0)
	b.WriteString("50th percentile: 5ms\n90th percentile: 9ms\n95th percentile: 12ms\n99th percentile: 32ms\n")
	fmt.Fprintf(&b, "Number Missed Vsync: %d\nNumber High input latency: 0\nNumber Slow UI thread: %d\nNumber Slow bitmap uploads: 0\nNumber Slow issue draw commands: 0\n", frames/100, frames/80)
	if api < 31 {
		fmt.Fprintf(&b, "\nPipeline=Skia (OpenGL)\nCaches:\nCurrent memory usage / total memory usage (bytes):\n  TextureCache %20d / 75497472\n  Layers Total %20d\n", gl<<10, 0)
		fmt.Fprintf(&b, "Total GPU memory usage:\n  %d bytes, %.2f MB (0.00 MB is purgeable)\n\n", gl<<10, float64(gl)/1024)
	} else {
		b.WriteString("\nPipeline=Skia (OpenGL)\nMemory policy:\n  Max surface area: 2592000\n  Max resource usage: 373.25MB (x144)\n  Background retention: 50% (altUiHidden = true)\n")
		b.WriteString("  GPU Context timeout: 10\nContexts: 1 (stopped = 0)\nCPU Caches:\n  Glyph Cache: 131.22 KB (1 entry)\n  Glyph Count: 7 \n")
		b.WriteString("Total CPU memory usage:\n  134369 bytes, 131.22 KB (0.00 bytes is purgeable)\n")
		fmt.Fprintf(&b, "GPU Caches:\n  Scratch:\n    Texture: %.2f MB (1 entry)\n", float64(gl)/1024)
		fmt.Fprintf(&b, "Total GPU memory usage:\n  %d bytes, %.2f MB (0.00 bytes is purgeable)\n\n", gl<<10, float64(gl)/1024)
		writeBuffers(&b, v.name, buffers(egl), egl)
	}
	window := v.pkg() + "/" + v.pkg() + ".MainActivity"
	fmt.Fprintf(&b, "Profile data in ms:\n\n\t%s/android.view.ViewRootImpl@5a0cc92 (visibility=0)\nView hierarchy:\n\n  %s/android.view.ViewRootImpl@5a0cc92\n", window, window)
	views := 120 + 25*int(m.leaked/mbPerActivity)
	fmt.Fprintf(&b, "  %d views, 78.10 kB of render nodes\n\n\nTotal ViewRootImpl   : 1\nTotal attached Views : %d\nTotal RenderNode     : 78.10 kB (used) / 217.94 kB (capacity)\n\n\n", views, views)
	return b.String()
}

// writeBuffers lists gralloc buffers as GraphicBufferAllocator::dump does since
// Android 12.
func writeBuffers(b *strings.Builder, owner string, sizes []int64, totalKB int64) {
	b.WriteString("GraphicBufferAllocator buffers:\n        Handle |        Size |     W (Stride) x H | Layers |   Format |      Usage | Requestor\n")
	for i, kb := range sizes {
		rows := max(1, kb*1024/(1088*4))
		fmt.Fprintf(b, "0x%016x | %8.2f KiB | %4d (%4d) x %4d | %6d | %8x | 0x%8x | VRI[MainActivity]#%d(BLAST Consumer)%d\n",
			0xb400006dee680000+hashText(owner)%0xfff*0x10000+uint64(i)*0x90, float64(kb), 1080, 1088, rows, 1, 1, 0xb00, i, i)
	}
	fmt.Fprintf(b, "Total allocated by GraphicBufferAllocator (estimate): %.2f KB\n", float64(totalKB))
	b.WriteString("Imported gralloc buffers:\n")
	for i, kb := range sizes {
		rows := max(1, kb*1024/(1088*4))
		fmt.Fprintf(b, "+ name:VRI[MainActivity]#%d(BLAST Consumer)%d, id:%d, size:%.2fKiB, w/h:1080x%d, usage: 0xb00, req fmt:1, fourcc/mod:875708993/0, dataspace: 0x8810000, compressed: true\n", i, i, 1080+i, float64(kb), rows)
		fmt.Fprintf(b, "\tplanes: R/G/B/A:\t w/h:1080x%d, stride:4352 bytes, size:%d\n", rows, kb*1024)
	}
	fmt.Fprintf(b, "Total imported by gralloc: %.2fKiB\n\n", float64(totalKB))
}

// gpuText is dumpsys gpu. The memory of processes is in it since Android 12.
func gpuText(vs []view, api int, onlyMemory bool) string {
	var b strings.Builder
	if !onlyMemory {
		b.WriteString("Stable Game Driver: unsupported\nPre-release Game Driver: unsupported\n\n")
	}
	if api < 31 {
		return b.String()
	}
	var global int64
	var lines strings.Builder
	for _, v := range vs {
		if v.kernel || v.native || v.shell {
			continue
		}
		m := v.memory()
		bytes := m.sum(rowEGL, rowGL, rowGfxDev).pss() << 10
		if bytes == 0 {
			continue
		}
		global += bytes
		fmt.Fprintf(&lines, "Proc %d total: %d\n", v.pid, bytes)
	}
	fmt.Fprintf(&b, "Memory snapshot for GPU 0:\nGlobal total: %d\n%s", global, lines.String())
	return b.String()
}

// surfaceFlingerText is the list of buffers of dumpsys SurfaceFlinger: those of
// the screen itself and of every window.
func surfaceFlingerText(vs []view, api int) string {
	sizes := []int64{bufferKB, bufferKB, bufferKB}
	for _, v := range vs {
		if v.app != nil && !v.frozen {
			sizes = append(sizes, buffers(v.memory().rows[rowEGL].pss())...)
		}
	}
	var total int64
	for _, kb := range sizes {
		total += kb
	}
	var b strings.Builder
	if api >= 33 {
		writeBuffers(&b, "surfaceflinger", sizes, total)
		return b.String()
	}
	b.WriteString("Allocated buffers:\n")
	for i, kb := range sizes {
		fmt.Fprintf(&b, "0x%x: %7.2f KiB | 1080 (1088) x %4d |    1 |        1 | 0x%8x | FramebufferSurface\n", 0x7a40000000+i*0x90, float64(kb), max(1, kb*1024/(1088*4)), 0x1b00)
	}
	fmt.Fprintf(&b, "Total allocated (estimate): %.2f KB\n", float64(total))
	return b.String()
}
