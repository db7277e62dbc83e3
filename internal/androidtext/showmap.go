package androidtext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ShowmapEverywhere is the first API level at which user builds include
// showmap; since then it has been the rewritten program in
// system/memory/libmeminfo/tools/showmap.cpp. ShowmapFlags is the first API
// level whose showmap has columns for huge pages and, with -v, flags.
const (
	ShowmapEverywhere = 29
	ShowmapFlags      = 31
)

// Mapping is a memory mapping of a process.
type Mapping struct {
	Start, End uint64
	// Perms are the permissions in the kernel's notation, such as rw-p.
	Perms string
	Name  string
	Memory
}

// ShowmapOptions holds the arguments of showmap.
type ShowmapOptions struct {
	// Terse (-t) omits mappings without private pages; Verbose (-v) and
	// Addresses (-a) print every mapping on its own line, sorted by name and by
	// address, respectively.
	Terse, Verbose, Addresses bool
	// Quiet (-q) suppresses the error message.
	Quiet bool
	PID   int
}

// ParseShowmap parses the arguments of showmap; ok is false if they are
// invalid; showmap then prints its usage.
func ParseShowmap(args []string) (o ShowmapOptions, ok bool) {
	for _, a := range args {
		options, found := strings.CutPrefix(a, "-")
		if !found || options == "" {
			if o.PID != 0 {
				return o, false
			}
			if o.PID, _ = strconv.Atoi(a); o.PID <= 0 {
				return o, false
			}
		}
		for _, c := range options {
			switch {
			case !found:
			case c == 'a':
				o.Addresses = true
			case c == 't':
				o.Terse = true
			case c == 'v':
				o.Verbose = true
			case c == 'q':
				o.Quiet = true
			case c != 'c':
				return o, false
			}
		}
	}
	return o, o.PID > 0
}

// ShowmapUsage returns the usage message of showmap.
func ShowmapUsage(api int) string {
	switch {
	case api < ShowmapEverywhere:
		return "showmap [-t] [-v] [-c] [-q] <PID>\n"
	case api < 34:
		return "showmap [-aqtv] [FILE|PID]\n"
	}
	return "showmap [-aqtv] [-o raw,json,csv] PID\n"
}

// ShowmapError returns the error that showmap prints for a process that it
// cannot read. Only old releases print the reason.
func ShowmapError(api, pid int, reason string) string {
	if api >= ShowmapEverywhere {
		return fmt.Sprintf("Failed to parse file /proc/%d/smaps\n", pid)
	}
	return fmt.Sprintf("cannot open /proc/%d/smaps: %s\n", pid, reason)
}

// object holds the content of one line of showmap.
type object struct {
	Mapping
	count int
}

// objects returns the contents of the lines: mappings with the same name are
// merged unless each has its own line.
func (o ShowmapOptions) objects(mappings []Mapping) (all []object, total object) {
	at := map[string]int{}
	for _, m := range mappings {
		if m.Name == "" {
			m.Name = "[anon]"
		}
		m.Size = int64(m.End-m.Start) >> 10
		total.Memory, total.count = total.Plus(m.Memory), total.count+1
		i, merged := at[m.Name]
		if merged && !o.Verbose && !o.Addresses {
			all[i].Memory, all[i].count = all[i].Plus(m.Memory), all[i].count+1
			continue
		}
		at[m.Name] = len(all)
		all = append(all, object{m, 1})
	}
	if !o.Addresses {
		slices.SortStableFunc(all, func(a, b object) int { return strings.Compare(a.Name, b.Name) })
	}
	return all, total
}

// hides reports whether -t omits a line. Old releases check only dirty pages.
func (o ShowmapOptions) hides(m Memory, api int) bool {
	return o.Terse && m.PrivateDirty == 0 && (api < ShowmapEverywhere || m.PrivateClean == 0)
}

// Showmap returns the table that showmap prints. The mappings must be sorted by
// address. Huge and locked pages are printed as 0.
func Showmap(api int, mappings []Mapping, o ShowmapOptions) string {
	all, total := o.objects(mappings)
	head, rule, huge := o.heading(api)
	var b strings.Builder
	write := func(n object, addresses, flags string) {
		b.WriteString(addresses)
		for _, kb := range []int64{
			n.Size, n.Rss, n.Pss, n.SharedClean, n.SharedDirty, n.PrivateClean, n.PrivateDirty, n.Swap,
		} {
			fmt.Fprintf(&b, "%8d ", kb)
		}
		if api >= 26 {
			fmt.Fprintf(&b, "%8d ", n.SwapPss)
		}
		b.WriteString(huge)
		switch {
		case !o.Verbose && !o.Addresses:
			fmt.Fprintf(&b, "%4d ", n.count)
		case o.Verbose && api >= ShowmapFlags:
			fmt.Fprintf(&b, "%5s ", flags[:min(3, len(flags))])
		}
		b.WriteString(n.Name + "\n")
	}
	b.WriteString(head + rule)
	for _, n := range all {
		if !o.hides(n.Memory, api) {
			write(n, o.span(n.Mapping, api), n.Perms)
		}
	}
	b.WriteString(rule + head + rule)
	total.Name = "TOTAL"
	write(total, o.noSpan(api), "")
	return b.String()
}

// span returns the address columns.
func (o ShowmapOptions) span(m Mapping, api int) string {
	switch {
	case !o.Addresses:
		return ""
	case api < ShowmapEverywhere:
		return fmt.Sprintf("%08x %08x ", uint32(m.Start), uint32(m.End))
	}
	return fmt.Sprintf("%16x %16x ", m.Start, m.End)
}

// noSpan returns blanks for the address columns in the line with the total. In
// two releases the blanks are narrower than the columns.
func (o ShowmapOptions) noSpan(api int) string {
	switch {
	case !o.Addresses:
		return ""
	case api < ShowmapFlags:
		return strings.Repeat(" ", 18)
	}
	return strings.Repeat(" ", 34)
}

// heading returns the two title lines, the line of dashes, and the columns for
// huge pages, which are zero.
func (o ShowmapOptions) heading(api int) (head, rule, huge string) {
	const (
		top  = " virtual                     shared   shared  private  private"
		cols = "    size      RSS      PSS    clean    dirty    clean    dirty"
		line = "-------- -------- -------- -------- -------- -------- -------- "
	)
	swap, dashes := "     swap ", "-------- "
	switch {
	case api >= ShowmapEverywhere && api < ShowmapFlags:
		swap, dashes = "     swap  swapPSS", "-------- -------- "
	case api >= 26:
		swap, dashes = "     swap  swapPSS ", "-------- -------- "
	}
	above, under, addresses := "", "", ""
	switch {
	case !o.Addresses:
	case api < ShowmapEverywhere:
		above, under, addresses = "   start      end ", "    addr     addr ", "-------- -------- "
	default:
		above, under = "           start              end ", "            addr             addr "
		addresses = "-------- -------- "
		if api >= ShowmapFlags {
			addresses = "---------------- ---------------- "
		}
	}
	count, counted := "   # ", "---- "
	if o.Verbose || o.Addresses {
		count, counted = "", ""
	}
	const object = "------------------------------\n"
	if api < ShowmapFlags {
		head = above + top + "\n" + under + cols + swap + count + "object\n"
		return head, addresses + line + dashes + counted + object, ""
	}
	if o.Verbose {
		count, counted = "flags ", "----- "
	}
	const (
		hugeTop  = "                   Anon      Shmem     File      Shared   Private\n"
		hugeCols = "HugePages PmdMapped PmdMapped Hugetlb  Hugetlb    Locked "
		hugeLine = "--------- --------- --------- -------- -------- -------- "
	)
	head = above + top + hugeTop + under + cols + swap + hugeCols + count + "object\n"
	return head, addresses + line + dashes + hugeLine + counted + object,
		"        0         0         0        0        0        0 "
}
