package response

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/footprint"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// growth reports what has grown since the earlier snapshot. The recipe
// determines what is compared.
func (c *Case) growth(now *MemorySnapshot) []string {
	asked := questions[c.Recipe]
	if c.Trigger == record.TriggerLast {
		asked = everything
	}
	if now == nil || len(asked) == 0 {
		return nil
	}
	if c.Before == nil {
		return append([]string{"no earlier snapshot to compare with: this is the current state"}, c.present(now)...)
	}
	var lines []string
	for _, q := range asked {
		lines = append(lines, q(c, c.Before, now)...)
	}
	return lines
}

// questions holds the comparisons of each recipe.
var questions = map[string][]func(c *Case, before, now *MemorySnapshot) []string{
	"native":  {nativeGrowth},
	"thread":  {threadGrowth},
	"gpu":     {graphicsGrowth},
	"unknown": {nativeGrowth},
}

// everything lists the comparisons between the first snapshot and the last one.
var everything = []func(c *Case, before, now *MemorySnapshot) []string{nativeGrowth, threadGrowth, graphicsGrowth}

// present describes the current state if there is nothing to compare with.
func (c *Case) present(now *MemorySnapshot) []string {
	var lines []string
	switch c.Recipe {
	case "native", "unknown":
		if maps := now.maps(); maps != nil {
			lines = append(lines, composed(maps)...)
		}
	case "thread":
		lines = append(lines, c.threadsNow(now)...)
	case "gpu":
		lines = append(lines, graphicsNow(now)...)
	}
	if (len(lines) == 0 || c.Recipe == "gpu") && now.meminfo != nil {
		lines = append(lines, blockLines(now.meminfo)...)
	}
	return lines
}

// nativeGrowth reports the growth of native memory: by library and kind of
// mapping if the maps are readable, and otherwise by the rows of meminfo.
func nativeGrowth(c *Case, before, now *MemorySnapshot) []string {
	was, is := before.smaps, now.smaps
	if was == nil || is == nil {
		was, is = before.showmap, now.showmap
	}
	if was == nil || is == nil {
		line := fmt.Sprintf("memory maps: %s before, %s now; the growing library is unknown", before.mapSource(),
			now.mapSource())
		return append([]string{line}, meminfoGrowth(c, before, now)...)
	}
	g := footprint.CompareMaps(was, is)
	for _, w := range g.Warnings {
		c.warn(fmt.Errorf("memory maps: %w", w))
	}
	for _, k := range g.Kinds {
		c.find("native_kind", string(k.Kind), string(k.Kind), k.After.Mappings, k.Change, g.Grew)
	}
	for _, f := range g.Files[:min(len(g.Files), toldFindings)] {
		c.find("library", f.File, f.File, f.After.Mappings, f.Change, g.Grew)
	}
	for _, r := range g.Rows[:min(len(g.Rows), toldFindings)] {
		c.find("mapping", r.Name, string(r.Kind)+" "+r.Name, r.After.Mappings, r.Change, g.Grew)
	}
	if others := g.Rows[min(len(g.Rows), toldFindings):]; len(others) > 0 {
		rest := sum(others)
		c.find("mapping", fmt.Sprintf("(%d others)", len(others)), "", rest.After.Mappings, rest, g.Grew)
	}
	lines := g.Lines(toldRows)
	lines[0] = "native memory: " + lines[0]
	if len(g.Rows) > 0 && g.Rows[0].Delta > 0 {
		r := g.Rows[0]
		c.lead(fmt.Sprintf("%s %s grew by %s, %.0f %% of all growth", r.Kind, r.Name, text.KB(r.Delta),
			100*share(r.Delta, g.Grew)))
	}
	return lines
}

// sum adds up the rows that are not reported one by one, so that all reported
// rows together equal the measured total.
func sum(rows []footprint.MapRow) (all footprint.Change) {
	for _, r := range rows {
		all.Before.PSS, all.Before.SwapPSS = all.Before.PSS+r.Before.PSS, all.Before.SwapPSS+r.Before.SwapPSS
		all.After.PSS, all.After.SwapPSS = all.After.PSS+r.After.PSS, all.After.SwapPSS+r.After.SwapPSS
		all.Before.Mappings += r.Before.Mappings
		all.After.Mappings += r.After.Mappings
		all.Delta += r.Delta
	}
	return all
}

// lead sets the headline of a case, unless the case already has one.
func (c *Case) lead(line string) {
	if c.headline == "" {
		c.headline = text.Head(line, maxText)
	}
}

// find adds growth to the findings of the record. The key of a finding is
// derived from its type and identity; it is "" if the identity would differ in
// each run.
func (c *Case) find(what, name, identity string, count int64, d footprint.Change, grew int64) {
	if d.Delta == 0 {
		return
	}
	f := record.Finding{
		Type: what, Name: text.Tail(name, maxText), Count: &count, CountDelta: new(count - d.Before.Mappings),
		Bytes: new(inBytes(d.After.Cost())), BytesDelta: new(inBytes(d.Delta)),
	}
	if identity != "" {
		f.Key = footprint.KeyOf(what, identity)
	}
	if grew > 0 && d.Delta > 0 {
		f.Share = new(share(d.Delta, grew))
	}
	c.Record.Findings = append(c.Record.Findings, f)
}

// share returns part divided by whole, rounded down to four decimal places.
func share(part, whole int64) float64 {
	return math.Floor(float64(part)/float64(whole)*10_000) / 10_000
}

// inBytes converts kB to bytes. It saturates, because a phone may report any
// number.
func inBytes(kb int64) int64 {
	const most = math.MaxInt64 >> 10
	return min(max(kb, -most), most) << 10
}

// meminfoGrowth compares the rows of the App Summary. The row with the largest
// growth comes first.
func meminfoGrowth(c *Case, before, now *MemorySnapshot) []string {
	if before.meminfo == nil || now.meminfo == nil {
		return []string{"meminfo: missing in one of the snapshots"}
	}
	rows := meminfoRows(before.meminfo, now.meminfo)
	if len(rows) == 0 {
		return []string{"meminfo: no row is in both snapshots"}
	}
	lines := []string{"meminfo, by row:"}
	for _, r := range rows {
		lines = append(lines,
			fmt.Sprintf("  %-14s %s -> %s (%s)", r.name, text.KB(r.before), text.KB(r.after),
				text.SignedKB(r.after-r.before)))
		if r.after != r.before {
			c.Record.Findings = append(c.Record.Findings, record.Finding{
				Type: "meminfo", Name: r.name, Key: footprint.KeyOf("meminfo", r.name), Bytes: new(inBytes(r.after)),
				BytesDelta: new(inBytes(r.after - r.before)),
			})
		}
	}
	return lines
}

// meminfoRow holds the values of one row in both snapshots, in kB.
type meminfoRow struct {
	name          string
	before, after int64
}

func meminfoRows(before, now *dumpsys.Block) []meminfoRow {
	var rows []meminfoRow
	was := dimensions(before)
	for i, d := range dimensions(now) {
		if d.v.Known && was[i].v.Known {
			rows = append(rows, meminfoRow{d.name, was[i].v.N, d.v.N})
		}
	}
	slices.SortStableFunc(rows, func(a, b meminfoRow) int { return cmp.Compare(b.after-b.before, a.after-a.before) })
	return rows
}

func threadGrowth(c *Case, before, now *MemorySnapshot) []string {
	if len(before.all()) == 0 || len(now.all()) == 0 {
		return append([]string{"threads: missing in one of the snapshots"}, c.threadsNow(now)...)
	}
	was, is := before.noted(), now.noted()
	if !was.Known || !is.Known {
		was, is = before.mapped(), now.mapped()
	}
	earlier, present := before.threads, now.threads
	named := len(earlier) > 0 && len(present) > 0
	if !named {
		// If only one of the readings has names, both are compared without
		// names: otherwise a group would seem to have grown.
		earlier, present = unnamed(before.all()), unnamed(now.all())
	}
	g := c.compareThreads(named && before.hidden, footprint.ThreadReading{Threads: earlier, Stack: was},
		footprint.ThreadReading{Threads: present, Stack: is})
	for _, x := range g.Groups[:min(len(g.Groups), toldFindings)] {
		if x.Delta == 0 {
			continue
		}
		f := record.Finding{
			Type: "threads", Name: text.Tail(x.Pattern, maxText), Key: threadKey(x.Pattern),
			Count: new(int64(x.After)), CountDelta: new(int64(x.Delta)),
		}
		if per := g.PerThread(); per.Known {
			f.Bytes, f.BytesDelta = new(inBytes(per.N*int64(x.After))), new(inBytes(per.N*int64(x.Delta)))
		}
		c.Record.Findings = append(c.Record.Findings, f)
	}
	lines := g.Lines(toldRows)
	lines[0] = "threads: " + lines[0]
	if !named {
		totals := 1
		if g.StackBefore.Known && g.StackAfter.Known {
			totals++
		}
		return append(lines[:totals], "thread names are missing in one of the snapshots; the growing group is unknown")
	}
	if len(g.Groups) > 0 && g.Groups[0].Delta > 0 {
		x := g.Groups[0]
		c.lead(fmt.Sprintf("threads %s: %d -> %d", x.Pattern, x.Before, x.After))
	}
	return lines
}

// threadKey returns the key of a group of threads. A hidden name has no key:
// its placeholder differs in each run, and the hash of a guessable name would
// reveal the name.
func threadKey(pattern string) string {
	if android.IsRedacted(pattern) {
		return ""
	}
	return footprint.KeyOf("threads", footprint.WithoutNumbers(pattern))
}

// unnamed returns the threads without their names.
func unnamed(list []footprint.Thread) []footprint.Thread {
	out := make([]footprint.Thread, len(list))
	for i, x := range list {
		out[i] = footprint.Thread{TID: x.TID, Name: noName}
	}
	return out
}

// threadsNow lists the groups of the current threads, the largest first.
func (c *Case) threadsNow(now *MemorySnapshot) []string {
	if len(now.all()) == 0 {
		return nil
	}
	g := c.compareThreads(false, footprint.ThreadReading{}, footprint.ThreadReading{Threads: now.all()})
	lines := []string{fmt.Sprintf("threads: %d", g.After)}
	for _, x := range g.Groups[:min(len(g.Groups), toldRows)] {
		lines = append(lines, fmt.Sprintf("  %5d  %s", x.After, x.Pattern))
	}
	return lines
}
