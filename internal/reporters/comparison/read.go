package comparison

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/leakgate/leakgate/internal/retired"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// maxFile is the maximum size of gate.json in bytes: a comparison of 5,000
// leaks with their traces takes about 10 MB.
const maxFile = 16 << 20

// Read reads gate.json, which may be untrusted: a pull request from a fork may
// have uploaded it. In the result, every string is printable and bounded, every
// number is in its range, and every status, verdict and unit is a known word.
// Lists and strings that are too long are truncated with a warning; any other
// invalid content is an error.
func Read(r io.Reader) (*Comparison, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", FileName, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("read %s: it is larger than %s", FileName, text.Size(maxFile))
	}
	if err := checkOutline(data); err != nil {
		return nil, fmt.Errorf("decode %s: %w", FileName, err)
	}
	if err := retired.Check(data, "what", "leaks_skipped"); err != nil {
		return nil, fmt.Errorf("read %s: %w", FileName, err)
	}
	c := &Comparison{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("decode %s: %w", FileName, err)
	}
	if c.Schema != Schema {
		return nil, fmt.Errorf("decode %s: schema is %s, not %q; use the leakgate version that wrote it",
			FileName, text.Quote(c.Schema, 60), Schema)
	}
	if err := bound(c); err != nil {
		return nil, fmt.Errorf("check %s: %w", FileName, err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("check %s: %w", FileName, err)
	}
	return c, nil
}

// Write writes gate.json to a run directory atomically. If the file would
// exceed its maximum size, leaks at the end of the list are skipped and
// counted.
func Write(dir string, c *Comparison) error {
	data, err := c.file()
	if err != nil {
		return fmt.Errorf("encode %s: %w", FileName, err)
	}
	return record.WriteFileAtomic(filepath.Join(dir, FileName), data)
}

// file returns the content of gate.json.
func (c *Comparison) file() ([]byte, error) {
	out := *c
	out.Schema = Schema
	out.Processes, out.Leaks = slices.Clone(c.Processes), slices.Clone(c.Leaks)
	normalize(reflect.ValueOf(&out).Elem(), "")
	for {
		data, err := encode(&out)
		if err != nil || len(data) <= maxFile {
			return data, err
		}
		if len(out.Leaks) == 0 {
			return nil, fmt.Errorf("%s without any leak: %w", text.Size(int64(len(data))), errTooLarge)
		}
		keep := int(float64(len(out.Leaks)) * 0.95 * maxFile / float64(len(data)))
		out.LeaksOmitted += len(out.Leaks) - keep
		out.Leaks = out.Leaks[:keep]
	}
}

var errTooLarge = errors.New("file too large")

// encode returns gate.json for a comparison. It does not escape names such as
// <init>, because the file is not an HTML page.
func encode(c *Comparison) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(c)
	return out.Bytes(), err
}

// check returns an error if a verdict, status or unit is unknown, if the exit
// code is out of range or contradicts the verdict, or if a size is negative.
func (c *Comparison) check() error {
	if !slices.Contains([]Result{Pass, Fail, Neutral}, c.Verdict) {
		return fmt.Errorf("invalid verdict %s: want pass, fail or neutral", text.Quote(string(c.Verdict), 40))
	}
	if c.ExitCode > 255 {
		return fmt.Errorf("exit_code %d is out of range", c.ExitCode)
	}
	if err := c.checkVerdict(); err != nil {
		return err
	}
	for i := range c.Leaks {
		if err := c.Leaks[i].check(); err != nil {
			return fmt.Errorf("leaks[%d]: %w", i, err)
		}
	}
	return nil
}

// checkVerdict checks that the reasons and the exit code agree with the
// verdict, so no page shows a pass together with failures.
func (c *Comparison) checkVerdict() error {
	if c.Verdict == Pass && len(c.Reasons) > 0 {
		return fmt.Errorf("verdict pass has %s", text.Count(len(c.Reasons), "reason", "reasons"))
	}
	fits := map[Result]bool{
		Pass: c.ExitCode == record.ExitClean, Fail: c.ExitCode == record.ExitLeak ||
			c.ExitCode == record.ExitInterrupted, Neutral: c.ExitCode != record.ExitLeak,
	}
	if !fits[c.Verdict] {
		return fmt.Errorf("exit_code %d does not match verdict %s", c.ExitCode, c.Verdict)
	}
	return nil
}

func (r *Row) check() error {
	if !slices.Contains(Statuses(), r.Status) {
		return fmt.Errorf("unknown status %s", text.Quote(string(r.Status), 40))
	}
	if !slices.Contains([]string{unitLoop, unitEvent, unitHour, unitRun}, r.Unit) {
		return fmt.Errorf("unknown unit %s", text.Quote(r.Unit, 40))
	}
	for _, each := range []*float64{r.BytesEach.Base, r.BytesEach.Head} {
		if each != nil && *each < 0 {
			return errors.New("bytes_each is negative")
		}
	}
	return nil
}
