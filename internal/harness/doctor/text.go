package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/leakgate/leakgate/capture"
)

// WriteText writes a report in human-readable form. The first line states the
// outcome and the next step. The checks follow in groups, each with its status
// as a word.
func WriteText(w io.Writer, r Report) error {
	var b strings.Builder
	b.WriteString(headline(r) + "\n")
	var group Item
	for i, c := range r.Checks {
		if i == 0 || c.Device != group.Device || c.Process != group.Process {
			b.WriteString("\n" + title(c, r) + "\n")
		}
		group = c
		writeCheck(&b, c)
		if c.Name == "memory" {
			writeReasons(&b, r.process(c))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func headline(r Report) string {
	text := "not ready: " + r.Text
	if r.Outcome == Usable {
		text = "ready: " + r.Text
	}
	if r.Action != "" {
		text += ": " + r.Action
	}
	return text
}

// title returns the heading that says what the following checks are about.
func title(c Item, r Report) string {
	switch c.Scope {
	case ScopeProcess:
		return c.Process + " on " + c.Device
	case ScopeDevice:
		return "device " + c.Device
	}
	return "host " + r.Host.System
}

func writeCheck(b *strings.Builder, c Item) {
	fmt.Fprintf(b, "  %-7s  %-10s  %s\n", c.Status, c.Name, c.Text)
	if c.Action != "" {
		fmt.Fprintf(b, "  %-7s  %-10s  do: %s\n", "", "", c.Action)
	}
}

func writeReasons(b *strings.Builder, p Process) {
	for _, reason := range p.Reasons {
		fmt.Fprintf(b, "  %-7s  %-10s  not %s: %s", "", "", reason.Source, reason.Text)
		if reason.Action != "" {
			fmt.Fprintf(b, " (%s)", reason.Action)
		}
		b.WriteString("\n")
	}
}

// process returns the process that a check is about.
func (r Report) process(c Item) Process {
	for _, d := range r.Devices {
		if d.Serial != c.Device {
			continue
		}
		for _, p := range d.Processes {
			if p.key() == c.Process {
				return p
			}
		}
	}
	return Process{}
}

func (p Process) key() string { return capture.Key{User: p.User, Name: p.Process}.String() }
