package reporters

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// together writes the result for all processes of an app together: in full if
// their sum leaks although none of them leaks by itself, otherwise in one line.
func (out *page) together(a record.AppVerdict, policy string, several bool) {
	who := AllProcesses(a)
	if several {
		who += " on " + name(a.Device)
	}
	switch {
	case len(a.Leaking) > 0:
		out.line("%s: %s; %s", who, a.Gate, leakingText(a.Leaking))
		return
	case !a.Leaks():
		out.line("%s: %s%s", who, a.Gate, rateText(a))
		return
	}
	out.line("%s: %s; no process leaks by itself", who, Headline(a.Verdict(), policy))
	out.line("  why      %s", a.Reason)
	out.line("  series   %s of %s over %s", text.Count(a.Samples, "sum", "sums"),
		text.Count(len(a.Processes), "process", "processes"), text.Span(a.Duration))
	out.line("  rate     %s", strings.TrimPrefix(rateText(a), ", "))
	out.appGrowth(a)
	for _, text := range a.Warnings {
		out.line("  warning: %s", text)
	}
}

// appGrowth writes which processes and which kinds of memory caused the growth
// of an app.
func (out *page) appGrowth(a record.AppVerdict) {
	if held := growthHolders(a); held != "" {
		out.line("  held by  %s", held)
	}
	if len(a.Shares) > 0 {
		out.line("  growth   %s", sharesText(a.Shares))
	}
}

// AllProcesses returns a name for all processes of an app: "all processes of
// com.shop together".
func AllProcesses(a record.AppVerdict) string {
	who := name(a.App)
	if a.User != 0 {
		who += fmt.Sprintf(" (user %d)", a.User)
	}
	return "all processes of " + who + " together"
}

func leakingText(names []string) string {
	if len(names) == 1 {
		return name(names[0]) + " leaks, see above"
	}
	return fmt.Sprintf("%d processes leak, see above", len(names))
}

func rateText(a record.AppVerdict) string {
	if a.Rate == nil || len(a.RateInterval) != 2 {
		return ""
	}
	return fmt.Sprintf(", %+.1f MB/h (95 %%: %+.1f to %+.1f)", *a.Rate, a.RateInterval[0], a.RateInterval[1])
}

// growthHolders returns the share of each process in the growth, for example
// "com.shop 52 % (+200.1 MB), com.shop:remote 48 % (+180.0 MB)".
func growthHolders(a record.AppVerdict) string {
	var parts []string
	for _, p := range firstOf(a.ByProcess) {
		if p.Share > 0 {
			parts = append(parts, fmt.Sprintf("%s %.0f %% (%+.1f MB)", name(p.Process), 100*p.Share, p.Growth))
		}
	}
	return strings.Join(parts, ", ")
}

// leaksOfApps returns the apps that leak in a window in which none of their
// processes leaks.
func leaksOfApps(w record.JudgedWindow) []string {
	var out []string
	for _, a := range w.Apps {
		own := slices.ContainsFunc(w.Processes, func(p record.WindowProcess) bool {
			app, _, _ := strings.Cut(p.Process, ":")
			return p.Gate == detector.Leak && app == a.App && p.User == a.User
		})
		if a.Gate == detector.Leak && !own {
			out = append(out,
				fmt.Sprintf("%s, %s: LEAK (%s): %s", text.Quote(w.Name, shownNameOfWindow),
					AllProcesses(record.AppVerdict{App: a.App, User: a.User}), DescribeKind(a.Kind), a.Reason))
		}
	}
	return out
}
