package comparison

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/leakgate/leakgate/internal/text"
)

// defaultFile is the file in which a leak is reported if the file that declares
// its suspect is unknown.
const defaultFile = "leakgate.yaml"

// maxCodeQuality is the maximum number of entries in a report, because GitLab
// compares all of them with the entries of the target branch.
const maxCodeQuality = 5000

// codeQualityIssue is an entry in GitLab's code quality report:
// https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
type codeQualityIssue struct {
	Description string              `json:"description"`
	CheckName   string              `json:"check_name"`
	Fingerprint string              `json:"fingerprint"`
	Severity    string              `json:"severity"`
	Location    codeQualityLocation `json:"location"`
}

type codeQualityLocation struct {
	Path  string `json:"path"`
	Lines struct {
		Begin int `json:"begin"`
	} `json:"lines"`
}

// WriteCodeQuality writes the leaks that fail the gate as a GitLab code quality
// report. Each leak is reported in the file that declares its suspect, or else
// in the given file, by default leakgate.yaml.
func WriteCodeQuality(w io.Writer, c *Comparison, file string) error {
	c = c.published()
	issues := []codeQualityIssue{}
	seen := map[string]bool{}
	for i := range c.Leaks {
		r := &c.Leaks[i]
		// A leak that occurs on several devices is reported as one entry,
		// because GitLab needs unique fingerprints.
		id := r.fingerprint()
		if !r.Fails || seen[id] || len(issues) == maxCodeQuality {
			continue
		}
		seen[id] = true
		issue := codeQualityIssue{Description: r.summary(), CheckName: r.ruleID(), Fingerprint: id, Severity: "major"}
		issue.Location.Path, issue.Location.Lines.Begin = r.place(fallback(file))
		issues = append(issues, issue)
	}
	out, err := json.MarshalIndent(issues, "", "  ")
	if err != nil {
		return fmt.Errorf("encode code quality report: %w", err)
	}
	if _, err := w.Write(append(out, '\n')); err != nil {
		return fmt.Errorf("write code quality report: %w", err)
	}
	return nil
}

func fallback(file string) string { return cmp.Or(repositoryPath(file), defaultFile) }

// fingerprint returns a value that is the same for the same leak of a process
// in every run.
func (r *Row) fingerprint() string {
	sum := sha256.Sum256([]byte("leakgate/1\x00" + r.Process + "\x00" + r.Type + "\x00" + r.Key))
	return hex.EncodeToString(sum[:20])
}

// ruleID returns the name of the kind of problem that a row describes.
func (r *Row) ruleID() string {
	switch {
	case r.Type == whatTrend:
		return "leakgate/growth"
	case r.worse():
		return "leakgate/" + string(r.Status)
	}
	return "leakgate/leak"
}

// summary describes a leak in one line of plain text.
func (r *Row) summary() string {
	line := fmt.Sprintf("%s leak: %s", r.Status, r.name())
	switch {
	case r.Type == whatTrend:
		line = fmt.Sprintf("%s growth over time: %s", r.Status, r.name())
	case r.Type == whatMeasure:
		line = fmt.Sprintf("%s: %s, %s", r.Status, r.name(), r.kind())
	case r.kind() != "":
		line = fmt.Sprintf("%s %s: %s", r.Status, r.kind(), r.name())
	}
	if r.HeldBy != "" {
		line += ", held by " + r.HeldBy
	}
	if f := r.left(); f.head != "" {
		line += "; " + f.onTerminal() + " " + perUnit(r.Unit)
	}
	if f := r.each(); f.head != "" {
		line += ", " + f.onTerminal() + " each"
	}
	if r.Evidence != "" {
		line += "; " + r.Evidence
	}
	return text.Head(line+"; in "+r.Process+", key "+r.shortKey(), maxText)
}
