package response

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/footprint"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/text"
)

// MemorySnapshot holds what was read from one life of a process at one point in
// time, for later comparison. Missing readings are nil or unknown.
type MemorySnapshot struct {
	// smaps and showmap contain the same mappings from two sources, with
	// slightly different sums.
	smaps, showmap *footprint.Map
	// threads holds the threads whose names were read. nameless holds the
	// threads for which only ids were read, if that reading is newer.
	threads, nameless []footprint.Thread
	// hidden reports whether the names of threads come from a run directory,
	// where they are hidden.
	hidden   bool
	meminfo  *dumpsys.Block
	graphics graphicsState
}

// or returns the snapshot, with missing readings replaced by those of an
// earlier snapshot.
func (m *MemorySnapshot) or(before *MemorySnapshot) *MemorySnapshot {
	if m == nil || before == nil {
		return cmp.Or(m, before)
	}
	out := *m
	out.smaps, out.showmap = cmp.Or(m.smaps, before.smaps), cmp.Or(m.showmap, before.showmap)
	out.meminfo = cmp.Or(m.meminfo, before.meminfo)
	out.graphics.gfxinfo = cmp.Or(m.graphics.gfxinfo, before.graphics.gfxinfo)
	out.graphics.buffers = cmp.Or(m.graphics.buffers, before.graphics.buffers)
	if len(m.threads) == 0 {
		out.threads, out.hidden = before.threads, before.hidden
		if len(m.nameless) == 0 {
			out.nameless = before.nameless
		}
	}
	if !m.graphics.gpu.Known {
		out.graphics.gpu = before.graphics.gpu
	}
	return &out
}

// maps returns the mappings from smaps or, if it was not read, from showmap;
// nil if neither was read.
func (m *MemorySnapshot) maps() *footprint.Map { return cmp.Or(m.smaps, m.showmap) }

// all returns the threads of the latest reading, with or without names.
func (m *MemorySnapshot) all() []footprint.Thread {
	if len(m.nameless) > 0 {
		return m.nameless
	}
	return m.threads
}

// mapSource names the source of maps.
func (m *MemorySnapshot) mapSource() string {
	switch {
	case m.smaps != nil:
		return "smaps"
	case m.showmap != nil:
		return "showmap"
	}
	return "not read"
}

// noted returns the size of all stacks according to meminfo; mapped returns it
// according to smaps. The two sources define stacks slightly differently, and
// only meminfo includes the stacks of a JVM.
func (m *MemorySnapshot) noted() known.Int {
	if m.meminfo == nil {
		return known.Int{}
	}
	return m.meminfo.Stack
}

func (m *MemorySnapshot) mapped() known.Int {
	if m.smaps == nil {
		return known.Int{}
	}
	for _, k := range composition(m.smaps).Kinds {
		if k.Kind == footprint.Stack {
			return known.Of(k.After.Cost())
		}
	}
	return known.Int{}
}

// graphicsState is the graphics memory of the process, from several services.
type graphicsState struct {
	gfxinfo *dumpsys.GfxProcess
	gpu     known.Int // bytes
	buffers *dumpsys.SurfaceFlinger
}

// maxArtifact is the maximum size of an artifact that is read at once, in
// bytes.
const maxArtifact = 32 << 20

// reader parses one artifact: it adds the values to the snapshot and returns
// the lines of a summary.
type reader func(c *Case, m *MemorySnapshot, text []byte) ([]string, error)

// readers holds the readers by file name. A fallback method whose output has a
// different format uses a different file name.
var readers = map[string]reader{
	"smaps.txt":          readSmaps,
	"showmap.txt":        readShowmap,
	"status.txt":         readStatus,
	threadsFile:          readThreads,
	"thread_ids.txt":     readThreadIDs,
	"meminfo.txt":        readMeminfo,
	"smaps_meminfo.txt":  readMeminfo,
	"gfxinfo.txt":        readGfxinfo,
	"gpu.txt":            readGPU,
	"surfaceflinger.txt": readSurfaceFlinger,
	"maps.txt":           readMaps,
	"logcat.txt":         readLogcat,
	"exit_info.txt":      readExitInfo,
}

// readSnapshot reads the artifacts of a case and returns their summaries by
// file name. The snapshot is nil if it has no values for a later comparison.
func readSnapshot(c *Case) (*MemorySnapshot, map[string][]string) {
	m, said, some := &MemorySnapshot{}, map[string][]string{}, false
	for _, s := range c.Record.Steps {
		if s.File == "" || s.Step == heapStep {
			continue
		}
		read, known := readers[s.File]
		if !known {
			read = readOther
		}
		lines, err := c.readOne(m, s.File, read)
		if err != nil {
			c.warn(fmt.Errorf("read %s: %w", s.File, err))
			continue
		}
		said[s.File], some = lines, some || known
	}
	if !some {
		return nil, said
	}
	return m, said
}

func (c *Case) readOne(m *MemorySnapshot, file string, read reader) ([]string, error) {
	text, err := c.folder.content(file)
	if err != nil {
		return nil, err
	}
	return read(c, m, text)
}

// content returns the content of a file in the folder.
func (f folder) content(name string) ([]byte, error) {
	file, size, err := open(f.in(name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if size > maxArtifact {
		return nil, fmt.Errorf("it has %d bytes, more than %d", size, maxArtifact)
	}
	return io.ReadAll(io.LimitReader(file, size))
}

// readSmaps sums the mappings. smaps is better than showmap because it has
// addresses.
func readSmaps(c *Case, m *MemorySnapshot, text []byte) ([]string, error) {
	maps := footprint.NewMap()
	sum, err := procfs.ScanSmaps(bytes.NewReader(text), func(x *procfs.Mapping) error {
		maps.Add(footprint.Mapping{
			Name: x.Name, Start: x.Start, End: x.End, Perms: x.Perms,
			Usage: footprint.Usage{PSS: x.Pss, SwapPSS: x.SwapPss, Size: x.Size, PrivateDirty: x.PrivateDirty},
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if sum.Truncated {
		return nil, errors.New("truncated")
	}
	m.smaps = maps
	return composed(maps), nil
}

// readShowmap sums the rows, each of which may combine many mappings.
func readShowmap(c *Case, m *MemorySnapshot, text []byte) ([]string, error) {
	table, err := procfs.ParseShowmap(text)
	if err != nil {
		return nil, err
	}
	maps := footprint.NewMap()
	for _, r := range table.Rows {
		n := int64(1)
		if r.Count.Known {
			n = r.Count.N
		}
		maps.Add(footprint.Mapping{
			Name: []byte(r.Object), Start: r.Start, End: r.End, Mappings: n,
			Usage: footprint.Usage{PSS: r.PSS, SwapPSS: r.SwapPss, Size: r.Size, PrivateDirty: r.PrivateDirty},
		})
	}
	m.showmap = maps
	return composed(maps), nil
}

// readMaps only counts the mappings: growth is found in smaps, and maps.txt is
// collected for the addresses of the mappings.
func readMaps(_ *Case, _ *MemorySnapshot, text []byte) ([]string, error) {
	return []string{fmt.Sprintf("the addresses of %d mappings", bytes.Count(text, []byte("\n")))}, nil
}

// readOther describes output that this package cannot parse: that of a user's
// step.
func readOther(_ *Case, _ *MemorySnapshot, content []byte) ([]string, error) {
	lines := bytes.Count(content, []byte("\n"))
	if len(content) > 0 && content[len(content)-1] != '\n' {
		lines++
	}
	first, _, _ := bytes.Cut(content, []byte("\n"))
	begin := text.Head(string(first), maxWords)
	if lines == 1 {
		return []string{begin}, nil
	}
	return []string{fmt.Sprintf("%d lines; the first: %s", lines, begin)}, nil
}

// composition returns the mappings of a process as growth from nothing: the
// rows sorted by size.
func composition(maps *footprint.Map) footprint.MapGrowth {
	return footprint.CompareMaps(footprint.NewMap(), maps)
}

// toldRows is the maximum number of rows of a list in a summary. toldFindings
// is the maximum number of findings of one list in a record.
const (
	toldRows     = 8
	toldFindings = 15
)

// composed summarizes the mappings of a process: their total, the sum of each
// kind, and the largest rows.
func composed(maps *footprint.Map) []string {
	g := composition(maps)
	total := g.Total.After
	lines := []string{fmt.Sprintf("Pss + SwapPss %s in %d mappings", text.KB(total.Cost()), total.Mappings)}
	for _, k := range g.Kinds {
		lines = append(lines, fmt.Sprintf("  %-10s %s", k.Kind, text.KB(k.After.Cost())))
	}
	lines = append(lines, "the largest:")
	for _, r := range g.Rows[:min(len(g.Rows), toldRows)] {
		lines = append(lines, fmt.Sprintf("  %10s  %s", text.KB(r.After.Cost()), r.Name))
	}
	return lines
}

func readStatus(c *Case, m *MemorySnapshot, content []byte) ([]string, error) {
	s, err := procfs.ParseStatus(content)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, x := range []struct {
		what string
		v    known.Int
	}{{"threads", s.Threads}} {
		if x.v.Known {
			lines = append(lines, fmt.Sprintf("%d %s", x.v.N, x.what))
		}
	}
	for _, x := range []struct {
		what string
		v    known.Int
	}{{"virtual size", s.VmSize}, {"resident", s.VmRSS}, {"anonymous", s.RssAnon}, {"of files", s.RssFile},
		{"shared", s.RssShmem}, {"in swap", s.VmSwap}} {
		if x.v.Known {
			lines = append(lines, fmt.Sprintf("%s %s", text.KB(x.v.N), x.what))
		}
	}
	return lines, nil
}

// readThreads parses the output of grep: /proc/PID/task/TID/comm:NAME.
func readThreads(c *Case, m *MemorySnapshot, text []byte) ([]string, error) {
	m.threads, _ = parseThreads(text)
	if len(m.threads) == 0 {
		return nil, errors.New("no thread found")
	}
	g := c.compareThreads(false, footprint.ThreadReading{}, footprint.ThreadReading{Threads: m.threads})
	lines := []string{fmt.Sprintf("%d threads in %d groups", g.After, len(g.Groups))}
	for _, x := range g.Groups[:min(len(g.Groups), toldRows)] {
		lines = append(lines, fmt.Sprintf("  %5d  %s", x.After, x.Pattern))
	}
	return lines, nil
}

// noName is used in place of the names of threads for which only ids are known.
const noName = "(unknown name)"

// readThreadIDs parses a list of ids without names.
func readThreadIDs(c *Case, m *MemorySnapshot, text []byte) ([]string, error) {
	for word := range strings.FieldsSeq(string(text)) {
		if tid, err := strconv.ParseInt(word, 10, 64); err == nil {
			m.nameless = append(m.nameless, footprint.Thread{TID: tid, Name: noName})
		}
	}
	return []string{fmt.Sprintf("%d threads, without names", len(m.nameless))}, nil
}

func readMeminfo(c *Case, m *MemorySnapshot, text []byte) ([]string, error) {
	info, err := dumpsys.ParseMeminfo(text)
	if err != nil {
		return nil, err
	}
	for i := range info.Blocks {
		b := &info.Blocks[i]
		if b.PID.Known && b.PID.N != int64(c.Process.PID) {
			continue
		}
		lines := blockLines(b)
		if len(lines) == 0 {
			return nil, errors.New("no total of the process found")
		}
		m.meminfo = b
		return lines, nil
	}
	return nil, errors.New("nothing found about the process")
}

func blockLines(b *dumpsys.Block) []string {
	var lines []string
	if b.TotalPss.Known {
		lines = append(lines, "TOTAL PSS "+text.KB(b.TotalPss.N))
	}
	for _, d := range dimensions(b) {
		if d.v.Known {
			lines = append(lines, fmt.Sprintf("  %-14s %s", d.name, text.KB(d.v.N)))
		}
	}
	for _, name := range []string{"Activities", "Views", "ViewRootImpl", "WebViews"} {
		if n, ok := b.Objects[name]; ok {
			lines = append(lines, fmt.Sprintf("  %-14s %d", name, n))
		}
	}
	return lines
}

type dimension struct {
	name string
	v    known.Int
}

// dimensions lists the rows of the App Summary.
func dimensions(b *dumpsys.Block) []dimension {
	return []dimension{
		{"Java Heap", b.JavaHeap}, {"Native Heap", b.NativeHeap}, {"Code", b.Code}, {"Stack", b.Stack},
		{"Graphics", b.Graphics}, {"Private Other", b.PrivateOther}, {"System", b.System},
	}
}
