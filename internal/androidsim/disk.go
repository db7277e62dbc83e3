package androidsim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/ksh"
)

// mount is a file system as df prints it, in kB.
type mount struct {
	device, dir     string
	size, available int64
	// under is the path below which the phone's files are on this file system.
	under string
}

// The size of the /data file system, and the part available for files, in kB.
const (
	dataSize  = 112 << 20
	dataSpace = dataSize - 20<<20
)

// mounts returns the phone's file systems; a path belongs to the last one that
// contains it.
func (p *Phone) mounts() []mount {
	p.files.mu.Lock()
	limit, filled := p.files.limit()
	used := p.files.used
	p.files.mu.Unlock()
	// Unless FillDisk is active, the disk is larger than the limit on files in
	// memory.
	available := int64(dataSpace) - used/1024
	if filled {
		available = max(0, limit-used) / 1024
	}
	return []mount{
		{"/dev/block/dm-6", "/", 912456, 2768, "/"},
		{"tmpfs", "/dev", 3847680, 3846256, "/dev"},
		{"/dev/block/dm-43", "/data", dataSize, available, "/data"},
		{"/dev/fuse", "/storage/emulated", dataSize, available, "/sdcard"},
	}
}

// mountOf returns the file system that contains a clean path.
func mountOf(all []mount, name string) mount {
	found := all[0]
	for _, m := range all {
		if name == m.under || strings.HasPrefix(name, m.under+"/") {
			found = m
		}
	}
	return found
}

// df prints the usage of all file systems, or of those of the given paths.
func df(c *call) int {
	failed := 0
	names, ok := c.Args[1:], true
	// toolbox treats options as paths (system/core/toolbox/df.c).
	if c.phone.opt.API >= 23 {
		names, ok = c.Getopt("Pk", func(byte, string) {})
	}
	if !ok {
		return 1
	}
	all := c.phone.mounts()
	list := all
	if len(names) > 0 {
		list = nil
	}
	for _, name := range names {
		at := clean(c.Dir, name)
		if _, err := c.phone.stat(at, c.Cred); err != nil {
			failed = 1
			if c.phone.opt.API < 23 {
				fmt.Fprintf(c.Errs, "%s: %s\n", name, ksh.ErrorText(err))
			} else {
				c.Failf("'%s': %s", name, ksh.ErrorText(err))
			}
			continue
		}
		list = append(list, mountOf(all, at))
	}
	switch {
	case len(list) == 0:
	case c.phone.opt.API < 23:
		c.oldDF(list)
	default:
		c.dfTable(list)
	}
	return failed
}

// dfTable prints the table of toybox's df (toys/posix/df.c).
func (c *call) dfTable(list []mount) {
	rows := [][]string{{"Filesystem", "1K-blocks", "Used", "Available", "Use%"}}
	number := func(kb int64) string { return strconv.FormatInt(kb, 10) }
	width := []int{14, 0, 0, 0, 0}
	for _, m := range list {
		used := m.size - m.available
		share := (used*100 + m.size - 1) / m.size // rounded up
		rows = append(rows,
			[]string{m.device, number(m.size), number(used), number(m.available), fmt.Sprintf("%d%%", share)})
	}
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	for i, row := range rows {
		on := "Mounted on"
		if i > 0 {
			on = list[i-1].dir
		}
		c.Printf("%-*s %*s %*s %*s %*s %s\n", width[0], row[0], width[1], row[1], width[2], row[2], width[3], row[3],
			width[4], row[4], on)
	}
}

// oldDF prints the table of toolbox's df, as in the tests of AOSP's tradefed
// (TestDeviceTest, testGetExternalStoreFreeSpace_table).
func (c *call) oldDF(list []mount) {
	c.Printf("Filesystem             Size   Used   Free   Blksize\n")
	for _, m := range list {
		c.Printf("%-20s %6s %6s %6s   4096\n", m.dir, humanReadable(m.size), humanReadable(m.size-m.available),
			humanReadable(m.available))
	}
}

// humanReadable formats kB with a unit: one decimal place below 10, else none.
func humanReadable(kb int64) string {
	n, units := float64(kb), "KMGT"
	for n >= 1024 && len(units) > 1 {
		n, units = n/1024, units[1:]
	}
	if n < 9.95 && n != float64(int64(n)) {
		return fmt.Sprintf("%.1f%c", n, units[0])
	}
	return fmt.Sprintf("%.0f%c", n, units[0])
}
