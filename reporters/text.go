package reporters

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteText tells a run in words: a verdict per process, what it cost, and what
// could not be done. Everything that came from a device is made printable.
func WriteText(w io.Writer, r Run) error {
	var b strings.Builder
	for _, p := range r.Processes {
		writeProcess(&b, p, len(r.Devices) > 1)
	}
	if len(r.Processes) == 0 {
		b.WriteString("No process was seen; nothing was judged.\n")
	}
	for _, d := range r.Devices {
		writeDevice(&b, d)
	}
	if r.Workload != nil {
		writeWorkload(&b, *r.Workload)
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", Printable(text))
	}
	if r.Interrupted {
		b.WriteString("The run was interrupted; what is above is what it had until then.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeProcess(b *strings.Builder, p Process, several bool) {
	name := Printable(p.Process)
	if p.User != 0 {
		name += fmt.Sprintf(" (user %d)", p.User)
	}
	if several {
		name += " on " + Printable(p.Device)
	}
	fmt.Fprintf(b, "%s: %s\n", name, Headline(p))
	if p.Because != "" {
		fmt.Fprintf(b, "  why      %s\n", Printable(p.Because))
	}
	fmt.Fprintf(b, "  series   %d samples over %s, by %s; %d breakdowns; %s\n",
		p.Samples, Span(p.Duration), p.Source, p.Details, restarts(p.Restarts))
	if p.Rate != nil && len(p.RateInterval) == 2 {
		fmt.Fprintf(b, "  rate     %+.1f MB/h (95 %%: %+.1f to %+.1f)", *p.Rate, p.RateInterval[0], p.RateInterval[1])
		if p.MinDetectable != nil {
			fmt.Fprintf(b, "; a leak below %.1f MB/h could have stayed unseen", *p.MinDetectable)
		}
		b.WriteString("\n")
	}
	for _, t := range p.Transitions {
		fmt.Fprintf(b, "  %-8s %s -> %s: %s\n", Span(t.T), t.From, t.To, Printable(t.Because))
	}
	for _, text := range p.Reasons {
		fmt.Fprintf(b, "  no %s\n", Printable(text))
	}
	for _, text := range p.Warnings {
		fmt.Fprintf(b, "  warning: %s\n", Printable(text))
	}
}

// Headline is the verdict of a process in a few words.
func Headline(p Process) string {
	switch {
	case p.Gate == "leak":
		return fmt.Sprintf("LEAK (%s), state %s", KindWords(p.Kind), p.State)
	case p.Gate == "pass":
		return "PASS, state " + p.State + worst(p)
	case p.Gate == "settled":
		return fmt.Sprintf("SETTLED, grew %.1f MB, state %s%s", p.Growth, p.State, worst(p))
	}
	return "INCONCLUSIVE, state " + p.State + worst(p)
}

func worst(p Process) string {
	if p.Worst == p.State {
		return ""
	}
	return ", worst " + p.Worst
}

// KindWords is a leak's kind as people say it.
func KindWords(kind string) string {
	if kind == "" {
		return "kind not decided"
	}
	return strings.ReplaceAll(kind, "_", " ")
}

func restarts(n int) string {
	switch n {
	case 0:
		return "no restart"
	case 1:
		return "1 restart"
	}
	return fmt.Sprintf("%d restarts", n)
}

func writeDevice(b *strings.Builder, d Device) {
	fmt.Fprintf(b, "device %s (%s, API %d): watched %s; fast channel %d rounds, mean %.1f ms, at most %.1f ms; detail %d readings, mean %.0f ms",
		Printable(d.Device), Printable(d.Model), d.API, Span(d.Duration), d.Fast.Rounds, d.Fast.MeanMS, d.Fast.MaxMS, d.Detail.Rounds, d.Detail.MeanMS)
	if failed := d.Fast.Failed + d.Detail.Failed; failed > 0 {
		fmt.Fprintf(b, "; %d failed", failed)
	}
	if d.SystemServer != nil {
		fmt.Fprintf(b, "; system_server %.1f %% CPU", *d.SystemServer)
	}
	if d.DetailSystemServer != nil {
		fmt.Fprintf(b, ", %.1f %% while dumpsys ran", *d.DetailSystemServer)
	}
	b.WriteString("\n")
	if d.Error != "" {
		fmt.Fprintf(b, "device %s: %s\n", Printable(d.Device), Printable(d.Error))
	}
}

func writeWorkload(b *strings.Builder, w Workload) {
	fmt.Fprintf(b, "workload %s", w.Kind)
	if w.Seed != nil {
		fmt.Fprintf(b, ", %d events with seed %d", w.Events, *w.Seed)
	}
	switch {
	case w.Error != "":
		fmt.Fprintf(b, ": FAILED: %s\n", Printable(w.Error))
	case w.Exit != nil:
		fmt.Fprintf(b, ": done, exit %d\n", *w.Exit)
	default:
		b.WriteString(": ended with the run\n")
	}
}

// Span tells seconds as people do: 45s, 12m30s, 2h5m.
func Span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	if d >= time.Hour {
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	if d >= time.Minute && d%time.Minute == 0 {
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return d.String()
}

// Printable makes text safe for a terminal: control characters, among them the
// escape that begins a terminal command, become question marks.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
