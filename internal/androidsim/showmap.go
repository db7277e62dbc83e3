package androidsim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// showmapOptions are those of showmap that change what it prints.
type showmapOptions struct {
	terse, verbose, addresses bool
}

// The versions from which showmap is on user builds, in /system/bin instead of
// /system/xbin and written anew (system/memory/libmeminfo/tools/showmap.cpp), and
// from which it has the columns of huge pages and, with -v, the flags.
const (
	showmapEverywhere = 29
	showmapHuge       = 31
)

func showmap(c *call) int {
	var o showmapOptions
	quiet := false
	rest, ok := c.getopt("atvqc", func(option byte, _ string) {
		switch option {
		case 'a':
			o.addresses = true
		case 't':
			o.terse = true
		case 'v':
			o.verbose = true
		case 'q':
			quiet = true
		}
	})
	if !ok || len(rest) != 1 {
		c.failf("usage: showmap [-t] [-v] [-a] [-q] <pid>")
		return 1
	}
	pid, _ := strconv.Atoi(rest[0])
	v, found := c.phone.find(pid)
	reason := "Permission denied"
	switch {
	case !found || !c.phone.sees(c.cred, v):
		reason = "No such file or directory"
	case c.cred.traces(v):
		c.printf("%s", v.memory().showmapText(v, c.phone.opt.API, o))
		return 0
	}
	switch {
	case quiet:
	case c.phone.opt.API >= showmapEverywhere:
		fmt.Fprintf(c.errs, "Failed to parse file /proc/%s/smaps\n", rest[0])
	default:
		fmt.Fprintf(c.errs, "cannot open /proc/%s/smaps: %s\n", rest[0], reason)
	}
	return 1
}

// object is a line of showmap.
type object struct {
	mapping
	kb    int64
	count int
}

// objects are the areas as showmap sorts them: in one line what has one name, unless
// they are asked for one by one.
func (o showmapOptions) objects(areas []mapping) (all []object, total object) {
	at := map[string]int{}
	for _, a := range areas {
		if a.name == "" {
			a.name = "[anon]"
		}
		total.usage, total.kb, total.count = total.plus(a.usage), total.kb+a.size(), total.count+1
		i, merged := at[a.name]
		if merged && !o.verbose && !o.addresses {
			all[i].usage, all[i].kb, all[i].count = all[i].plus(a.usage), all[i].kb+a.size(), all[i].count+1
			continue
		}
		at[a.name] = len(all)
		all = append(all, object{a, a.size(), 1})
	}
	if !o.addresses {
		slices.SortStableFunc(all, func(a, b object) int { return strings.Compare(a.name, b.name) })
	}
	return all, total
}

// hides tells which lines -t leaves out: those without private pages, which were the
// dirty ones alone at first.
func (o showmapOptions) hides(u usage, api int) bool {
	return o.terse && u.privateDirty == 0 && (api < showmapEverywhere || u.privateClean == 0)
}

// showmapText is the table of the showmap tool.
func (m memory) showmapText(v view, api int, o showmapOptions) string {
	all, total := o.objects(m.areas(v, api))
	head, rule, huge := showmapHeader(api, o)
	var b strings.Builder
	write := func(n object, addresses, flags string) {
		u := n.usage
		b.WriteString(addresses)
		fmt.Fprintf(&b, "%8d %8d %8d %8d %8d %8d %8d %8d ", n.kb, u.rss(), u.pss(), u.sharedClean, u.sharedDirty, u.privateClean, u.privateDirty, u.swap)
		if api >= 26 {
			fmt.Fprintf(&b, "%8d ", u.swap)
		}
		b.WriteString(huge)
		switch {
		case !o.verbose && !o.addresses:
			fmt.Fprintf(&b, "%4d ", n.count)
		case o.verbose && api >= showmapHuge:
			fmt.Fprintf(&b, "%5s ", flags)
		}
		b.WriteString(n.name + "\n")
	}
	b.WriteString(head + rule)
	for _, n := range all {
		if !o.hides(n.usage, api) {
			write(n, o.span(n.mapping, api), n.perms)
		}
	}
	b.WriteString(rule + head + rule)
	total.name = "TOTAL"
	write(total, o.noSpan(api), "")
	return b.String()
}

// span is the columns of addresses.
func (o showmapOptions) span(m mapping, api int) string {
	switch {
	case !o.addresses:
		return ""
	case api < showmapEverywhere:
		return fmt.Sprintf("%08x %08x ", uint32(m.start), uint32(m.end))
	}
	return fmt.Sprintf("%16x %16x ", m.start, m.end)
}

// noSpan is what stands there for the total: in two releases less than in the lines.
func (o showmapOptions) noSpan(api int) string {
	switch {
	case !o.addresses:
		return ""
	case api < showmapHuge:
		return strings.Repeat(" ", 18)
	}
	return strings.Repeat(" ", 34)
}

// showmapHeader gives the two lines of titles, the line of dashes and the
// columns that stand between the swap and the name, all zero here.
func showmapHeader(api int, o showmapOptions) (head, rule, huge string) {
	const (
		top  = " virtual                     shared   shared  private  private"
		cols = "    size      RSS      PSS    clean    dirty    clean    dirty"
		line = "-------- -------- -------- -------- -------- -------- -------- "
	)
	swap, dashes := "     swap ", "-------- "
	switch {
	case api >= showmapEverywhere && api < showmapHuge:
		swap, dashes = "     swap  swapPSS", "-------- -------- "
	case api >= 26:
		swap, dashes = "     swap  swapPSS ", "-------- -------- "
	}
	above, under, addresses := "", "", ""
	switch {
	case !o.addresses:
	case api < showmapEverywhere:
		above, under, addresses = "   start      end ", "    addr     addr ", "-------- -------- "
	default:
		above, under, addresses = "           start              end ", "            addr             addr ", "-------- -------- "
		if api >= showmapHuge {
			addresses = "---------------- ---------------- "
		}
	}
	count, counted := "   # ", "---- "
	if o.verbose || o.addresses {
		count, counted = "", ""
	}
	const object = "------------------------------\n"
	if api < showmapHuge {
		return above + top + "\n" + under + cols + swap + count + "object\n", addresses + line + dashes + counted + object, ""
	}
	if o.verbose {
		count, counted = "flags ", "----- "
	}
	return above + top + "                   Anon      Shmem     File      Shared   Private\n" +
			under + cols + swap + "HugePages PmdMapped PmdMapped Hugetlb  Hugetlb    Locked " + count + "object\n",
		addresses + line + dashes + "--------- --------- --------- -------- -------- -------- " + counted + object,
		"        0         0         0        0        0        0 "
}
