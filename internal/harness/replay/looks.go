package replay

import (
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// looks holds the looks at one process.
type looks struct {
	kept []record.ReplayLook
	more int
}

const (
	// maxLooks is the maximum number of looks at one process, and maxExplained
	// the maximum number of processes with looks: a look takes about 300 bytes.
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

// skippedText describes the looks that are missing; it is empty if none are.
func (l *looks) skippedText() []string {
	if l.more == 0 {
		return nil
	}
	return []string{text.Plural(l.more, "later look is skipped", "later looks are skipped")}
}
