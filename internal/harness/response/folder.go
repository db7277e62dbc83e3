package response

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/hostfile"
	"github.com/leakgate/leakgate/internal/retired"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// folder is the folder with the artifacts of one diagnosis.
type folder struct {
	// name is the path below the run directory, with slashes; path is the path
	// on the host.
	name, path string
}

// Artifacts is the name of the folder of a run directory that contains the
// folders of all diagnoses.
const Artifacts = "artifacts"

// newFolder creates artifacts/PROCESS/TIME-KIND, with a number appended if that
// folder already exists.
func (r *Responder) newFolder(o Order) (folder, error) {
	word := o.Kind.String()
	if word == "" || o.Recipe == Snapshot || o.Recipe == HeapOnly {
		word = o.Recipe
	}
	process := safe(o.Process.Key().Name)
	if o.Process.User != 0 {
		process = fmt.Sprintf("%s-user%d", process, o.Process.User)
	}
	name := path.Join(Artifacts, process, time.Now().UTC().Format("20060102T150405Z")+"-"+safe(word))
	if err := os.MkdirAll(filepath.Join(r.dir, filepath.FromSlash(path.Dir(name))), 0o700); err != nil {
		return folder{}, fmt.Errorf("create folder for artifacts: %w", err)
	}
	for n := 1; ; n++ {
		f := folder{name: name}
		if n > 1 {
			f.name = fmt.Sprintf("%s-%d", name, n)
		}
		f.path = filepath.Join(r.dir, filepath.FromSlash(f.name))
		err := os.Mkdir(f.path, 0o700)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrExist) || n > maxAlike {
			return folder{}, fmt.Errorf("create folder for artifacts: %w", err)
		}
	}
}

// maxAlike is the maximum number of folders that diagnoses of the same process
// and kind may create within one second.
const maxAlike = 1000

const (
	// maxFolderName is the maximum length of a folder's name; it keeps paths
	// below the limit of Windows.
	maxFolderName = 80
	// hashDigits is how many hex digits of the SHA-256 of a process name are
	// used in the name of a folder.
	hashDigits = 8
)

// safe returns a folder name for a process such as com.shop:push. Every file
// system and every artifact store accepts the name. Two processes never share a
// folder, even on case-insensitive file systems: a dash and a hash of the
// process name are appended if that name had to be changed, or contains a dash
// or an uppercase letter.
func safe(name string) string {
	out := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' {
			return c
		}
		return '_'
	}, name)
	// A leading dot would hide the folder or name its parent; Windows removes a
	// trailing dot.
	out = strings.Trim(out, ".")
	if out == "" {
		out = "_"
	}
	if reserved.MatchString(out) {
		out = "_" + out
	}
	if out == name && len(out) <= maxFolderName &&
		!strings.ContainsFunc(out, func(c rune) bool { return c == '-' || c >= 'A' && c <= 'Z' }) {
		return out
	}
	hash := sha256.Sum256([]byte(name))
	out = out[:min(len(out), maxFolderName-hashDigits-1)]
	return strings.TrimRight(out, ".") + "-" + hex.EncodeToString(hash[:])[:hashDigits]
}

// reserved matches the names that are devices on Windows, even when a dot and
// other characters follow.
var reserved = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[1-9]|lpt[1-9])(\.|$)`)

// paths returns the host paths to remove from strings: the files of a run must
// not contain absolute paths.
func (f folder) paths() hostfile.Paths {
	return hostfile.NewPaths(strings.TrimSuffix(f.path, filepath.FromSlash(f.name)))
}

// redactHostPaths returns a string without host paths.
func (f folder) redactHostPaths(text string) string { return f.paths().Text(text) }

// redactedError is an error whose message contains no host paths.
type redactedError struct {
	error
	text string
}

func (e redactedError) Error() string { return e.text }
func (e redactedError) Unwrap() error { return e.error }

func (r *Responder) redactHostPaths(err error) error {
	if err == nil {
		return nil
	}
	return redactedError{err, hostfile.NewPaths(r.dir).Error(err)}
}

// in returns the host path of a file in the folder.
func (f folder) in(name string) string { return filepath.Join(f.path, name) }

// text writes lines to a file in Printable form, either completely or not at
// all.
func (f folder) text(name string, lines []string) error {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(text.Printable(line))
		b.WriteByte('\n')
	}
	return record.WriteFileAtomic(f.in(name), []byte(b.String()))
}

// heapStep is the name of the step of a recipe that dumps the heap.
const heapStep = "heap"

// beside returns the name of the summary file beside an artifact, which may be
// packed.
func beside(file string) string { return unpacked(file) + ".summary.txt" }

// write writes diagnosis.json.
func (c *Case) write() error {
	d := c.Record
	d.Schema = record.DiagnosisSchema
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("encode diagnosis.json: %w", err)
	}
	return record.WriteFileAtomic(c.folder.in("diagnosis.json"), append(text, '\n'))
}

const (
	// maxRecord is the maximum size of a record on one line, in bytes.
	// maxWritten is the maximum size of diagnosis.json, which is indented.
	maxRecord  = 1 << 20
	maxWritten = 4 << 20
)

// read reads diagnosis.json, which is untrusted.
func (f folder) read() (d record.Diagnosis, err error) {
	file, _, err := open(f.in("diagnosis.json"))
	if err != nil {
		return d, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxWritten+1))
	switch {
	case err != nil:
		return d, err
	case len(text) > maxWritten:
		return d, fmt.Errorf("diagnosis.json has more than %d bytes", maxWritten)
	}
	// The retired key has the British spelling; the current key is "analyzed".
	if err := retired.Check(text, "took_s", "analysed"); err != nil {
		return d, fmt.Errorf("read diagnosis.json: %w", err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("decode diagnosis.json: %w", err)
	}
	if d.Schema != record.DiagnosisSchema || d.Folder != f.name || encoded(d) > maxRecord {
		return record.Diagnosis{}, errors.New("diagnosis.json does not belong to its folder")
	}
	d.Schema = ""
	return d, nil
}

// written returns a diagnosis with the results from its folder. It returns
// false if diagnosis.json contains no results, or is about a different
// diagnosis.
func (f folder) written(d record.Diagnosis) (record.Diagnosis, bool) {
	is, err := f.read()
	same := is.Device == d.Device && is.User == d.User && is.Process == d.Process && is.PID == d.PID &&
		is.T == d.T && is.Trigger == d.Trigger && is.Recipe == d.Recipe
	steps := slices.EqualFunc(is.Steps, d.Steps, func(is, was record.Collected) bool {
		return is.Step == was.Step && sameDump(is, was)
	})
	if err != nil || !is.Analyzed || !same || !steps {
		return d, false
	}
	d.Analyzed, d.Analysis, d.Steps = true, is.Analysis, is.Steps
	d.Leaks, d.LeaksOmitted, d.Undecided, d.Heap = is.Leaks, is.LeaksOmitted, is.Undecided, is.Heap
	d.Findings, d.Summary, d.Warnings = append([]record.Finding{}, is.Findings...), append([]string{}, is.Summary...),
		append([]string{}, is.Warnings...)
	return d, true
}
