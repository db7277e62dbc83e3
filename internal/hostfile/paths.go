package hostfile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Paths removes absolute paths of this machine from the messages that are
// written into one directory.
type Paths struct {
	root   string
	others []string
}

// NewPaths returns a Paths for a directory. Paths below this directory become
// relative to it. Paths below the home directory, the directory for temporary
// files and the current directory are reduced to their last element.
func NewPaths(root string) Paths {
	p := Paths{root: filepath.Clean(root)}
	if abs, err := filepath.Abs(root); err == nil {
		p.root = abs
	}
	home, _ := os.UserHomeDir() // "" if none exists
	cwd, _ := os.Getwd()
	for _, dir := range []string{os.TempDir(), home, cwd} {
		if dir = filepath.Clean(dir); deep(dir) && !slices.Contains(p.others, dir) {
			p.others = append(p.others, dir)
		}
	}
	return p
}

// deep reports whether a path is absolute and not the root of the file system.
func deep(dir string) bool { return filepath.IsAbs(dir) && dir != filepath.Dir(dir) }

// Text returns a message without the paths of the directory, the home
// directory, the directory for temporary files and the current directory. Other
// paths are kept, because they may be paths on a phone.
func (p Paths) Text(text string) string {
	if deep(p.root) {
		text = strings.ReplaceAll(text, p.root+string(filepath.Separator), "")
		text = replacePath(text, p.root, ".")
	}
	for _, dir := range p.others {
		text = shorten(text, dir)
	}
	return text
}

// Error returns the message of an error like Text. In addition, it shortens the
// paths named by the error's causes to their last elements, unless they are
// below the directory.
func (p Paths) Error(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	for _, path := range causes(err) {
		if deep(path) && !p.holds(path) {
			text = replacePath(text, path, filepath.Base(path))
		}
	}
	return p.Text(text)
}

// holds reports whether a path is equal to the directory or below it.
func (p Paths) holds(path string) bool {
	return path == p.root || strings.HasPrefix(path, p.root+string(filepath.Separator))
}

// causes returns the paths named by the causes of an error.
func causes(err error) []string {
	var out []string
	// Only this error is examined here; the errors that it wraps follow below.
	switch e := any(err).(type) {
	case *fs.PathError:
		out = append(out, e.Path)
	case *os.LinkError:
		out = append(out, e.Old, e.New)
	case *exec.Error:
		out = append(out, e.Name)
	case *net.OpError:
		if a, ok := e.Addr.(*net.UnixAddr); ok {
			out = append(out, a.Name)
		}
	}
	switch e := any(err).(type) {
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			out = append(out, causes(cause)...)
		}
	default:
		if cause := errors.Unwrap(err); cause != nil {
			out = append(out, causes(cause)...)
		}
	}
	return out
}

// replacePath replaces a path in a string, except where it is a part of a
// longer path.
func replacePath(text, path, by string) string {
	return each(text, path, func(rest string) (string, string) {
		if rest != "" && inPath(rest[0]) {
			return path, rest
		}
		return by, rest
	})
}

// shorten replaces paths below a directory with their last element.
func shorten(text, dir string) string {
	return each(text, dir, func(rest string) (string, string) {
		if rest != "" && rest[0] != filepath.Separator && inPath(rest[0]) {
			return dir, rest
		}
		end := strings.IndexAny(rest, " \t\n\"'`,;)]|")
		if end < 0 {
			end = len(rest)
		}
		below := strings.TrimRight(rest[:end], ":.")
		return filepath.Base(dir + below), rest[len(below):]
	})
}

// each finds the occurrences of a path in a string, except those at the end of
// a longer path, and calls a function for each occurrence. The function returns
// the replacement and the rest of the string, at which the search continues.
func each(text, path string, with func(rest string) (by, next string)) string {
	var out strings.Builder
	for {
		i := strings.Index(text, path)
		if i < 0 {
			break
		}
		before, rest := text[:i], text[i+len(path):]
		out.WriteString(before)
		if before != "" && inPath(before[len(before)-1]) && before[len(before)-1] != '/' {
			out.WriteString(path)
			text = rest
			continue
		}
		by, next := with(rest)
		out.WriteString(by)
		text = next
	}
	out.WriteString(text)
	return out.String()
}

// inPath reports whether a byte can be part of a path element.
func inPath(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '/' ||
		c >= 0x80
}
