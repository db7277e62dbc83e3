package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/capture/dumpsys"
	"github.com/leakgate/leakgate/capture/field"
	"github.com/leakgate/leakgate/capture/procfs"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// parseSchema names the format of what parse prints with --json.
const parseSchema = "leakgate.parse/1"

const (
	maxParseText = 64 << 20 // of one file; smaps is read as a stream and has no limit
	maxParseHead = 64 << 10 // of smaps, kept to find an error text in it
	maxTableRows = 20       // of one list, without --json
)

func parseVerb() verb {
	return verb{
		name: "parse", args: "KIND FILE [--json] [--pid N] [--process NAME]",
		summary: "what a parser reads from one device output",
		help: `Reads one saved output of a device ("-" = standard input, gzip too) and prints the
values that are in it. What the text does not hold is null; an error text of the
device is an answer too, and exits with 0.

KIND is one of ` + strings.Join(parseKindNames(), ", ") + `.
--pid and --process say whose lines of a logcat count; without them all do.`,
		example: "adb shell dumpsys meminfo com.shop | leakgate parse meminfo - --json",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			asJSON := fs.Bool("json", false, "print JSON")
			var of logOwner
			fs.Int64Var(&of.pid, "pid", 0, "of a logcat: the pid `N` of the process")
			fs.StringVar(&of.process, "process", "", "of a logcat: the `NAME` of the process")
			return func(c console, args []string) int {
				if len(args) != 2 {
					return parseVerb().wrong(c, fmt.Errorf("want a kind and a file, not %d arguments; kinds: %s", len(args), strings.Join(parseKindNames(), ", ")))
				}
				if of.pid < 0 || of != (logOwner{}) && args[0] != "logcat" {
					return parseVerb().wrong(c, errors.New("--pid and --process are for a logcat, and a pid is above 0"))
				}
				if err := runParseOf(args[0], args[1], *asJSON, of, c.in, c.out); err != nil {
					return parseVerb().wrong(c, err)
				}
				return exitOK
			}
		},
	}
}

// parseKind is one reader. The document carries what the text says; the error
// is only for a text that could not be read to its end.
type parseKind struct {
	name string
	read func(io.Reader) (document, error)
}

func parseKinds(of logOwner) []parseKind {
	return []parseKind{
		{"meminfo", wholeText(readMeminfo)},
		{"smaps", readSmaps},
		{"smaps_rollup", wholeText(readRollup)},
		{"showmap", wholeText(readShowmap)},
		{"status", wholeText(readStatus)},
		{"stat", wholeText(readStat)},
		{"gfxinfo", wholeText(readGfxinfo)},
		{"gpu", wholeText(readGPU)},
		{"surfaceflinger", wholeText(readSurfaceFlinger)},
		{"am_help", wholeText(readAmHelp)},
		{"exitinfo", wholeText(readExitInfo)},
		{"logcat", of.readLogcat},
	}
}

func parseKindNames() (names []string) {
	for _, k := range parseKinds(logOwner{}) {
		names = append(names, k.name)
	}
	return names
}

// runParse is runParseOf with a log of any process.
func runParse(kind, path string, asJSON bool, in io.Reader, out io.Writer) error {
	return runParseOf(kind, path, asJSON, logOwner{}, in, out)
}

// runParseOf reads path as kind and prints what is in it. An error means that
// nothing was printed: an unknown kind, or a file that cannot be read.
func runParseOf(kind, path string, asJSON bool, of logOwner, in io.Reader, out io.Writer) error {
	read, err := readerOf(kind, of)
	if err != nil {
		return err
	}
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	in, err = ungzip(in)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	doc, err := read(in)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	f := doc.head()
	f.Schema, f.Kind = parseSchema, kind
	if f.Warnings == nil {
		f.Warnings = []string{}
	}
	if !asJSON {
		w := bufio.NewWriter(out)
		tellDocument(w, doc)
		return w.Flush()
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(doc)
}

func readerOf(kind string, of logOwner) (func(io.Reader) (document, error), error) {
	for _, k := range parseKinds(of) {
		if k.name == kind {
			return k.read, nil
		}
	}
	names := parseKindNames()
	return nil, fmt.Errorf("unknown kind %q%s; kinds: %s", kind, meant(kind, names, ""), strings.Join(names, ", "))
}

// ungzip takes gzip off, if there is any.
func ungzip(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	magic, err := b.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return b, nil
	}
	return gzip.NewReader(b)
}

// wholeText makes a reader of one that wants the whole text.
func wholeText(read func([]byte) document) func(io.Reader) (document, error) {
	return func(r io.Reader) (document, error) {
		text, err := io.ReadAll(io.LimitReader(r, maxParseText+1))
		if err != nil {
			return nil, err
		}
		doc := read(text[:min(len(text), maxParseText)])
		if len(text) > maxParseText {
			doc.head().Truncated = true
		}
		return doc, nil
	}
}

// document is what parse prints.
type document interface{ head() *parseHead }

// parseHead is in each document. Truncated means that the text shows that it
// was cut.
type parseHead struct {
	Schema    string      `json:"schema"`
	Kind      string      `json:"kind"`
	Truncated bool        `json:"truncated"`
	Error     *parseError `json:"error"`
	Warnings  []string    `json:"warnings"`
}

func (h *parseHead) head() *parseHead { return h }

func (h *parseHead) warn(warnings []error) {
	for _, w := range warnings {
		h.Warnings = append(h.Warnings, w.Error())
	}
}

type parseError struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

func deviceWords(e dumpsys.DeviceError) *parseError {
	return &parseError{Kind: string(e.Kind), Text: e.Text}
}

// parseFailure is the document of a text that holds no answer.
type parseFailure struct {
	parseHead
	Blocks []parseBlock `json:"blocks"` // always empty
}

// noAnswer finds the device's words in a text that err says is no answer.
func noAnswer(text []byte, err error) document {
	doc := &parseFailure{Blocks: []parseBlock{}}
	var said dumpsys.DeviceError
	if errors.As(err, &said) {
		doc.Error = deviceWords(said)
		return doc
	}
	if said, ok := dumpsys.ClassifyError(text); ok {
		doc.Error = deviceWords(said)
		return doc
	}
	doc.Error = &parseError{Kind: string(dumpsys.Format), Text: err.Error()}
	if errors.Is(err, procfs.ErrEmpty) {
		doc.Error.Kind = string(dumpsys.Empty)
	}
	return doc
}

// numberOrNull gives a number, or nil where it is unknown.
func numberOrNull(v field.Value) *int64 {
	if !v.Known {
		return nil
	}
	return &v.N
}

func yesOrNull(a dumpsys.Answer) *bool {
	if a == dumpsys.Unknown {
		return nil
	}
	yes := a == dumpsys.Yes
	return &yes
}

// nameOrNull gives a name, or nil where there is none.
func nameOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

type parseMeminfo struct {
	parseHead
	Blocks []parseBlock `json:"blocks"`
}

type parseBlock struct {
	PID     *int64  `json:"pid"`
	Process *string `json:"process"`
	// swap_pss_kb is the total of the swap column as printed. It is a
	// proportional share, and in the total, only where swap_in_total; otherwise
	// it is the plain swap.
	record.Breakdown
	Objects map[string]int64 `json:"objects"`
	// Computed: the release prints no App Summary, so the dimensions are made
	// from the rows.
	Computed  bool `json:"computed"`
	Truncated bool `json:"truncated"`
}

func readMeminfo(text []byte) document {
	m, err := dumpsys.ParseMeminfo(text)
	if err != nil {
		return noAnswer(text, err)
	}
	doc := &parseMeminfo{}
	doc.warn(m.Warnings)
	if m.BrokenOff != nil {
		doc.Error = deviceWords(*m.BrokenOff)
	}
	for _, b := range m.Blocks {
		swap := b.SwapPss
		if b.SwapInTotal == dumpsys.No {
			swap = b.Swap
		}
		doc.Blocks = append(doc.Blocks, parseBlock{
			PID: numberOrNull(b.PID), Process: nameOrNull(b.Process), Objects: b.Objects, Computed: b.Computed, Truncated: b.Truncated,
			Breakdown: record.Breakdown{
				TotalPSS: numberOrNull(b.TotalPss), SwapPSS: numberOrNull(swap), SwapInTotal: yesOrNull(b.SwapInTotal), RSS: numberOrNull(b.TotalRss),
				JavaHeap: numberOrNull(b.JavaHeap), NativeHeap: numberOrNull(b.NativeHeap), Code: numberOrNull(b.Code), Stack: numberOrNull(b.Stack),
				Graphics: numberOrNull(b.Graphics), PrivateOther: numberOrNull(b.PrivateOther), System: numberOrNull(b.System),
				EGL: numberOrNull(b.EGLMtrack), GL: numberOrNull(b.GLMtrack), OtherMtrack: numberOrNull(b.OtherMtrack),
				GfxDev: numberOrNull(b.GfxDev), OtherDev: numberOrNull(b.OtherDev),
			},
		})
		doc.Truncated = doc.Truncated || b.Truncated
		doc.warn(b.Warnings)
	}
	return doc
}

type parseMemory struct {
	parseHead
	PSS          *int64 `json:"pss_kb"`
	SwapPSS      *int64 `json:"swap_pss_kb"`
	RSS          *int64 `json:"rss_kb"`
	Swap         *int64 `json:"swap_kb"`
	PrivateDirty *int64 `json:"private_dirty_kb"`
	PrivateClean *int64 `json:"private_clean_kb"`
	PSSAnon      *int64 `json:"pss_anon_kb,omitempty"`
	Mappings     *int64 `json:"mappings,omitempty"`
}

func memoryDocument(m procfs.Memory) document {
	doc := &parseMemory{
		PSS: numberOrNull(m.Pss), SwapPSS: numberOrNull(m.SwapPss), RSS: numberOrNull(m.Rss), Swap: numberOrNull(m.Swap),
		PrivateDirty: numberOrNull(m.PrivateDirty), PrivateClean: numberOrNull(m.PrivateClean), PSSAnon: numberOrNull(m.PssAnon), Mappings: numberOrNull(m.Mappings),
	}
	doc.Truncated = m.Truncated
	doc.warn(m.Warnings)
	return doc
}

func readRollup(text []byte) document {
	m, err := procfs.ParseRollup(text)
	if err != nil {
		return noAnswer(text, err)
	}
	return memoryDocument(m)
}

// readSmaps streams: the smaps of a large app has several MB.
func readSmaps(r io.Reader) (document, error) {
	var first headWriter
	m, err := procfs.ParseSmaps(io.TeeReader(r, &first))
	if errors.Is(err, procfs.ErrEmpty) || errors.Is(err, procfs.ErrFormat) {
		return noAnswer(first.text, err), nil
	}
	if err != nil {
		return nil, err
	}
	return memoryDocument(m), nil
}

// headWriter keeps the first bytes of a stream.
type headWriter struct{ text []byte }

func (h *headWriter) Write(p []byte) (int, error) {
	h.text = append(h.text, p[:min(len(p), maxParseHead-len(h.text))]...)
	return len(p), nil
}

type parseShowmap struct {
	parseHead
	PSS          *int64 `json:"pss_kb"`
	SwapPSS      *int64 `json:"swap_pss_kb"`
	RSS          *int64 `json:"rss_kb"`
	Size         *int64 `json:"size_kb"`
	SharedClean  *int64 `json:"shared_clean_kb"`
	SharedDirty  *int64 `json:"shared_dirty_kb"`
	PrivateClean *int64 `json:"private_clean_kb"`
	PrivateDirty *int64 `json:"private_dirty_kb"`
	Swap         *int64 `json:"swap_kb"`
	Mappings     *int64 `json:"mappings"`
	// Rows is the number of rows, unknown if the text ends before TOTAL.
	Rows    *int64          `json:"rows"`
	Objects []showmapObject `json:"objects"`
}

type showmapObject struct {
	Object       string `json:"object"`
	PSS          *int64 `json:"pss_kb"`
	SwapPSS      *int64 `json:"swap_pss_kb"`
	PrivateDirty *int64 `json:"private_dirty_kb"`
	PrivateClean *int64 `json:"private_clean_kb"`
}

func readShowmap(text []byte) document {
	m, err := procfs.ParseShowmap(text)
	if err != nil {
		return noAnswer(text, err)
	}
	t := m.Total
	doc := &parseShowmap{
		PSS: numberOrNull(t.PSS), SwapPSS: numberOrNull(t.SwapPss), RSS: numberOrNull(t.RSS), Size: numberOrNull(t.Size),
		SharedClean: numberOrNull(t.SharedClean), SharedDirty: numberOrNull(t.SharedDirty),
		PrivateClean: numberOrNull(t.PrivateClean), PrivateDirty: numberOrNull(t.PrivateDirty), Swap: numberOrNull(t.Swap), Mappings: numberOrNull(t.Count),
		Objects: []showmapObject{},
	}
	if !m.Truncated {
		rows := int64(len(m.Rows))
		doc.Rows = &rows
	}
	for _, r := range m.Rows {
		doc.Objects = append(doc.Objects, showmapObject{r.Object, numberOrNull(r.PSS), numberOrNull(r.SwapPss), numberOrNull(r.PrivateDirty), numberOrNull(r.PrivateClean)})
	}
	doc.Truncated = m.Truncated
	doc.warn(m.Warnings)
	return doc
}

type parseStatus struct {
	parseHead
	Name     *string `json:"name"`
	PID      *int64  `json:"pid"`
	UID      *int64  `json:"uid"`
	Threads  *int64  `json:"threads"`
	VMSize   *int64  `json:"vm_size_kb"`
	VMRSS    *int64  `json:"vm_rss_kb"`
	RSSAnon  *int64  `json:"rss_anon_kb"`
	RSSFile  *int64  `json:"rss_file_kb"`
	RSSShmem *int64  `json:"rss_shmem_kb"`
	VMSwap   *int64  `json:"vm_swap_kb"`
}

func readStatus(text []byte) document {
	s, err := procfs.ParseStatus(text)
	if err != nil {
		return noAnswer(text, err)
	}
	doc := &parseStatus{
		Name: nameOrNull(s.Name), PID: numberOrNull(s.PID), UID: numberOrNull(s.UID), Threads: numberOrNull(s.Threads), VMSize: numberOrNull(s.VmSize), VMRSS: numberOrNull(s.VmRSS),
		RSSAnon: numberOrNull(s.RssAnon), RSSFile: numberOrNull(s.RssFile), RSSShmem: numberOrNull(s.RssShmem), VMSwap: numberOrNull(s.VmSwap),
	}
	doc.Truncated = s.Truncated
	doc.warn(s.Warnings)
	return doc
}

type parseStat struct {
	parseHead
	PID        int64   `json:"pid"`
	Comm       string  `json:"comm"`
	State      *string `json:"state"`
	PPID       *int64  `json:"ppid"`
	Utime      *int64  `json:"utime_ticks"`
	Stime      *int64  `json:"stime_ticks"`
	Threads    *int64  `json:"threads"`
	StartTicks *int64  `json:"start_ticks"`
}

func readStat(text []byte) document {
	s, err := procfs.ParseStat(text)
	if err != nil {
		return noAnswer(text, err)
	}
	doc := &parseStat{
		PID: s.PID, Comm: s.Comm, PPID: numberOrNull(s.PPID), Utime: numberOrNull(s.Utime), Stime: numberOrNull(s.Stime),
		Threads: numberOrNull(s.Threads), StartTicks: numberOrNull(s.StartTicks),
	}
	if s.State != 0 {
		doc.State = nameOrNull(string(rune(s.State)))
	}
	doc.Truncated = s.Truncated
	doc.warn(s.Warnings)
	return doc
}

type parseGfxinfo struct {
	parseHead
	// The values of the process, where there is one.
	*gfxValues
	Processes []gfxProcess `json:"processes"`
}

type gfxProcess struct {
	PID     *int64  `json:"pid"`
	Process *string `json:"process"`
	gfxValues
}

type gfxValues struct {
	GPUBytes    *int64 `json:"total_gpu_memory_bytes"`
	GrallocKB   *int64 `json:"gralloc_kb"` // imported by gralloc
	AllocatorKB *int64 `json:"allocator_kb"`
	Views       *int64 `json:"views"`
	ViewRoots   *int64 `json:"view_roots"`
}

func readGfxinfo(text []byte) document {
	g, err := dumpsys.ParseGfxinfo(text)
	if err != nil {
		return noAnswer(text, err)
	}
	doc := &parseGfxinfo{}
	if g.BrokenOff != nil {
		doc.Error = deviceWords(*g.BrokenOff)
	}
	for _, p := range g.Processes {
		doc.Processes = append(doc.Processes, gfxProcess{numberOrNull(p.PID), nameOrNull(p.Process),
			gfxValues{numberOrNull(p.GPUBytes), numberOrNull(p.GrallocKB), numberOrNull(p.AllocatorKB), numberOrNull(p.Views), numberOrNull(p.ViewRoots)}})
	}
	if len(doc.Processes) == 1 {
		doc.gfxValues = &doc.Processes[0].gfxValues
	}
	doc.Truncated = g.Truncated
	doc.warn(g.Warnings)
	return doc
}

type parseGPU struct {
	parseHead
	Global    *int64       `json:"global_bytes"`
	Processes []gpuProcess `json:"processes"`
}

type gpuProcess struct {
	PID   int64  `json:"pid"`
	Bytes *int64 `json:"bytes"`
}

func readGPU(text []byte) document {
	g, err := dumpsys.ParseGPU(text)
	if err != nil {
		return noAnswer(text, err)
	}
	doc := &parseGPU{Global: numberOrNull(g.Global()), Processes: []gpuProcess{}}
	for _, p := range g.Processes() {
		doc.Processes = append(doc.Processes, gpuProcess{p.PID, numberOrNull(p.Bytes)})
	}
	doc.Truncated = g.Truncated
	doc.warn(g.Warnings)
	return doc
}

type parseSurfaceFlinger struct {
	parseHead
	Buffers         *int64        `json:"buffers"`
	TotalKB         *int64        `json:"total_kb"`
	ImportedBuffers *int64        `json:"imported_buffers"`
	ImportedKB      *int64        `json:"imported_kb"`
	List            []flungBuffer `json:"list"`
	Imported        []flungBuffer `json:"imported"`
}

type flungBuffer struct {
	KB        *int64  `json:"kb"`
	Requestor *string `json:"requestor"`
}

func flung(list []dumpsys.Buffer) []flungBuffer {
	out := make([]flungBuffer, len(list))
	for i, b := range list {
		out[i] = flungBuffer{numberOrNull(b.KB), nameOrNull(b.Requestor)}
	}
	return out
}

func readSurfaceFlinger(text []byte) document {
	s, err := dumpsys.ParseSurfaceFlinger(text)
	if err != nil {
		return noAnswer(text, err)
	}
	doc := &parseSurfaceFlinger{
		Buffers: numberOrNull(s.Buffers), TotalKB: numberOrNull(s.TotalKB), ImportedBuffers: numberOrNull(s.ImportedBuffers), ImportedKB: numberOrNull(s.ImportedKB),
		List: flung(s.List), Imported: flung(s.Imported),
	}
	doc.Truncated = s.Truncated
	doc.warn(s.Warnings)
	return doc
}

type parseAmHelp struct {
	parseHead
	Dumpheap dumpheapOptions `json:"dumpheap"`
}

type dumpheapOptions struct {
	GC         *bool `json:"gc"`
	Bitmaps    *bool `json:"bitmaps"`
	Native     *bool `json:"native"`
	MallocInfo *bool `json:"malloc_info"`
	User       *bool `json:"user"`
}

func readAmHelp(text []byte) document {
	h, err := dumpsys.ParseAmHelp(text)
	if err != nil {
		return noAnswer(text, err)
	}
	return &parseAmHelp{Dumpheap: dumpheapOptions{yesOrNull(h.GC), yesOrNull(h.Bitmaps), yesOrNull(h.Native), yesOrNull(h.MallocInfo), yesOrNull(h.User)}}
}

type parseExitInfo struct {
	parseHead
	Persisted *string    `json:"persisted"`
	Exits     []exitInfo `json:"exits"`
}

type exitInfo struct {
	Package     *string `json:"package"`
	Timestamp   *string `json:"timestamp"`
	PID         *int64  `json:"pid"`
	UID         *int64  `json:"uid"`
	User        *int64  `json:"user"`
	Process     *string `json:"process"`
	Reason      *int64  `json:"reason"`
	ReasonName  *string `json:"reason_name"`
	Subreason   *int64  `json:"subreason"`
	SubName     *string `json:"subreason_name"`
	Status      *int64  `json:"status"`
	Importance  *int64  `json:"importance"`
	PSS         *int64  `json:"pss_kb"`
	RSS         *int64  `json:"rss_kb"`
	Description *string `json:"description"`
	Trace       *string `json:"trace"`
	Crash       bool    `json:"crash"`
	Kill        bool    `json:"kill"`
}

func readExitInfo(text []byte) document {
	info, err := dumpsys.ParseExitInfo(text)
	if err != nil {
		return noAnswer(text, err)
	}
	doc := &parseExitInfo{Persisted: nameOrNull(info.Persisted), Exits: []exitInfo{}}
	for _, e := range info.Exits {
		doc.Exits = append(doc.Exits, exitInfo{
			Package: nameOrNull(e.Package), Timestamp: nameOrNull(e.Timestamp), PID: numberOrNull(e.PID), UID: numberOrNull(e.RealUID), User: numberOrNull(e.User),
			Process: nameOrNull(e.Process), Reason: numberOrNull(e.Reason), ReasonName: nameOrNull(e.ReasonName),
			Subreason: numberOrNull(e.Subreason), SubName: nameOrNull(e.SubreasonName), Status: numberOrNull(e.Status), Importance: numberOrNull(e.Importance),
			PSS: numberOrNull(e.Pss), RSS: numberOrNull(e.Rss), Description: nameOrNull(e.Description), Trace: nameOrNull(e.Trace),
			Crash: e.Crash(), Kill: e.Kill(),
		})
	}
	doc.Truncated = info.Truncated
	doc.warn(info.Warnings)
	return doc
}

// logOwner is the process whose lines of a log count; the zero logOwner is any.
type logOwner struct {
	pid     int64
	process string
}

type parseLogcat struct {
	parseHead
	Entries      int64        `json:"entries"`
	First        *string      `json:"first"`
	Last         *string      `json:"last"`
	Crash        bool         `json:"crash"`
	Kill         bool         `json:"kill"`
	Exception    *string      `json:"exception"`
	Signal       *string      `json:"signal"`
	KillReason   *string      `json:"kill_reason"`
	HeapUsed     *int64       `json:"heap_used_kb"`
	HeapTotal    *int64       `json:"heap_total_kb"`
	LongestPause *int64       `json:"longest_gc_pause_us"`
	Causes       []logCause   `json:"gc_causes"`
	Mentions     []logMention `json:"mentions"`
}

type logCause struct {
	Cause string `json:"cause"`
	Count int64  `json:"count"`
}

type logMention struct {
	Kind  string  `json:"kind"`
	Count int64   `json:"count"`
	First *string `json:"first"`
	Last  *string `json:"last"`
	Line  string  `json:"line"`
}

// readLogcat streams: the buffers of a phone have up to 64 MB.
func (of logOwner) readLogcat(r io.Reader) (document, error) {
	log, err := dumpsys.ScanLogcat(r, of.pid, of.process)
	var said dumpsys.DeviceError
	if errors.As(err, &said) {
		return noAnswer(nil, err), nil
	}
	if err != nil {
		return nil, err
	}
	doc := &parseLogcat{
		Entries: log.Entries, First: nameOrNull(log.First), Last: nameOrNull(log.Last), Crash: log.Crash(), Kill: log.Kill(),
		Exception: nameOrNull(log.Exception), Signal: nameOrNull(log.Signal), KillReason: nameOrNull(log.KillReason),
		HeapUsed: numberOrNull(log.GC.HeapUsed), HeapTotal: numberOrNull(log.GC.HeapTotal), LongestPause: numberOrNull(log.GC.LongestPause),
		Causes: []logCause{}, Mentions: []logMention{},
	}
	for _, cause := range slices.Sorted(maps.Keys(log.GC.Causes)) {
		doc.Causes = append(doc.Causes, logCause{cause, log.GC.Causes[cause]})
	}
	for _, kind := range dumpsys.LogKinds() {
		if m, ok := log.Mentions[kind]; ok {
			doc.Mentions = append(doc.Mentions, logMention{string(kind), m.Count, nameOrNull(m.First), nameOrNull(m.Last), m.Line})
		}
	}
	doc.Truncated = log.Truncated
	doc.warn(log.Warnings)
	return doc, nil
}

// tellDocument prints a document for people: a name and a value a line, lists
// indented and cut short.
func tellDocument(w io.Writer, doc document) {
	h := doc.head()
	if h.Error != nil {
		fmt.Fprintf(w, "the device says (%s): %s\n", h.Error.Kind, text.Printable(h.Error.Text))
	}
	tellFields(w, reflect.ValueOf(doc).Elem(), "")
	if h.Truncated {
		fmt.Fprintln(w, "the text is cut")
	}
	for _, warning := range h.Warnings {
		fmt.Fprintf(w, "warning: %s\n", text.Printable(warning))
	}
}

func tellFields(w io.Writer, v reflect.Value, indent string) {
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Type == reflect.TypeFor[parseHead]():
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			tellFields(w, value, indent)
		case f.Anonymous: // the values of the one process, told in the list
		case f.Type.Kind() == reflect.Struct:
			fmt.Fprintf(w, "%s%s\n", indent, name)
			tellFields(w, value, indent+"  ")
		case f.Type.Kind() == reflect.Slice:
			tellList(w, name, value, indent)
		default:
			fmt.Fprintf(w, "%s%-24s %s\n", indent, name, tellValue(value))
		}
	}
}

func tellList(w io.Writer, name string, list reflect.Value, indent string) {
	fmt.Fprintf(w, "%s%s: %d\n", indent, name, list.Len())
	for i := range min(list.Len(), maxTableRows) {
		fmt.Fprintf(w, "%s- %d\n", indent, i+1)
		tellFields(w, list.Index(i), indent+"  ")
	}
	if more := list.Len() - maxTableRows; more > 0 {
		fmt.Fprintf(w, "%s... and %d more: --json prints all\n", indent, more)
	}
}

func tellValue(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "-"
		}
		return tellValue(v.Elem())
	case reflect.String:
		return text.Printable(v.String())
	case reflect.Map:
		if v.IsNil() {
			return "-"
		}
		return text.Printable(strings.TrimPrefix(fmt.Sprint(v.Interface()), "map"))
	}
	return fmt.Sprint(v.Interface())
}
