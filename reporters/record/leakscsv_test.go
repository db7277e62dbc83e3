package record

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// leaks.csv must be readable whatever the findings contain, and no spreadsheet
// may interpret a cell as a formula.
func TestLeaksTable(t *testing.T) {
	nasty := []string{
		"=cmd|'/C calc'!A0", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1", `"quoted", and, commas`, "two\nlines",
		"\x1b[2J", "plain", "",
	}
	run := Run{}
	for i, text := range nasty {
		d := Diagnosis{Trigger: TriggerLeak, Outcome: DiagnosisComplete}
		d.Device, d.Process, d.T, d.Folder = text, text, 0.125, text
		d.Findings = []Finding{
			{
				Type: "leak", Name: text, Count: new(int64(i)), CountDelta: new(int64(-i)), Bytes: new(int64(0)),
				Share: new(0.5), Fingerprint: text, Key: text, Trace: []string{text, "├─ x", text},
			},
			{Type: "mapping", Name: text},
		}
		run.Diagnoses = append(run.Diagnoses, d)
	}
	rows := table(t, run)
	if len(rows) != 1+2*len(nasty) || !reflect.DeepEqual(rows[0], leaksHeading) {
		t.Fatalf("%d rows, %q", len(rows), rows[0])
	}
	for i, row := range rows[1:] {
		for column, cell := range row {
			first, _ := utf8.DecodeRuneInString(cell)
			if _, err := fmt.Sscanf(cell, "%f", new(float64)); err == nil && column >= 9 && column <= 13 {
				continue // numbers that we write may be negative
			}
			if cell != "" && strings.ContainsRune("=+-@\t\r\n＝", first) || strings.ContainsAny(cell, "\x1b\r") {
				t.Errorf("row %d, %s: %q", i, leaksHeading[column], cell)
			}
		}
		if i%2 == 1 && strings.Join(row[9:16], "") != "" {
			t.Errorf("unknown values are written as %q, want empty cells", row[9:16])
		}
	}
	if got := rows[1+2*11]; got[2] != "plain" || got[4] != "0.125" || got[7] != "leak" || got[9] != "11" ||
		got[10] != "-11" || got[11] != "0" || got[12] != "" || got[13] != "0.5" || got[17] != "plain\n├─ x\nplain" {
		t.Errorf("%q", got)
	}
}

// The documentation page of the format must list every column of leaks.csv.
func TestLeaksTablePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/run.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "`leaks.csv` has")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, name := range leaksHeading {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("no column %s", name)
		}
	}
}

// table writes leaks.csv and reads it back.
func table(t *testing.T, run Run) [][]string {
	t.Helper()
	dir := t.TempDir()
	if err := WriteLeaks(dir, run); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, leaksName))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// The table must contain the heading and at most the first thousand findings of
// a run.
func TestLeaksTableIsBounded(t *testing.T) {
	if rows := table(t, Run{}); len(rows) != 1 {
		t.Errorf("%d rows", len(rows))
	}
	run := Run{}
	for i := range 7 {
		d := Diagnosis{PID: i}
		for j := range 300 {
			d.Findings = append(d.Findings, Finding{Name: fmt.Sprint(i*300 + j)})
		}
		run.Diagnoses = append(run.Diagnoses, d)
	}
	rows := table(t, run)
	if len(rows) != 1+maxRows {
		t.Fatalf("%d rows", len(rows))
	}
	for i, row := range rows[1:] {
		if row[8] != fmt.Sprint(i) {
			t.Fatalf("row %d is %s", i, row[8])
		}
	}
	if err := WriteLeaks(filepath.Join(t.TempDir(), "absent"), run); err == nil {
		t.Error("a table was written without a folder")
	}
}
