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

// maxEntries bounds the directory of a zip file.
const maxEntries = 1000

// extract returns the file of that name in a zip file. Nothing is written to
// disk and nothing else is unpacked. It rejects names that a file system could
// interpret as the same, anything but a plain file, and more than limit bytes,
// whatever the directory claims.
func extract(zipped []byte, name string, limit int64) ([]byte, error) {
	archive, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
	// ErrInsecurePath is about names of other files, and comes with a reader.
	// The requested name is compared with a valid one.
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
	// One byte more than allowed, so that the end, and with it the checksum, is
	// read.
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", text.Quote(name, 100), err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %s", text.Quote(name, 100), text.Size(limit))
	}
	return data, nil
}

// onlyEntry returns the only entry that may be called name.
func onlyEntry(files []*zip.File, name string) (*zip.File, error) {
	var found *zip.File
	for _, f := range files {
		if !strings.EqualFold(flat(f.Name), flat(name)) {
			continue
		}
		if found != nil || f.Name != name {
			return nil, fmt.Errorf("zip file has several spellings of %s, or an invalid one", text.Quote(name, 100))
		}
		found = f
	}
	const encrypted = 0x1
	switch {
	case found == nil:
		return nil, fmt.Errorf("zip file has no %s: %w", text.Quote(name, 100), fs.ErrNotExist)
	case !found.Mode().IsRegular() || found.Flags&encrypted != 0:
		return nil, fmt.Errorf("%s is not a plain file", text.Quote(name, 100))
	}
	return found, nil
}

// flat returns what a careless program would make of a name.
func flat(name string) string {
	return strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(name, `\`, "/")), "/")
}
