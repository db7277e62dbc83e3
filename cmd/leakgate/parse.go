package main

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/text"
)

// parseSchema names the format of parse --json.
const parseSchema = "leakgate.parse/1"

const (
	maxParseText = 64 << 20 // for one file; smaps is streamed and has no limit
	maxParseHead = 64 << 10 // for the beginning of smaps, which is searched for an error message
	maxTableRows = 20       // for the entries of one list, without --json
)

func parseCommand(c *console) *cobra.Command {
	var asJSON bool
	var of logOwner
	cmd := &cobra.Command{
		Use: "parse KIND FILE", GroupID: groupRecords,
		Short: "print what a parser reads from device output",
		Long: `Read saved output of a device and print the values in it. FILE may be compressed with
gzip; "-" is standard input. A value that is not in FILE is null. An error message from
the device is reported as such.

KIND is one of ` + strings.Join(parseKindNames(), ", ") + `.`,
		Example: `  adb shell dumpsys meminfo com.shop | leakgate parse meminfo - --json
  leakgate parse logcat night.log.gz --process com.shop`,
		Annotations: manual{
			exits: "0 FILE was read, even if it contains an error message from the device\n" +
				"2 the command line is invalid, or the file cannot be read",
			page: "docs/formats/parse.md",
		}.annotations(),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return parseKindNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: c.run(func(c console, args []string) int {
			if len(args) != 2 {
				return c.usage(
					fmt.Errorf("want two arguments, a kind and a file, got %d; kinds: %s", len(args),
						strings.Join(parseKindNames(), ", ")))
			}
			if of != (logOwner{}) && args[0] != "logcat" {
				return c.usage(errors.New("--pid and --process are only for kind logcat"))
			}
			if err := runParseOf(args[0], args[1], asJSON, of, c.in, c.out); err != nil {
				return c.usage(err)
			}
			return exitOK
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&asJSON, "json", false, jsonUsage)
	flags.Var(number(&of.pid, "N", 1), "pid", "logcat: pid of the process whose lines are read")
	flags.Var(word(&of.process, "NAME"), "process", "logcat: name of the process whose lines are read")
	return cmd
}

// parseKind is one kind of device output. read returns an error only if the
// input could not be read completely; problems in the content are reported in
// the document.
type parseKind struct {
	name string
	read func(io.Reader) (*document, error)
}

func parseKinds(of logOwner) []parseKind {
	return []parseKind{
		{"meminfo", whole(dumpsys.ParseMeminfo, (*document).meminfo)},
		{"smaps", readSmaps},
		{"smaps_rollup", whole(procfs.ParseRollup, (*document).memory)},
		{"showmap", whole(procfs.ParseShowmap, (*document).showmap)},
		{"status", whole(procfs.ParseStatus, func(d *document, s procfs.Status) { d.set(s, s.Truncated, s.Warnings) })},
		{"stat", whole(procfs.ParseStat, func(d *document, s procfs.Stat) { d.set(s, s.Truncated, s.Warnings) })},
		{"gfxinfo", whole(dumpsys.ParseGfxinfo, (*document).gfxinfo)},
		{"gpu", whole(dumpsys.ParseGPU, (*document).gpu)},
		{"surfaceflinger", whole(dumpsys.ParseSurfaceFlinger, (*document).surfaceFlinger)},
		{"am_help", whole(dumpsys.ParseAmHelp, (*document).amHelp)},
		{"exitinfo", whole(dumpsys.ParseExitInfo, (*document).exitInfo)},
		{"logcat", of.readLogcat},
	}
}

func parseKindNames() (names []string) {
	for _, k := range parseKinds(logOwner{}) {
		names = append(names, k.name)
	}
	return names
}

// runParse is like runParseOf, but includes the log lines of all processes.
func runParse(kind, path string, asJSON bool, in io.Reader, out io.Writer) error {
	return runParseOf(kind, path, asJSON, logOwner{}, in, out)
}

// runParseOf reads path as kind and prints its content. An error means that
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
	source, err := textOnly(in)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	doc, err := read(source)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	doc.Schema, doc.Kind = parseSchema, kind
	if !asJSON {
		w := bufio.NewWriter(out)
		doc.write(w)
		return w.Flush()
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(doc)
}

func readerOf(kind string, of logOwner) (func(io.Reader) (*document, error), error) {
	for _, k := range parseKinds(of) {
		if k.name == kind {
			return k.read, nil
		}
	}
	names := parseKindNames()
	return nil, fmt.Errorf("unknown kind %q%s: want %s", kind, suggestion(kind, names, ""), alternatives(names))
}

// textOnly returns the input, or an error if it is not text from a device. It
// rejects files that leakgate or another program wrote, and binary data, in
// which a parser could match anything by chance.
func textOnly(in io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(in, spool.IdentifySize)
	head, err := b.Peek(spool.IdentifySize)
	switch what := spool.Identify(head); {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case text.IsUTF16(head):
		return nil, text.ErrUTF16
	case what != "":
		return nil, fmt.Errorf("want device output as text, got %s", what)
	}
	return b, nil
}

// ungzip decompresses the input if it is compressed with gzip.
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

// whole converts a parser that needs the entire input at once to a reader.
func whole[T any](parse func([]byte) (T, error), fill func(*document, T)) func(io.Reader) (*document, error) {
	return func(r io.Reader) (*document, error) {
		text, err := io.ReadAll(io.LimitReader(r, maxParseText+1))
		if err != nil {
			return nil, err
		}
		doc := newDocument()
		read := text[:min(len(text), maxParseText)]
		if parsed, err := parse(read); err != nil {
			doc.refuse(read, err)
		} else {
			fill(doc, parsed)
		}
		doc.Truncated = doc.Truncated || len(text) > maxParseText
		return doc, nil
	}
}

// document is the output of parse: first the values that all kinds of input
// have in common, then the values specific to this kind.
type document struct {
	Schema    string      `json:"schema"`
	Kind      string      `json:"kind"`
	Truncated bool        `json:"truncated"` // the input was recognized as truncated
	Error     *parseError `json:"error"`
	Warnings  []string    `json:"warnings"`

	values any // a struct with JSON tags
}

type parseError struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

func newDocument() *document { return &document{Warnings: []string{}} }

// MarshalJSON encodes the common and the specific values as one JSON object.
func (d *document) MarshalJSON() ([]byte, error) {
	type common document // a type without this method
	head, err := marshalRaw((*common)(d))
	if err != nil {
		return nil, err
	}
	values, err := marshalRaw(d.values)
	if err != nil {
		return nil, err
	}
	return append(append(head[:len(head)-1], ','), values[1:]...), nil
}

// marshalRaw encodes a value as JSON without escaping <, > and &.
func marshalRaw(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func (d *document) set(values any, truncated bool, warnings []error) {
	d.values, d.Truncated = values, truncated
	d.warn(warnings)
}

func (d *document) warn(warnings []error) {
	for _, w := range warnings {
		d.Warnings = append(d.Warnings, w.Error())
	}
}

func (d *document) deviceSaid(e dumpsys.DeviceError) {
	d.Error = &parseError{Kind: string(e.Kind), Text: e.Text}
}

// refuse records why the parser rejected the input: the device's error message
// if the input contains one, otherwise err.
func (d *document) refuse(text []byte, err error) {
	d.values = struct {
		Blocks []string `json:"blocks"`
	}{[]string{}}
	said, ok := errors.AsType[dumpsys.DeviceError](err)
	if !ok {
		said, ok = dumpsys.ClassifyError(text)
	}
	switch {
	case ok:
		d.deviceSaid(said)
	case errors.Is(err, procfs.ErrEmpty):
		d.Error = &parseError{Kind: string(dumpsys.Empty), Text: err.Error()}
	default:
		d.Error = &parseError{Kind: string(dumpsys.Format), Text: err.Error()}
	}
}

func (d *document) meminfo(m dumpsys.Meminfo) {
	d.warn(m.Warnings)
	if m.Interrupted != nil {
		d.deviceSaid(*m.Interrupted)
	}
	for i, b := range m.Blocks {
		m.Blocks[i].SwapPss = b.AnySwap()
		d.Truncated = d.Truncated || b.Truncated
		d.warn(b.Warnings)
	}
	d.values = struct {
		Blocks []dumpsys.Block `json:"blocks"`
	}{m.Blocks}
}

func (d *document) memory(m procfs.Memory) { d.set(m, m.Truncated, m.Warnings) }

// readSmaps reads a stream, because the smaps file of a large app is several MB
// long.
func readSmaps(r io.Reader) (*document, error) {
	var first headWriter
	m, err := procfs.ParseSmaps(io.TeeReader(r, &first))
	doc := newDocument()
	switch {
	case errors.Is(err, procfs.ErrEmpty) || errors.Is(err, procfs.ErrFormat):
		doc.refuse(first.text, err)
	case err != nil:
		return nil, err
	default:
		doc.memory(m)
	}
	return doc, nil
}

// headWriter keeps the first bytes of a stream.
type headWriter struct{ text []byte }

func (h *headWriter) Write(p []byte) (int, error) {
	h.text = append(h.text, p[:min(len(p), maxParseHead-len(h.text))]...)
	return len(p), nil
}

func (d *document) showmap(m procfs.Showmap) {
	rows := known.Of(int64(len(m.Rows)))
	if m.Truncated {
		rows = known.Int{}
	}
	t := m.Total
	d.set(struct {
		PSS          known.Int           `json:"pss_kb"`
		SwapPSS      known.Int           `json:"swap_pss_kb"`
		RSS          known.Int           `json:"rss_kb"`
		Size         known.Int           `json:"size_kb"`
		SharedClean  known.Int           `json:"shared_clean_kb"`
		SharedDirty  known.Int           `json:"shared_dirty_kb"`
		PrivateClean known.Int           `json:"private_clean_kb"`
		PrivateDirty known.Int           `json:"private_dirty_kb"`
		Swap         known.Int           `json:"swap_kb"`
		Mappings     known.Int           `json:"mappings"`
		Rows         known.Int           `json:"rows"` // unknown if the input ends before the TOTAL line
		Objects      []procfs.ShowmapRow `json:"objects"`
	}{t.PSS, t.SwapPss, t.RSS, t.Size, t.SharedClean, t.SharedDirty, t.PrivateClean, t.PrivateDirty, t.Swap, t.Count,
		rows, append([]procfs.ShowmapRow{}, m.Rows...)}, m.Truncated, m.Warnings)
}

func (d *document) gfxinfo(g dumpsys.Gfxinfo) {
	if g.Interrupted != nil {
		d.deviceSaid(*g.Interrupted)
	}
	var one *dumpsys.GfxValues // the values of the process, if it was found
	if len(g.Processes) == 1 {
		one = &g.Processes[0].GfxValues
	}
	d.set(struct {
		*dumpsys.GfxValues
		Processes []dumpsys.GfxProcess `json:"processes"`
	}{one, g.Processes}, g.Truncated, g.Warnings)
}

func (d *document) gpu(g dumpsys.GPU) {
	d.set(struct {
		Global    known.Int            `json:"global_bytes"`
		Processes []dumpsys.GPUProcess `json:"processes"`
	}{g.Global(), append([]dumpsys.GPUProcess{}, g.Processes()...)}, g.Truncated, g.Warnings)
}

func (d *document) surfaceFlinger(s dumpsys.SurfaceFlinger) {
	s.List, s.Imported = append([]dumpsys.Buffer{}, s.List...), append([]dumpsys.Buffer{}, s.Imported...)
	d.set(s, s.Truncated, s.Warnings)
}

func (d *document) amHelp(h dumpsys.AmHelp) {
	d.values = struct {
		Dumpheap dumpsys.AmHelp `json:"dumpheap"`
	}{h}
}

func (d *document) exitInfo(info dumpsys.ExitInfo) {
	type exit struct {
		dumpsys.Exit
		Crash bool `json:"crash"`
		Kill  bool `json:"kill"`
	}
	exits := []exit{}
	for _, e := range info.Exits {
		exits = append(exits, exit{e, e.Crash(), e.Kill()})
	}
	d.set(struct {
		Persisted field.Text `json:"persisted"`
		Exits     []exit     `json:"exits"`
	}{info.Persisted, exits}, info.Truncated, info.Warnings)
}

// logOwner selects the process whose log lines count; the zero logOwner selects
// all.
type logOwner struct {
	pid     int64
	process string
}

type logCause struct {
	Cause string `json:"cause"`
	Count int64  `json:"count"`
}

type logMention struct {
	Kind dumpsys.LogKind `json:"kind"`
	dumpsys.Mention
}

// readLogcat reads a stream, because the log buffers of a phone hold up to 64
// MB.
func (of logOwner) readLogcat(r io.Reader) (*document, error) {
	log, err := dumpsys.ScanLogcat(r, of.pid, of.process)
	doc := newDocument()
	if errors.As(err, new(dumpsys.DeviceError)) {
		doc.refuse(nil, err)
		return doc, nil
	}
	if err != nil {
		return nil, err
	}
	causes, mentions := []logCause{}, []logMention{}
	for _, cause := range slices.Sorted(maps.Keys(log.GC.Causes)) {
		causes = append(causes, logCause{cause, log.GC.Causes[cause]})
	}
	for _, kind := range dumpsys.LogKinds() {
		if m, ok := log.Mentions[kind]; ok {
			mentions = append(mentions, logMention{kind, m})
		}
	}
	doc.set(struct {
		Entries int64      `json:"entries"`
		First   field.Text `json:"first"`
		Last    field.Text `json:"last"`
		Crash   bool       `json:"crash"`
		Kill    bool       `json:"kill"`
		dumpsys.LogEnd
		dumpsys.GC
		Causes   []logCause   `json:"gc_causes"`
		Mentions []logMention `json:"mentions"`
	}{log.Entries, log.First, log.Last, log.Crash(), log.Kill(), log.LogEnd, log.GC, causes, mentions}, log.Truncated,
		log.Warnings)
	return doc, nil
}

// write prints a document in human-readable form, with one name and value per
// line. Lists are indented and shortened.
func (d *document) write(w io.Writer) {
	if d.Error != nil {
		fmt.Fprintf(w, "device error (%s): %s\n", d.Error.Kind, text.Printable(d.Error.Text))
	}
	writeFields(w, reflect.ValueOf(d.values), "")
	if d.Truncated {
		fmt.Fprintln(w, "the text is truncated")
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(w, "warning: %s\n", text.Printable(warning))
	}
}

func writeFields(w io.Writer, v reflect.Value, indent string) {
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		_, scalar := value.Interface().(json.Marshaler)
		switch {
		case name == "-":
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			writeFields(w, value, indent)
		case f.Anonymous: // the values of the only process, which the list contains too
		case !scalar && f.Type.Kind() == reflect.Struct:
			fmt.Fprintf(w, "%s%s\n", indent, name)
			writeFields(w, value, indent+"  ")
		case f.Type.Kind() == reflect.Slice:
			writeList(w, name, value, indent)
		default:
			fmt.Fprintf(w, "%s%-24s %s\n", indent, name, valueText(value.Interface()))
		}
	}
}

func writeList(w io.Writer, name string, list reflect.Value, indent string) {
	fmt.Fprintf(w, "%s%s: %d\n", indent, name, list.Len())
	for i := range min(list.Len(), maxTableRows) {
		fmt.Fprintf(w, "%s- %d\n", indent, i+1)
		writeFields(w, list.Index(i), indent+"  ")
	}
	if more := list.Len() - maxTableRows; more > 0 {
		fmt.Fprintf(w, "%s... and %d more: --json prints all\n", indent, more)
	}
}

// valueText formats a value in human-readable form; a value that is not in the
// input becomes "-".
func valueText(v any) string {
	switch v := v.(type) {
	case field.Text:
		return text.Printable(cmp.Or(string(v), "-"))
	case map[string]int64:
		if v == nil {
			return "-"
		}
		return text.Printable(strings.TrimPrefix(fmt.Sprint(v), "map"))
	case json.Marshaler:
		raw, _ := v.MarshalJSON() // a number, a letter or null: it cannot fail
		return strings.Trim(strings.ReplaceAll(string(raw), "null", "-"), `"`)
	}
	return text.Printable(fmt.Sprint(v))
}
