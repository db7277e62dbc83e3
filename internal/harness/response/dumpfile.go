package response

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// A heap dump is pulled as heap.hprof and kept as heap.hprof.zst, because a
// stripped dump is mostly zeros. Earlier versions kept the dump as heap.hprof.

// packed and unpacked return the two names that a dump can have.
func packed(file string) string   { return unpacked(file) + spool.PackedSuffix }
func unpacked(file string) string { return strings.TrimSuffix(file, spool.PackedSuffix) }

// open opens a file in a folder. It refuses pipes and does not follow links.
func open(path string) (*os.File, int64, error) {
	if info, err := os.Lstat(path); err != nil {
		return nil, 0, err
	} else if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a regular file", filepath.Base(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// dump is a heap dump that can be read at any offset.
type dump struct {
	io.ReaderAt
	io.Closer
	size int64
	// cut is the reason why the dump ends early, if its packed form is
	// truncated.
	cut error
}

// openDump opens a dump in a folder. A packed dump is unpacked into a temporary
// file. The folder is untrusted, so the temporary file may not become larger
// than the largest dump that a run pulls.
func (r *Responder) openDump(ctx context.Context, f folder, file string) (*dump, error) {
	in, size, err := open(f.in(file))
	if err != nil {
		return nil, err
	}
	if file == unpacked(file) {
		return &dump{in, in, size, nil}, nil
	}
	d, err := spool.OpenFile(ctx, file, in, spool.Options{Cap: r.options.maxDump})
	if errors.Is(err, spool.ErrCap) {
		return nil, fmt.Errorf("unpack %s: refused: more than %s, the maximum for a heap dump of a run",
			file, text.Size(r.options.maxDump))
	}
	if err != nil {
		return nil, err
	}
	if d.Damage != nil {
		return nil, errors.Join(d.Damage, d.Close())
	}
	return &dump{d, d, d.Size(), d.Truncated}, nil
}

// pack replaces a dump with its packed form, which is stripped unless the whole
// dump is kept, and returns the name of the packed file. The original is
// removed once the packed file is complete and on the disk. pack must not be
// interrupted, because no part of an unstripped dump may remain.
func (r *Responder) pack(f folder, file string) (string, error) {
	to := packed(file)
	if r.options.Keep == Raw && file == to {
		return to, nil
	}
	if err := r.writePacked(f, file, to); err != nil || file == to {
		return to, err
	}
	if err := os.Remove(f.in(file)); err != nil {
		return to, errors.Join(err, os.Remove(f.in(to)))
	}
	return to, nil
}

func (r *Responder) writePacked(f folder, file, to string) (err error) {
	in, err := r.openDump(context.Background(), f, file)
	if err != nil {
		return err
	}
	defer in.Close() // a second call after success
	out, err := os.CreateTemp(f.path, ".strip-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(out.Name()))
		}
	}()
	err = r.packInto(out, in)
	if err == nil {
		// The packed file must be intact after a power failure, because the
		// original has been removed.
		err = out.Sync()
	}
	// Windows can neither rename over an open file nor rename an open file.
	if err = errors.Join(err, out.Close(), in.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), f.in(to))
}

// packInto writes a dump in the form in which it is kept.
func (r *Responder) packInto(out io.Writer, in *dump) error {
	z, err := spool.Pack(out, in.size)
	if err != nil {
		return err
	}
	if r.options.Keep == Raw {
		_, err = io.Copy(z, io.NewSectionReader(in, 0, in.size))
	} else {
		_, err = hprof.Strip(context.Background(), z, in, in.size)
	}
	if err != nil {
		return err
	}
	return z.Close()
}

// moved records that a dump now has a different name.
func (c *Case) moved(file, to string) {
	info, err := os.Lstat(c.folder.in(to))
	if err != nil {
		return // kept and the next reader detect that the dump is gone
	}
	for i := range c.Record.Steps {
		if s := &c.Record.Steps[i]; s.File == file {
			s.File, s.Bytes = to, info.Size()
		}
	}
}

// remove removes a dump under both of its names, because a killed run may have
// left files under both. If that fails, left is the name of a file that still
// exists.
func (f folder) remove(file string) (left string, err error) {
	left = file
	for _, name := range []string{packed(file), unpacked(file)} {
		if name != file && !f.has(name) {
			continue
		}
		if gone := os.Remove(f.in(name)); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			left, err = name, errors.Join(err, gone)
		}
	}
	return left, err
}

// has reports whether there is a regular file with this name.
func (f folder) has(name string) bool {
	info, err := os.Lstat(f.in(name))
	return err == nil && info.Mode().IsRegular()
}

// findDumps replaces the name of a missing dump with that of its packed file:
// the run may have been killed after it packed the dump and before it recorded
// the new name.
func (c *Case) findDumps() {
	for _, s := range c.Record.Steps {
		if s.Step != heapStep || s.File == "" {
			continue
		}
		if _, err := os.Lstat(c.folder.in(s.File)); errors.Is(err, fs.ErrNotExist) && c.folder.has(packed(s.File)) {
			c.moved(s.File, packed(s.File))
		}
	}
}

// sameDump reports whether a step in diagnosis.json and a step in a line of
// samples.ndjson are about the same dump. A dump may have been packed or
// removed since the line was written.
func sameDump(is, was record.Collected) bool {
	return is.File == was.File || is.File == "" || is.Step == heapStep && is.File == packed(was.File)
}
