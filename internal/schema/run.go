package schema

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/reporters/record"
)

// DiffName is the name of the schema of `leakgate diff --json`, which is not
// part of a run directory.
const DiffName = "diff.json"

// packed is the suffix of compressed files.
const packed = ".zst"

// Files returns the schemas of the JSON files of a run directory and of a diff,
// by file name.
func Files() (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, make := range map[string]func() ([]byte, error){
		"run.json": func() ([]byte, error) { return Of("run.json of leakgate", reflect.TypeFor[record.Run]()) },
		"diagnosis.json": func() ([]byte, error) {
			return Of("diagnosis.json of leakgate", reflect.TypeFor[record.Diagnosis]())
		},
		"analysis.json": func() ([]byte, error) {
			return Of("analysis.json of leakgate", reflect.TypeFor[analysis.Report]())
		},
		"growth.json": func() ([]byte, error) {
			return Of("growth.json of leakgate", reflect.TypeFor[analysis.Growth]())
		},
		record.TripName: func() ([]byte, error) { return Of("trip.json of leakgate", reflect.TypeFor[record.Trip]()) },
		comparison.FileName: func() ([]byte, error) {
			return Of("gate.json of leakgate", reflect.TypeFor[comparison.Comparison]())
		},
		DiffName: func() ([]byte, error) { return Of("leakgate diff --json", reflect.TypeFor[analysis.Diff]()) },
		"heap.summary.json.zst": func() ([]byte, error) {
			return Of("heap.summary.json.zst of leakgate, unpacked", reflect.TypeOf((*analysis.Summary)(nil).Form()))
		},
		record.SamplesName: func() ([]byte, error) {
			return OneOf("a line of samples.ndjson of leakgate", reflect.TypeFor[record.Header](),
				reflect.TypeFor[record.Sample](), reflect.TypeFor[record.Event]())
		},
	} {
		text, err := make()
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", name, err)
		}
		out[name] = text
	}
	return out, nil
}

// compileFiles compiles the schemas once.
var compileFiles = sync.OnceValues(func() (map[string]*Schema, error) {
	files, err := Files()
	if err != nil {
		return nil, err
	}
	schemas := map[string]*Schema{}
	for name, text := range files {
		if schemas[name], err = Compile(text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return schemas, nil
})

// CheckRun checks every JSON file of a run directory against its schema, and
// returns the number of checked documents. A JSON file without a schema is an
// error.
func CheckRun(dir string) (checked int, err error) {
	schemas, err := compileFiles()
	if err != nil {
		return 0, err
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		end := filepath.Ext(strings.TrimSuffix(path, packed))
		if err != nil || e.IsDir() || end != ".json" && end != ".ndjson" {
			return err
		}
		s := schemas[e.Name()]
		if s == nil {
			return fmt.Errorf("%s has no schema", path)
		}
		text, err := read(path)
		if err != nil {
			return err
		}
		n, err := check(s, text, end == ".ndjson")
		checked += n
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	return checked, err
}

// read returns the decompressed content of a file.
func read(path string) ([]byte, error) {
	if !strings.HasSuffix(path, packed) {
		return os.ReadFile(path)
	}
	f, err := spool.Open(context.Background(), path, nil, spool.Options{})
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	return text, errors.Join(err, f.Close())
}

func check(s *Schema, text []byte, lines bool) (checked int, err error) {
	if !lines {
		return 1, s.Check(text)
	}
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, 1<<20+1)
	for in.Scan() {
		checked++
		if err := s.Check(in.Bytes()); err != nil {
			return checked, fmt.Errorf("line %d: %w", checked, err)
		}
	}
	return checked, in.Err()
}
