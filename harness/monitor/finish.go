package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/reporters/record"
)

// leftovers are prefixes of the names of files that exist only during a run.
var leftovers = []string{inboxName, record.SamplesName + ".new", ".run.json-", "." + record.SamplesName + ".new-"}

// Finish removes files that a killed run has left in its directory and that are
// not part of its record.
func Finish(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("finish run: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if slices.ContainsFunc(leftovers, func(begin string) bool { return strings.HasPrefix(e.Name(), begin) }) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("finish run: %w", err)
	}
	return nil
}
