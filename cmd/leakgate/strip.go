package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
)

func stripCommand(c *console) *cobra.Command {
	// Errors must not suggest --partial, which strip does not have.
	f := stripFlags{dumpFlags: dumpFlags{partial: true}}
	cmd := &cobra.Command{
		Use: "strip IN OUT", GroupID: groupDump,
		Short: "write a shareable copy of a heap dump",
		Long: `Write a shareable copy of a heap dump: all elements of primitive arrays are set to
zero, which removes the contents of strings and buffers and the pixels of bitmaps. Hash codes are
set to zero too, because short strings could be recovered from them. analyze finds the same
leaks in the copy.

The copy keeps the names of classes and fields, references, the lengths of strings and
arrays, and numbers in fields, such as coordinates, IDs and times.

IN may be compressed with gzip or zstd; "-" is standard input. OUT is a new file, written
uncompressed, or "-" for standard output. A truncated dump is stripped up to where it
ends. A damaged one is rejected.`,
		Example: "  leakgate strip shop.hprof shop-stripped.hprof\n  leakgate strip shop.hprof - | zstd > " +
			"shop-stripped.hprof.zst",
		Annotations: manual{
			exits: "0 the copy was written\n" + dumpExits, page: "docs/formats/hprof.md",
		}.annotations(),
		ValidArgsFunction: completeFiles(dumpExtensions...),
		RunE:              c.run(f.strip),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.asJSON, "json", false, jsonUsage)
	flags.BoolVar(&f.force, "force", false, "overwrite OUT if it exists")
	flags.Var(size(&f.spool), "spool-cap", spoolUsage)
	return cmd
}

type stripFlags struct {
	dumpFlags
	force bool
}

// stripSchema names the format of strippedReport.
const stripSchema = "leakgate.strip/1"

// strippedReport is what strip reports about a dump.
type strippedReport struct {
	Schema string `json:"schema"`
	// Bytes are the sizes of the uncompressed dump and of the copy.
	Bytes         int64    `json:"bytes"`
	Arrays        int64    `json:"arrays"`
	StrippedBytes int64    `json:"stripped_bytes"`
	Hashes        int64    `json:"hashes"`
	Truncated     bool     `json:"truncated"`
	Warnings      []string `json:"warnings"`
}

func (f *stripFlags) strip(c console, args []string) int {
	if len(args) != 2 {
		return c.usage(fmt.Errorf("want a heap dump and the file to write, or - for standard input and output, got %d",
			len(args)))
	}
	in, out := args[0], args[1]
	if err := distinct(in, out); err != nil {
		return c.usage(err)
	}
	if err := f.writable(c, out); err != nil {
		return c.usage(err)
	}
	ctx, stop := untilInterrupt()
	defer stop()
	return f.exit(c, in, f.stripIn(ctx, c, in, out))
}

// distinct returns an error if the copy would overwrite the dump.
func distinct(in, out string) error {
	if out != "-" && in != "-" && sameFile(in, out) {
		return fmt.Errorf("%s: OUT is the dump itself; name another file", text.Printable(out))
	}
	return nil
}

// writable returns an error if OUT cannot be written, before the program spends
// minutes reading a dump.
func (f *stripFlags) writable(c console, out string) error {
	if out == "-" {
		return f.streamable(c)
	}
	if out == "" {
		return errors.New("the name of OUT is empty")
	}
	if packing := strings.ToLower(filepath.Ext(out)); packing == ".gz" || packing == ".zst" {
		return fmt.Errorf("%s: OUT is written uncompressed; name it %s, or write to - and compress that",
			text.Printable(out), text.Printable(strings.TrimSuffix(out, filepath.Ext(out))))
	}
	info, err := os.Lstat(out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at OUT: %w", err)
	case info.IsDir():
		return fmt.Errorf("%s: OUT is a directory; name a file in it", text.Printable(out))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: OUT is not a regular file; name another, or - for standard output", text.Printable(out))
	case !f.force:
		return fmt.Errorf("%s: OUT exists; name another file, or overwrite it with --force", text.Printable(out))
	}
	return nil
}

// streamable returns an error if the dump cannot go to standard output.
func (f *stripFlags) streamable(c console) error {
	if f.asJSON {
		return errors.New("--json: the dump goes to standard output; name a file as OUT")
	}
	if c.onTerminal() {
		return errors.New("refusing to write binary data to a terminal; give OUT")
	}
	return nil
}

// stripIn strips the dump, and stops when ctx is done. If the user interrupts
// the command, the partial copy is removed. Only a copy on standard output may
// be truncated.
func (f *stripFlags) stripIn(ctx context.Context, c console, in, out string) error {
	done := make(chan error, 1)
	bar := newBar(c)
	defer bar.close()
	go func() { done <- f.copy(ctx, c, bar, in, out) }()
	if out != "-" {
		return <-done
	}
	err := untilDone(ctx, c, done)
	if errors.Is(err, context.Canceled) && !c.close() {
		return errCutShort
	}
	return err
}

func (f *stripFlags) copy(ctx context.Context, c console, bar *bar, in, out string) error {
	bar.phase("read the input")
	file, err := spool.Open(ctx, in, c.in, spool.Options{Cap: f.spool, Progress: bar.progress})
	if err != nil {
		return outside{err}
	}
	defer file.Close()
	if file.Damage != nil {
		return file.Damage
	}
	if spool.IsPerfetto(file, file.Size()) {
		return unusable{errPerfetto}
	}
	var done hprof.Stripped
	if out == "-" {
		done, err = stream(ctx, c, bar, file)
	} else {
		done, err = f.replace(ctx, bar, file, out)
	}
	if err != nil {
		return err
	}
	return f.tell(c, reportOf(file, done), in, out)
}

// stream writes to standard output. Output cannot be taken back, so stream
// first reads the whole dump once.
func stream(ctx context.Context, c console, bar *bar, file *spool.File) (hprof.Stripped, error) {
	bar.phase("check the dump")
	discard := &progressWriter{w: io.Discard, bar: bar, total: file.Size()}
	if done, err := hprof.Strip(ctx, discard, file, file.Size()); err != nil {
		return done, err
	}
	bar.phase("write the stripped dump")
	return hprof.Strip(ctx, &progressWriter{w: c.out, bar: bar, total: file.Size()}, file, file.Size())
}

// replace writes OUT under another name in the same directory, and renames it
// when it is complete.
func (f *stripFlags) replace(ctx context.Context, bar *bar, file *spool.File, out string) (done hprof.Stripped,
	err error) {
	bar.phase("write the stripped dump")
	part := filepath.Join(filepath.Dir(out), "."+filepath.Base(out)+"-"+rand.Text()[:8])
	w, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return done, outside{fmt.Errorf("create %s: %w", out, withoutPath(err))}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(part))
		}
	}()
	done, err = hprof.Strip(ctx, &progressWriter{w: w, bar: bar, total: file.Size()}, file, file.Size())
	if cerr := w.Close(); err == nil && cerr != nil {
		err = outside{fmt.Errorf("write %s: %w", out, withoutPath(cerr))}
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return done, err
	}
	// The file may have been created meanwhile.
	if !f.force {
		if _, there := os.Lstat(out); there == nil {
			return done, outside{fmt.Errorf("write %s: %w", out, fs.ErrExist)}
		}
	}
	if err = os.Rename(part, out); err != nil {
		err = outside{fmt.Errorf("write %s: %w", out, withoutPath(err))}
	}
	return done, err
}

// progressWriter shows the number of bytes written on a progress bar.
type progressWriter struct {
	w           io.Writer
	bar         *bar
	done, total int64
}

func (t *progressWriter) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	t.done += int64(n)
	t.bar.progress(t.done, t.total)
	if err != nil {
		return n, outside{withoutPath(err)}
	}
	return n, nil
}

// withoutPath removes the file name from an error, because it may be the name
// of a temporary file.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

func reportOf(file *spool.File, done hprof.Stripped) strippedReport {
	r := strippedReport{
		Schema: stripSchema, Bytes: file.Size(), Arrays: done.Arrays, StrippedBytes: done.Bytes, Hashes: done.Hashes,
		Truncated: done.Truncated || file.Truncated != nil, Warnings: []string{},
	}
	for _, err := range append([]error{file.Truncated}, done.Warnings...) {
		if err != nil {
			r.Warnings = append(r.Warnings, text.Printable(err.Error()))
		}
	}
	if r.Truncated {
		r.Warnings = append(r.Warnings, "the dump is truncated, and so is the stripped copy")
	}
	return r
}

func (f *stripFlags) tell(c console, r strippedReport, in, out string) error {
	if f.asJSON {
		return printed(printJSON(c.out, r))
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(c.err, "warning: %s\n", text)
	}
	if out == "-" {
		return nil
	}
	_, err := fmt.Fprintf(c.out, "%s: set %s of %s to zero: the elements of %s arrays and %s hash codes\n",
		text.Printable(out), text.Size(r.StrippedBytes), text.Size(r.Bytes), text.Grouped(r.Arrays),
		text.Grouped(r.Hashes))
	return printed(err)
}
