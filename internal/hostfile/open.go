package hostfile

import (
	"fmt"
	"io"
	"os"
)

// Open opens a regular file for reading. It rejects other files, because
// opening a pipe would block until a writer opens it, and reading a device
// might never end.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: not a regular file", path)
	}
	return os.Open(path)
}

// Read returns the content of a regular file. It returns an error if the file
// is larger than the given number of bytes.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("read %s: larger than %d bytes", path, most)
	}
	return content, err
}
