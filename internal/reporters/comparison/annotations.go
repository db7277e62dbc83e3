package comparison

import "github.com/leakgate/leakgate/internal/text"

// LineNote is an annotation on a line of a file, for a GitHub check run.
type LineNote struct {
	// Path is the path of the file relative to the repository; Line counts from
	// 1.
	Path string
	Line int
	// Title and Message are plain text.
	Title   string
	Message string
	// Level is "failure" for leaks that fail the gate and "warning" for others;
	// if the rules are informational, it is "notice".
	Level string
}

// maxAnnotations is the maximum number of annotations of a check run.
const maxAnnotations = 500

// Annotations returns a note for each leak that is worse than in the base and
// whose suspect is declared in a known file. Failures come first.
func Annotations(c *Comparison) []LineNote {
	c = c.published()
	var fails, others []LineNote
	for i := range c.Leaks {
		r := &c.Leaks[i]
		if r.introducer() == nil || !r.Fails && !r.worse() {
			continue
		}
		a := LineNote{Title: text.Head(string(r.Status)+" leak: "+r.name(), 120), Message: r.summary()}
		a.Path, a.Line = r.place("")
		switch {
		case c.Informational:
			a.Level = "notice"
		case r.Fails:
			a.Level = "failure"
		default:
			a.Level = "warning"
		}
		if r.Fails {
			fails = append(fails, a)
			continue
		}
		others = append(others, a)
	}
	all := append(fails, others...)
	return all[:min(len(all), maxAnnotations)]
}
