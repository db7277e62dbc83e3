package comparison

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// These are the limits of a SARIF file: GitHub shows 5,000 results and accepts
// 10 MB, see
// https://docs.github.com/en/code-security/reference/code-scanning/sarif-files/troubleshoot-sarif-uploads
const (
	maxResults = 5000
	maxSARIF   = 9_000_000
)

// These are the parts of SARIF 2.1.0 that are written:
// https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/sarif-v2.1.0-os.html
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool         `json:"tool"`
		ColumnKind string            `json:"columnKind"`
		Results    []json.RawMessage `json:"results"`
		Properties map[string]any    `json:"properties,omitempty"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string       `json:"id"`
		Name    string       `json:"name"`
		Short   sarifMessage `json:"shortDescription"`
		Full    sarifMessage `json:"fullDescription"`
		Help    sarifMessage `json:"help"`
		Default sarifLevel   `json:"defaultConfiguration"`
	}
	sarifLevel struct {
		Level string `json:"level"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string            `json:"ruleId"`
		RuleIndex int               `json:"ruleIndex"`
		Level     string            `json:"level"`
		Message   sarifMessage      `json:"message"`
		Locations []sarifLocation   `json:"locations"`
		Prints    map[string]string `json:"partialFingerprints"`
		CodeFlows []sarifCodeFlow   `json:"codeFlows,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
		Message  *sarifMessage `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI     string `json:"uri"`
		URIBase string `json:"uriBaseId"`
	}
	sarifRegion struct {
		StartLine int `json:"startLine"`
	}
	sarifCodeFlow struct {
		ThreadFlows []sarifThreadFlow `json:"threadFlows"`
	}
	sarifThreadFlow struct {
		Locations []sarifFlowLocation `json:"locations"`
	}
	sarifFlowLocation struct {
		Location sarifLocation `json:"location"`
	}
)

const acceptHelp = " Run `leakgate show RUN KEY` to see its trace, or `leakgate accept KEY` to accept it until a " +
	"given date."

// sarifRules lists all rules, in the order of their indexes.
var sarifRules = []sarifRule{
	newRule("new", "NewLeak", "New leak", "Each loop leaks objects that no base run leaks."),
	newRule("grown", "GrownLeak", "Leak with more objects",
		"Each loop leaks more objects than in any base run."),
	newRule("heavier", "HeavierLeak", "Leak with larger objects",
		"Each leaked object retains more memory than in any base run."),
	newRule("wider", "WiderLeak", "Leak with another class",
		"A reference that already held leaking objects now also holds objects of another class."),
	newRule("growth", "GrowthOverTime", "Growing process",
		"The memory of the process grows throughout the run."),
	newRule("leak", "Leak", "Leak that violates a rule",
		"A leak violates a rule of the gate, such as one that compares with a pinned release or an acceptance that "+
			"has expired."),
}

func newRule(id, name, short, full string) sarifRule {
	return sarifRule{
		ID: "leakgate/" + id, Name: name, Short: sarifMessage{short}, Full: sarifMessage{full},
		Help: sarifMessage{full + acceptHelp}, Default: sarifLevel{"warning"},
	}
}

// WriteSARIF writes the leaks that are worse as SARIF 2.1.0 for code scanning.
// Each leak is reported in the file that declares its suspect, or else in the
// given file, by default leakgate.yaml. The key of a leak identifies its alert,
// so a leak keeps its alert across commits. If there are more leaks than the
// limit allows, the last ones are skipped and counted.
func WriteSARIF(w io.Writer, c *Comparison, file string) error {
	c = c.published()
	run := sarifRun{
		Tool: sarifTool{
			sarifDriver{
				Name: "leakgate", Version: text.Head(strings.TrimPrefix(c.Tool, "leakgate "), 60),
				InformationURI: "https://github.com/leakgate/leakgate", Rules: sarifRules,
			},
		},
		ColumnKind: "utf16CodeUnits", Results: []json.RawMessage{},
	}
	size, skipped := 0, 0
	for i := range c.Leaks {
		r := &c.Leaks[i]
		if !r.Fails && !r.worse() {
			continue
		}
		one, err := json.Marshal(r.result(c, fallback(file)))
		if err != nil {
			return fmt.Errorf("encode SARIF: %w", err)
		}
		if size += len(one) + 1; size > maxSARIF || len(run.Results) == maxResults {
			skipped++
			continue
		}
		run.Results = append(run.Results, one)
	}
	if skipped > 0 {
		run.Properties = map[string]any{"skippedResults": skipped}
	}
	out, err := json.Marshal(sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run},
	})
	if err != nil {
		return fmt.Errorf("encode SARIF: %w", err)
	}
	if _, err := w.Write(append(out, '\n')); err != nil {
		return fmt.Errorf("write SARIF: %w", err)
	}
	return nil
}

func (r *Row) result(c *Comparison, file string) sarifResult {
	level := "warning"
	switch {
	case c.Informational:
		level = "note"
	case r.Fails:
		level = "error"
	}
	out := sarifResult{
		RuleID: r.ruleID(), Level: level, Message: sarifText(r.summary()),
		Locations: []sarifLocation{physical(r.place(file))},
		Prints:    map[string]string{"leakgateKey/v1": text.Head(r.Key, maxText)},
	}
	for i := range sarifRules {
		if sarifRules[i].ID == out.RuleID {
			out.RuleIndex = i
		}
	}
	var flow sarifThreadFlow
	for _, s := range r.declared() {
		at := physical(s.File, max(s.Line, 1))
		at.Message = new(sarifText(s.reference()))
		flow.Locations = append(flow.Locations, sarifFlowLocation{at})
	}
	if len(flow.Locations) > 0 {
		out.CodeFlows = []sarifCodeFlow{{[]sarifThreadFlow{flow}}}
	}
	return out
}

func physical(file string, line int) sarifLocation {
	return sarifLocation{Physical: sarifPhysical{sarifArtifact{escapedPath(file), "%SRCROOT%"}, sarifRegion{line}}}
}

// sarifText changes a message so that viewers find no links (SARIF 2.1.0,
// 3.11.6) and no placeholders (3.11.5) in the text.
func sarifText(s string) sarifMessage {
	s = text.Head(s, maxText)
	return sarifMessage{strings.NewReplacer("](", "] (", "{", "(", "}", ")").Replace(s)}
}
