package schema

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"sync"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/reporters/record"
)

// Files are the schemas of the JSON files of a run directory, by the names of those files.
func Files() (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, make := range map[string]func() ([]byte, error){
		"run.json":       func() ([]byte, error) { return Of("run.json of leakgate", reflect.TypeFor[record.Run]()) },
		"diagnosis.json": func() ([]byte, error) { return Of("diagnosis.json of leakgate", reflect.TypeFor[record.Diagnosis]()) },
		"analysis.json":  func() ([]byte, error) { return Of("analysis.json of leakgate", reflect.TypeFor[analysis.Report]()) },
		"growth.json":    func() ([]byte, error) { return Of("growth.json of leakgate", reflect.TypeFor[analysis.Growth]()) },
		record.SamplesName: func() ([]byte, error) {
			return OneOf("a line of samples.ndjson of leakgate", reflect.TypeFor[record.Header](), reflect.TypeFor[record.Sample](), reflect.TypeFor[record.Event]())
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

// CheckRun checks every JSON file of a run directory against its schema, and returns how many
// documents it has checked. A file of JSON without a schema is an error.
func CheckRun(dir string) (checked int, err error) {
	schemas, err := compileFiles()
	if err != nil {
		return 0, err
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		end := filepath.Ext(path)
		if err != nil || e.IsDir() || end != ".json" && end != ".ndjson" {
			return err
		}
		s := schemas[e.Name()]
		if s == nil {
			return fmt.Errorf("%s has no schema", path)
		}
		text, err := os.ReadFile(path)
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
