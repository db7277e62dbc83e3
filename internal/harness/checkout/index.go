package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

const (
	// maxSources is the maximum number of Java and Kotlin files.
	maxSources = 100_000
	// maxSource is the maximum size of one file in bytes; larger files are
	// skipped.
	maxSource = 2 << 20
	// maxSourceBytes is the maximum total size of all files in bytes.
	maxSourceBytes = 1 << 30
	// maxFields is the maximum number of fields.
	maxFields = 3_000_000
	// maxEntries is the maximum number of files and directories that are
	// visited without git.
	maxEntries = 1_000_000
	// readSources is the time limit for reading all files.
	readSources = 30 * time.Second
)

// index holds the classes that the sources of a checkout declare.
type index struct {
	classes map[string]indexedClass
	// incomplete is the reason why classes may be missing from the index; nil
	// if it is complete.
	incomplete error
}

type indexedClass struct {
	*declaredClass
	files []string // at least one; more than one if other files also declare the class
}

// maxFiles is the maximum number of files recorded for one class.
const maxFiles = 3

// newIndex reads all sources of the checkout. It returns an error only if ctx
// is done.
func (c *Checkout) newIndex(ctx context.Context) (*index, error) {
	x := &index{classes: map[string]indexedClass{}}
	root, err := os.OpenRoot(c.top)
	if err != nil {
		x.incomplete = err
		return x, nil
	}
	defer root.Close()
	limited, cancel := context.WithTimeout(ctx, readSources)
	defer cancel()
	files, err := c.sourceFiles(limited, root)
	if err == nil {
		err = x.read(limited, root, files)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	x.incomplete = err
	return x, nil
}

// read adds the classes of all files.
func (x *index) read(ctx context.Context, root *os.Root, files []string) error {
	bytes, fields := 0, 0
	for _, file := range files {
		if ctx.Err() != nil {
			return fmt.Errorf("not read within %v", readSources)
		}
		source, err := readFile(root, file, maxSource)
		if err != nil {
			continue // removed, a link, or too large: this file adds no classes
		}
		if bytes += len(source); bytes > maxSourceBytes {
			return fmt.Errorf("more than %d MB of sources", maxSourceBytes>>20)
		}
		for _, class := range declarations(file, string(source)) {
			if fields += 1 + len(class.fields); fields > maxFields {
				return fmt.Errorf("more than %d classes and fields", maxFields)
			}
			x.add(file, class)
		}
	}
	return nil
}

// add adds a class of a file. Names are cloned because they would otherwise
// keep the file's text in memory.
func (x *index) add(file string, class *declaredClass) {
	known, ok := x.classes[class.name]
	if !ok {
		class.name = strings.Clone(class.name)
		for i := range class.fields {
			class.fields[i].name = strings.Clone(class.fields[i].name)
		}
		x.classes[class.name] = indexedClass{class, []string{file}}
		return
	}
	if n := len(known.files); known.files[n-1] != file && n < maxFiles {
		known.files = append(known.files, file)
		x.classes[class.name] = known
	}
}

// sourceFiles returns the Java and Kotlin files that git tracks, or all such
// files if git cannot be used.
func (c *Checkout) sourceFiles(ctx context.Context, root *os.Root) ([]string, error) {
	if c.noGit != nil {
		return walkSources(ctx, root)
	}
	out, err := c.git(ctx, command{time: readSources, output: 64 << 20}, "ls-files", "-z", "--", "*.java", "*.kt")
	if err != nil {
		return nil, err
	}
	var files []string
	for file := range strings.SplitSeq(string(out), "\x00") {
		// a file with a conflict is listed three times
		if !isSource(file) || len(files) > 0 && files[len(files)-1] == file {
			continue
		}
		if files = append(files, file); len(files) > maxSources {
			return nil, fmt.Errorf("more than %d source files", maxSources)
		}
	}
	return files, nil
}

// walkSources finds the source files without git. It does not follow symbolic
// links.
func walkSources(ctx context.Context, root *os.Root) ([]string, error) {
	var files []string
	entries := 0
	err := fs.WalkDir(root.FS(), ".", func(file string, entry fs.DirEntry, err error) error {
		if entries++; entries > maxEntries {
			return fmt.Errorf("more than %d files and folders", maxEntries)
		}
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("not read within %v", readSources)
		case err != nil:
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir() && file != "." && isOutput(root, file):
			return fs.SkipDir
		case entry.Type().IsRegular() && isSource(file):
			files = append(files, file)
		}
		if len(files) > maxSources {
			return fmt.Errorf("more than %d source files", maxSources)
		}
		return nil
	})
	if err == nil && entries == 0 {
		err = errors.New("no files")
	}
	return files, err
}

// isOutput reports whether a directory is hidden, or contains downloaded or
// generated files. A package may be named build, so a directory with this name
// is skipped only if a Gradle build script or src is next to it.
func isOutput(root *os.Root, dir string) bool {
	base := path.Base(dir)
	if strings.HasPrefix(base, ".") || base == "node_modules" {
		return true
	}
	if base != "build" {
		return false
	}
	for _, sibling := range []string{"build.gradle", "build.gradle.kts", "src"} {
		if _, err := root.Lstat(path.Join(path.Dir(dir), sibling)); err == nil {
			return true
		}
	}
	return false
}
