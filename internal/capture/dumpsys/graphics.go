package dumpsys

import (
	"strings"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
)

// Gfxinfo is the output of dumpsys gfxinfo.
type Gfxinfo struct {
	Processes []GfxProcess
	// Interrupted is the device's message if the service failed after it had
	// begun to print.
	Interrupted *DeviceError
	// Truncated reports whether the output is visibly truncated.
	Truncated bool
	Warnings  []error
}

// GfxProcess is one process in the output of gfxinfo. The values of a process
// that does not draw are absent.
type GfxProcess struct {
	PID     known.Int  `json:"pid"`
	Process field.Text `json:"process"`
	GfxValues
}

// GfxValues holds the sizes and counts of one process in gfxinfo.
type GfxValues struct {
	// GPUBytes is "Total GPU memory usage" (before Android 9 "Total memory
	// usage"): it covers only the renderer's caches, not what the app itself
	// allocates.
	GPUBytes known.Int `json:"total_gpu_memory_bytes"`
	// GrallocKB is "Total imported by gralloc": the buffers that the process
	// has mapped (Android 12 and later, but not on every device).
	GrallocKB known.Int `json:"gralloc_kb"`
	// AllocatorKB is the total size of the buffers that the process allocated
	// itself.
	AllocatorKB known.Int `json:"allocator_kb"`
	// Views is the number of attached views, and ViewRoots is the number of
	// windows.
	Views     known.Int `json:"views"`
	ViewRoots known.Int `json:"view_roots"`
}

// ParseGfxinfo parses dumpsys gfxinfo, for one or for many processes. The error
// is a DeviceError.
func ParseGfxinfo(text []byte) (Gfxinfo, error) {
	s, tooLong := input(text)
	var (
		in    = lines{rest: s}
		out   = Gfxinfo{Truncated: tooLong}
		cur   *GfxProcess
		d     field.Warnings
		began bool
		gpu   bool // the previous line announced the number of GPU bytes
	)
	for {
		line, whole, ok := in.next()
		if !ok {
			break
		}
		trimmed := strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(trimmed, "** Graphics info for pid "); ok {
			if len(out.Processes) >= maxBlocks {
				out.Truncated = true
				break
			}
			out.Processes = append(out.Processes, GfxProcess{})
			cur = &out.Processes[len(out.Processes)-1]
			cur.PID, cur.Process = processOf(rest)
			out.Truncated = out.Truncated || !cur.PID.Known || !whole
			gpu = false
			continue
		}
		began = began || strings.HasPrefix(trimmed, "Applications Graphics Acceleration Info")
		if e, ok := interruption(trimmed); ok {
			out.Interrupted, out.Truncated = &e, true
		}
		if cur != nil {
			cur.line(trimmed, gpu, whole, in.n, &d)
		}
		gpu = trimmed == "Total GPU memory usage:" || trimmed == "Total memory usage:"
		out.Truncated = out.Truncated || !whole
	}
	if len(out.Processes) == 0 {
		if out.Interrupted != nil {
			return Gfxinfo{}, *out.Interrupted
		}
		return Gfxinfo{}, notAnAnswer(text, began)
	}
	if len(out.Processes) == 1 && *cur == (GfxProcess{PID: cur.PID, Process: cur.Process}) && out.Interrupted != nil {
		return Gfxinfo{}, *out.Interrupted
	}
	out.Warnings = d.All()
	return out, nil
}

func (g *GfxProcess) line(line string, gpu, whole bool, n int, d *field.Warnings) {
	switch {
	case gpu:
		// The unit after the number proves that no digit is missing.
		digits, _, ok := strings.Cut(line, " bytes")
		take(&g.GPUBytes, "Total GPU memory usage", digits, ok, n, d)
	case strings.HasPrefix(line, "Total attached Views"), strings.HasPrefix(line, "Total Views"):
		take(&g.Views, "Total attached Views", after(line, ":"), whole, n, d)
	case strings.HasPrefix(line, "Total ViewRootImpl"):
		take(&g.ViewRoots, "Total ViewRootImpl", after(line, ":"), whole, n, d)
	case strings.HasPrefix(line, "Total imported by gralloc:"):
		takeKB(&g.GrallocKB, "Total imported by gralloc", line, n, d)
	case strings.HasPrefix(line, "Total allocated"):
		takeKB(&g.AllocatorKB, "Total allocated", line, n, d)
	}
}

func take(to *known.Int, name, text string, whole bool, n int, d *field.Warnings) {
	v, ok := number(strings.TrimSpace(text))
	if !ok || v < 0 || !whole {
		d.Add(n, name, []byte(text), "not a whole number")
		*to = known.Int{}
		return
	}
	*to = known.Of(v)
}

func takeKB(to *known.Int, name, line string, n int, d *field.Warnings) {
	kb, coarse, ok := kiloBytes(line[strings.LastIndexByte(line, ':')+1:])
	if !ok {
		d.Add(n, name, []byte(line), "no size in KB, or truncated")
		return
	}
	if coarse {
		d.Add(n, name, []byte(line), "the device rounded it to two digits")
	}
	*to = known.Of(kb)
}

func after(line, sep string) string {
	_, rest, _ := strings.Cut(line, sep)
	return rest
}

// GPU is the output of dumpsys gpu, with or without --gpumem (Android 12 and
// later). Its values come from drivers that report to the gpu_mem eBPF program;
// many drivers do not.
type GPU struct {
	// GPUs are the snapshots, one for each GPU.
	GPUs []GPUMemory
	// Truncated reports whether the output is visibly truncated.
	Truncated bool
	Warnings  []error
}

// GPUMemory is the memory of one GPU, in bytes (services/gpuservice/gpumem).
type GPUMemory struct {
	ID          known.Int
	GlobalBytes known.Int
	Processes   []GPUProcess
}

// GPUProcess is the memory of one process on one GPU.
type GPUProcess struct {
	PID   int64     `json:"pid"`
	Bytes known.Int `json:"bytes"`
}

// Global returns the sum over all GPUs; it is unknown if the value of any GPU
// is unknown.
func (g GPU) Global() known.Int {
	sum := known.Of(0)
	for _, m := range g.GPUs {
		sum = plus(sum, m.GlobalBytes)
	}
	if len(g.GPUs) == 0 {
		return known.Int{}
	}
	return sum
}

// Processes returns the sums over all GPUs, in the order of the output.
func (g GPU) Processes() []GPUProcess {
	var all []GPUProcess
	at := map[int64]int{}
	for _, m := range g.GPUs {
		for _, p := range m.Processes {
			if i, ok := at[p.PID]; ok {
				all[i].Bytes = plus(all[i].Bytes, p.Bytes)
				continue
			}
			at[p.PID] = len(all)
			all = append(all, p)
		}
	}
	return all
}

const maxGPUProcesses = 1 << 16

// ParseGPU parses dumpsys gpu. The error is a DeviceError; Unsupported means
// that this device does not count GPU memory.
func ParseGPU(text []byte) (GPU, error) {
	s, tooLong := input(text)
	in, out := lines{rest: s}, GPU{Truncated: tooLong}
	var d field.Warnings
	found, processes := false, 0
	for {
		line, whole, ok := in.next()
		if !ok {
			break
		}
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "Memory snapshot for GPU "); ok && len(out.GPUs) < maxRows {
			n, ok := number(strings.TrimSuffix(rest, ":"))
			if ok = ok && strings.HasSuffix(rest, ":"); !ok {
				d.Add(in.n, "GPU", []byte(line), "no number")
			}
			out.GPUs = append(out.GPUs, GPUMemory{ID: known.Int{N: n, Known: ok}})
			out.Truncated = out.Truncated || !whole
			continue
		}
		if len(out.GPUs) == 0 {
			continue
		}
		gpu := &out.GPUs[len(out.GPUs)-1]
		label, value, ok := strings.Cut(line, " total: ")
		pid, isProcess := strings.CutPrefix(label, "Proc ")
		switch {
		case ok && label == "Global":
			gpu.GlobalBytes = bytesOf(label, value, whole, in.n, &d)
			found = true
		case ok && isProcess && processes < maxGPUProcesses:
			n, ok := number(pid)
			if !ok || n < 0 {
				d.Add(in.n, "Proc", []byte(line), "no pid")
				continue
			}
			gpu.Processes = append(gpu.Processes, GPUProcess{PID: n, Bytes: bytesOf(label, value, whole, in.n, &d)})
			found, processes = true, processes+1
		case !whole:
			d.Add(in.n, "line", []byte(line), "truncated")
		}
		out.Truncated = out.Truncated || !whole
	}
	if !found {
		return GPU{}, notAnAnswer(text, len(out.GPUs) > 0)
	}
	out.Warnings = d.All()
	return out, nil
}

func bytesOf(name, text string, whole bool, n int, d *field.Warnings) known.Int {
	v, ok := number(text)
	if !ok || v < 0 || !whole {
		d.Add(n, name, []byte(text), "not a whole number")
		return known.Int{}
	}
	return known.Of(v)
}

// SurfaceFlinger is the part of dumpsys SurfaceFlinger that describes buffers.
type SurfaceFlinger struct {
	// Buffers is the number of the allocator's buffers, and TotalKB is their
	// total size as the device estimates it. Buffers and TotalKB are unknown if
	// the list of these buffers is truncated.
	Buffers known.Int `json:"buffers"`
	TotalKB known.Int `json:"total_kb"`
	// ImportedBuffers is the number of buffers that SurfaceFlinger has mapped.
	// It is unknown if the output has no list of these buffers (before Android
	// 11), or if the list is truncated.
	ImportedBuffers known.Int `json:"imported_buffers"`
	// ImportedKB is "Total imported by gralloc".
	ImportedKB known.Int `json:"imported_kb"`
	// List contains the allocator's buffers, except those whose lines are
	// truncated.
	List []Buffer `json:"list"`
	// Imported lists the buffers that SurfaceFlinger has mapped: its own and
	// those of the windows. Since Android 12, the buffers of windows are
	// allocated by the apps.
	Imported []Buffer `json:"imported"`
	// Truncated reports whether the output is visibly truncated. If only the
	// list of imported buffers is truncated, Truncated is false, and the number
	// of imported buffers is unknown.
	Truncated bool    `json:"-"`
	Warnings  []error `json:"-"`
}

// Buffer is one graphic buffer.
type Buffer struct {
	// KB is the size of the buffer; it is unknown if the device prints
	// "unknown".
	KB        known.Int  `json:"kb"`
	Requestor field.Text `json:"requestor"` // unknown before Android 8
}

const maxBuffers = 1 << 14

// ParseSurfaceFlinger parses the list that GraphicBufferAllocator prints in any
// release (frameworks/native libs/ui/GraphicBufferAllocator.cpp), and the list
// of imported buffers that follows it (Gralloc4.cpp, Gralloc5.cpp). The error
// is a DeviceError.
func ParseSurfaceFlinger(text []byte) (SurfaceFlinger, error) {
	s, tooLong := input(text)
	in, out := lines{rest: s}, SurfaceFlinger{Truncated: tooLong}
	var d field.Warnings
	inList, began, ended := false, false, false
	inImported := false
	var count, imported int64
	for {
		line, whole, ok := in.next()
		if !ok {
			break
		}
		line = strings.TrimSpace(line)
		switch {
		case line == "GraphicBufferAllocator buffers:", line == "Allocated buffers:":
			inList, began, ended, count, out.List = true, true, false, 0, nil
		case inList && strings.HasPrefix(line, "0x"):
			count++
			if b, ok := bufferOf(line, whole, in.n, &d); ok && len(out.List) < maxBuffers {
				out.List = append(out.List, b)
			}
		case inList && strings.HasPrefix(line, "Total allocated"):
			inList, ended = false, true
			takeKB(&out.TotalKB, "Total allocated", line, in.n, &d)
		case line == "Imported gralloc buffers:":
			inImported, began, imported, out.Imported, out.ImportedBuffers = true, true, 0, nil, known.Int{}
		case inImported && strings.HasPrefix(line, "+ name:"):
			imported++
			if b, ok := importedOf(line, whole, in.n, &d); ok && len(out.Imported) < maxBuffers {
				out.Imported = append(out.Imported, b)
			}
		case strings.HasPrefix(line, "Total imported by gralloc:"):
			if inImported {
				out.ImportedBuffers = known.Of(imported)
			}
			inImported, began = false, true
			takeKB(&out.ImportedKB, "Total imported by gralloc", line, in.n, &d)
		}
		out.Truncated = out.Truncated || !whole
	}
	if !began || !ended && len(out.List) == 0 && !out.ImportedKB.Known {
		return SurfaceFlinger{}, notAnAnswer(text, began)
	}
	if ended {
		out.Buffers = known.Of(count)
	} else {
		out.Truncated = true
	}
	out.Warnings = d.All()
	return out, nil
}

// bufferOf parses "0xHANDLE | 10200.00 KiB | ... | Planner" (Android 13 and
// later) or "0xHANDLE: 144.00 KiB | ... | Planner".
func bufferOf(line string, whole bool, n int, d *field.Warnings) (Buffer, bool) {
	i := strings.IndexAny(line, ":|")
	if i < 0 || !whole {
		return Buffer{}, false
	}
	cells := strings.Split(line[i+1:], "|")
	kb, _, ok := kiloBytes(cells[0])
	if !ok && strings.TrimSpace(cells[0]) != "unknown" {
		d.Add(n, "Size", []byte(line), "no size in KiB")
	}
	b := Buffer{KB: known.Int{N: kb, Known: ok}}
	// The format: Handle, size, width x height, [layers,] format, usage [,
	// requestor]
	if len(cells) > 4 {
		b.Requestor = field.Text(clip(strings.TrimSpace(cells[len(cells)-1]), maxName))
	}
	return b, true
}

// importedOf parses "+ name:VRI[Main]#0(BLAST Consumer)0, id:2126008817486,
// size:10360.25KiB, w/h:1080x2400, ...".
func importedOf(line string, whole bool, n int, d *field.Warnings) (Buffer, bool) {
	// Only the name is untrusted: it may contain any characters before the id.
	i := strings.LastIndex(line, ", id:")
	if i < 0 || !whole {
		return Buffer{}, false
	}
	size, _, _ := strings.Cut(after(line[i:], ", size:"), ",")
	kb, _, ok := kiloBytes(size)
	if !ok {
		d.Add(n, "size", []byte(line), "no size in KiB")
	}
	name := strings.TrimPrefix(line[:i], "+ name:")
	return Buffer{KB: known.Int{N: kb, Known: ok}, Requestor: field.Text(clip(strings.TrimSpace(name), maxName))}, true
}
