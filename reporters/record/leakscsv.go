package record

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/text"
)

// leaksName is the name of the file in a run directory that contains the
// findings of all diagnoses as a table.
const leaksName = "leaks.csv"

// maxRows is the maximum number of findings in leaks.csv.
const maxRows = 1000

var leaksHeading = []string{
	"device", "user", "process", "pid", "t_s", "trigger", "kind", "type", "name", "count", "count_delta",
	"bytes", "bytes_delta", "share", "fingerprint", "key", "folder", "trace",
}

// WriteLeaks writes leaks.csv into dir atomically. It contains the first 1,000
// findings of a run. A cell that a spreadsheet would interpret as a formula is
// prefixed with an apostrophe (OWASP, CSV Injection).
func WriteLeaks(dir string, r Run) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	rows := 0
	if err := w.Write(leaksHeading); err != nil {
		return fmt.Errorf("encode %s: %w", leaksName, err)
	}
	for _, d := range r.Diagnoses {
		// A difference between two snapshots alone is not a leak.
		if d.Trigger == TriggerLast {
			continue
		}
		for _, f := range d.Findings {
			if rows++; rows > maxRows {
				break
			}
			if err := w.Write(leaksRow(d, f)); err != nil {
				return fmt.Errorf("encode %s: %w", leaksName, err)
			}
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("encode %s: %w", leaksName, err)
	}
	return WriteFileAtomic(filepath.Join(dir, leaksName), b.Bytes())
}

func leaksRow(d Diagnosis, f Finding) []string {
	share := ""
	if f.Share != nil {
		share = number(*f.Share)
	}
	lines := make([]string, len(f.Trace))
	for i, line := range f.Trace {
		lines[i] = text.Printable(line)
	}
	return []string{
		cell(d.Device), strconv.Itoa(d.User), cell(d.Process), strconv.Itoa(d.PID), number(d.T), cell(d.Trigger),
		cell(d.Kind.String()), cell(f.Type), cell(f.Name),
		whole(f.Count), whole(f.CountDelta), whole(f.Bytes), whole(f.BytesDelta), share, cell(f.Fingerprint),
		cell(f.Key), cell(d.Folder), formulaFree(strings.Join(lines, "\n")),
	}
}

func cell(s string) string { return formulaFree(text.Printable(s)) }

func formulaFree(text string) string {
	// Spreadsheets also interpret the full-width forms of these characters.
	first, _ := utf8.DecodeRuneInString(text)
	if text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + text
	}
	return text
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func whole(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}
