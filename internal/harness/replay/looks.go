package replay

import (
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// looks collects the evaluations ("looks") of the series of one process, for
// Options.Explain.
type looks struct {
	kept []record.ReplayLook
	more int
}

const (
	// maxLooks is the maximum number of looks at one process, and maxExplained
	// is the maximum number of processes with looks. A look takes about 300
	// bytes.
	maxLooks     = 10_000
	maxExplained = 50
)

func (l *looks) add(t float64, seen detector.Look) {
	if len(l.kept) == maxLooks {
		l.more++
		return
	}
	l.kept = append(l.kept, record.ReplayLook{
		T: t, Series: seen.Series, Window: record.Round(seen.Window.Seconds(), 3), Fired: seen.Fired, Text: seen.Text,
	})
}

// skippedText states how many looks were skipped; it is empty if no look was
// skipped.
func (l *looks) skippedText() []string {
	if l.more == 0 {
		return nil
	}
	return []string{text.Plural(l.more, "later look is skipped", "later looks are skipped")}
}
