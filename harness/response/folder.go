package response

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/reporters"
)

// folder is where the artifacts of one diagnosis are.
type folder struct {
	// name is the path below the run directory, with slashes; path that on the host.
	name, path string
}

// Artifacts is the folder of a run directory that has all of them.
const Artifacts = "artifacts"

// newFolder makes artifacts/PROCESS/TIME-KIND, with a number behind where there is one
// already.
func (r *Responder) newFolder(o Order) (folder, error) {
	word := o.Kind
	if word == "" || o.Recipe == Snapshot || o.Recipe == HeapOnly {
		word = o.Recipe
	}
	process := safe(o.Process.Name)
	if o.Process.User != 0 {
		process = fmt.Sprintf("%s-user%d", process, o.Process.User)
	}
	name := path.Join(Artifacts, process, time.Now().UTC().Format("20060102T150405Z")+"-"+safe(word))
	if err := os.MkdirAll(filepath.Join(r.dir, filepath.FromSlash(path.Dir(name))), 0o755); err != nil {
		return folder{}, fmt.Errorf("make folder for artifacts: %w", err)
	}
	for n := 1; ; n++ {
		f := folder{name: name}
		if n > 1 {
			f.name = fmt.Sprintf("%s-%d", name, n)
		}
		f.path = filepath.Join(r.dir, filepath.FromSlash(f.name))
		err := os.Mkdir(f.path, 0o755)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrExist) || n > maxAlike {
			return folder{}, fmt.Errorf("make folder for artifacts: %w", err)
		}
	}
}

// maxAlike bounds the folders of one process, kind and second.
const maxAlike = 1000

// maxFolderName keeps a path below what Windows takes.
const maxFolderName = 80

// safe makes a name of a folder that every file system, and every store of artifacts,
// takes: of a process such as com.shop:push.
func safe(name string) string {
	out := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' {
			return c
		}
		return '_'
	}, name)
	// A leading dot hides or climbs, a trailing one is cut off on Windows.
	out = strings.TrimLeft(out, ".")
	out = strings.TrimRight(out[:min(len(out), maxFolderName)], ".")
	if out == "" {
		return "_"
	}
	return out
}

// in is the path of a file of the folder on the host.
func (f folder) in(name string) string { return filepath.Join(f.path, name) }

// text writes a text of lines that are Printable, whole or not at all.
func (f folder) text(name string, lines []string) error {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(reporters.Printable(line))
		b.WriteByte('\n')
	}
	return reporters.WriteWhole(f.in(name), []byte(b.String()))
}

// heapStep is the step of a recipe that dumps the heap.
const heapStep = "heap"

// open lets the other steps of a CI job read what was collected, as the rest of a run
// directory. A heap dump stays closed as long as all of it is there.
func (f folder) open(steps []capture.Outcome) error {
	for _, s := range steps {
		if s.File == "" || s.Step == heapStep {
			continue
		}
		if err := os.Chmod(f.in(s.File), 0o644); err != nil {
			return fmt.Errorf("open artifact: %w", err)
		}
	}
	return nil
}

// beside is the name of the text that stands beside an artifact.
func beside(file string) string { return file + ".summary.txt" }

// write writes diagnosis.json.
func (c *Case) write() error {
	record := c.Record
	record.Schema = reporters.DiagnosisSchema
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("encode diagnosis.json: %w", err)
	}
	return reporters.WriteWhole(c.folder.in("diagnosis.json"), append(text, '\n'))
}
