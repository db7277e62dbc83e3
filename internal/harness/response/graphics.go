package response

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/footprint"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

func readGfxinfo(c *Case, m *MemorySnapshot, text []byte) ([]string, error) {
	info, err := dumpsys.ParseGfxinfo(text)
	if err != nil {
		return nil, err
	}
	for i := range info.Processes {
		p := &info.Processes[i]
		if p.PID.Known && p.PID.N != int64(c.Process.PID) {
			continue
		}
		m.graphics.gfxinfo = p
		return drawnLines(p), nil
	}
	return nil, errors.New("nothing found about the process")
}

func drawnLines(p *dumpsys.GfxProcess) []string {
	var lines []string
	if p.GPUBytes.Known {
		lines = append(lines, text.Size(p.GPUBytes.N)+" in the renderer's caches")
	}
	for _, x := range []dimension{{"imported by gralloc", p.GrallocKB}, {"allocated as buffers", p.AllocatorKB}} {
		if x.v.Known {
			lines = append(lines, text.KB(x.v.N)+" "+x.name)
		}
	}
	if p.Views.Known {
		lines = append(lines, fmt.Sprintf("%d views", p.Views.N))
	}
	if len(lines) == 0 {
		lines = []string{"the process draws nothing"}
	}
	return lines
}

func readGPU(c *Case, m *MemorySnapshot, content []byte) ([]string, error) {
	gpu, err := dumpsys.ParseGPU(content)
	if err != nil {
		return nil, err
	}
	// A driver that reports memory lists only processes that use GPU memory.
	m.graphics.gpu = known.Int{Known: true}
	for _, p := range gpu.Processes() {
		if p.PID == int64(c.Process.PID) {
			m.graphics.gpu = p.Bytes
		}
	}
	lines := []string{gpuLine(m.graphics.gpu)}
	if all := gpu.Global(); all.Known {
		lines = append(lines, text.Size(all.N)+" of all processes")
	}
	return lines, nil
}

func gpuLine(bytes known.Int) string {
	if !bytes.Known {
		return "GPU memory of the process is unknown"
	}
	return text.Size(bytes.N) + " of GPU memory"
}

func readSurfaceFlinger(_ *Case, m *MemorySnapshot, text []byte) ([]string, error) {
	s, err := dumpsys.ParseSurfaceFlinger(text)
	if err != nil {
		return nil, err
	}
	m.graphics.buffers = &s
	return []string{buffersLine(&s)}, nil
}

func buffersLine(s *dumpsys.SurfaceFlinger) string {
	if !s.Buffers.Known || !s.TotalKB.Known {
		return fmt.Sprintf("%d buffers are listed; the list is truncated", len(s.List))
	}
	if s.ImportedBuffers.Known && s.ImportedKB.Known {
		// Buffers that SurfaceFlinger has not allocated itself were allocated
		// by the apps that own the windows.
		return fmt.Sprintf("%d buffers of all windows, %s; %d allocated by SurfaceFlinger, %s", s.ImportedBuffers.N,
			text.KB(s.ImportedKB.N), s.Buffers.N, text.KB(s.TotalKB.N))
	}
	return fmt.Sprintf("%d buffers of all windows, %s", s.Buffers.N, text.KB(s.TotalKB.N))
}

// graphicsNow describes the current graphics memory.
func graphicsNow(now *MemorySnapshot) []string {
	var lines []string
	if now.graphics.gpu.Known {
		lines = append(lines, "graphics: "+gpuLine(now.graphics.gpu))
	}
	if p := now.graphics.gfxinfo; p != nil {
		lines = append(lines, "graphics: "+strings.Join(drawnLines(p), ", "))
	}
	if s := now.graphics.buffers; s != nil {
		lines = append(lines, "graphics: "+buffersLine(s))
	}
	return lines
}

// reading converts a snapshot to the form that package footprint compares.
func (m *MemorySnapshot) reading(why map[footprint.Channel]string) footprint.GraphicsReading {
	r := footprint.GraphicsReading{GPUBytes: m.graphics.gpu, Why: why}
	if b := m.meminfo; b != nil {
		row := func(v known.Int) known.Int {
			// Complete tables omit rows of zeros.
			if !v.Known && b.TableComplete {
				return known.Of(0)
			}
			return v
		}
		r.EGLMtrackKB, r.GLMtrackKB, r.OtherMtrackKB, r.GfxDevKB = row(b.EGLMtrack), row(b.GLMtrack),
			row(b.OtherMtrack), row(b.GfxDev)
	}
	if g := m.graphics.gfxinfo; g != nil {
		r.CacheBytes, r.GrallocKB, r.AllocatorKB = g.GPUBytes, g.GrallocKB, g.AllocatorKB
		r.Views, r.ViewRoots = g.Views, g.ViewRoots
	}
	if s := m.graphics.buffers; s != nil {
		r.BuffersRead, r.Buffers = s.Buffers.Known && s.Buffers.N == int64(len(s.List)), layered(s.List)
		r.ImportedRead, r.Imported = s.ImportedBuffers.Known && s.ImportedBuffers.N == int64(len(s.Imported)),
			layered(s.Imported)
	}
	return r
}

func layered(list []dumpsys.Buffer) []footprint.Buffer {
	out := make([]footprint.Buffer, len(list))
	for i, x := range list {
		out[i] = footprint.Buffer{Layer: string(x.Requestor), KB: x.KB}
	}
	return out
}

// sources lists the steps that read the sources of graphics memory.
var sources = map[string]footprint.Channel{
	"meminfo": footprint.Meminfo, "gfxinfo": footprint.Gfxinfo, "gpu": footprint.GPU,
	"surfaceflinger": footprint.SurfaceFlinger,
}

// unread returns the reasons why sources are missing.
func (c *Case) unread() map[footprint.Channel]string {
	why := map[footprint.Channel]string{}
	for _, s := range c.Record.Steps {
		if source, ok := sources[s.Step]; ok && s.File == "" && len(s.Reasons) > 0 {
			why[source] = s.Reasons[len(s.Reasons)-1]
		}
	}
	return why
}

func graphicsGrowth(c *Case, before, now *MemorySnapshot) []string {
	is := now.reading(c.unread())
	is.Package = c.Process.Package()
	g := footprint.CompareGraphics(before.reading(nil), is)
	quiet := func(r footprint.GraphicsRow) bool { return r.Delta == 0 || r.Foreign }
	changed := slices.DeleteFunc(slices.Concat(g.Rows, g.Layers), quiet)
	for _, r := range changed[:min(len(changed), toldFindings)] {
		name := fmt.Sprintf("%s (%s)", r.Name, r.Source)
		f := record.Finding{
			Type: "graphics", Name: text.Tail(name, maxText),
			Key: footprint.KeyOf("graphics", footprint.WithoutNumbers(name)),
		}
		if r.Unit == footprint.Bytes {
			f.Bytes, f.BytesDelta = new(r.After.N), new(r.Delta)
		} else {
			f.Count, f.CountDelta = new(r.After.N), new(r.Delta)
		}
		if r.BuffersBefore+r.BuffersAfter > 0 {
			f.Count, f.CountDelta = new(r.BuffersAfter), new(r.BuffersAfter-r.BuffersBefore)
		}
		c.Record.Findings = append(c.Record.Findings, f)
	}
	lines := g.Lines(toldRows)
	lines[0] = "graphics: " + lines[0]
	return lines
}
