package github

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// maxEntries is the maximum number of entries in a zip file.
const maxEntries = 1000

// extract returns the file with the given name from a zip file. It writes
// nothing to disk and unpacks no other file. It rejects names that a file
// system could treat as the same name, anything but a regular file, and content
// of more than limit bytes, whatever size the directory claims.
func extract(zipped []byte, name string, limit int64) ([]byte, error) {
	archive, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
	// zip.ErrInsecurePath is ignored: the reader is usable nevertheless, and
	// only the file with the requested name, which is valid, is read.
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, fmt.Errorf("open zip file: %w", err)
	}
	if len(archive.File) > maxEntries {
		return nil, fmt.Errorf("open zip file: %d entries, want at most %d", len(archive.File), maxEntries)
	}
	entry, err := onlyEntry(archive.File, name)
	if err != nil {
		return nil, err
	}
	if entry.UncompressedSize64 > uint64(limit) {
		return nil, fmt.Errorf("%s has more than %s", text.Quote(name, 100), text.Size(limit))
	}
	r, err := entry.Open()
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", text.Quote(name, 100), err)
	}
	defer r.Close()
	// Try to read one byte more than allowed, in order to reach the end of the
	// file and verify the checksum.
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", text.Quote(name, 100), err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %s", text.Quote(name, 100), text.Size(limit))
	}
	return data, nil
}

// onlyEntry returns the entry called name, if there is exactly one.
func onlyEntry(files []*zip.File, name string) (*zip.File, error) {
	var found *zip.File
	for _, f := range files {
		if !strings.EqualFold(flat(f.Name), flat(name)) {
			continue
		}
		if found != nil || f.Name != name {
			return nil, fmt.Errorf("zip file has several spellings of %s, or an invalid spelling",
				text.Quote(name, 100))
		}
		found = f
	}
	const encrypted = 0x1
	switch {
	case found == nil:
		return nil, fmt.Errorf("zip file has no %s: %w", text.Quote(name, 100), fs.ErrNotExist)
	case !found.Mode().IsRegular() || found.Flags&encrypted != 0:
		return nil, fmt.Errorf("%s is not a regular file", text.Quote(name, 100))
	}
	return found, nil
}

// flat returns the name as a careless program would simplify it.
func flat(name string) string {
	return strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/")
}
