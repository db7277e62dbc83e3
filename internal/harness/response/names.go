package response

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/footprint"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// threadsFile is the name of the artifact with the names of threads, which
	// may be personal.
	threadsFile = "threads.txt"
	// beforeName separates the name of a thread from what grep prints before
	// it: /proc/PID/task/TID/comm:NAME.
	beforeName = "/comm:"
)

// hideThreads replaces each name in threads.txt with the part of it that may be
// shown. The snapshot keeps the full names, so two snapshots are compared by
// the names that the kernel reported. A file whose names cannot be hidden is
// removed.
func (c *Case) hideThreads() {
	if c.hide == nil {
		return
	}
	for i := range c.Record.Steps {
		s := &c.Record.Steps[i]
		if s.File != threadsFile {
			continue
		}
		size, err := c.folder.hideThreads(c)
		if err == nil {
			s.Bytes = size
			continue
		}
		c.warn(fmt.Errorf("hide names in %s: %w", threadsFile, err))
		if err := os.Remove(c.folder.in(threadsFile)); err != nil {
			c.warn(err)
			continue
		}
		s.File, s.Bytes, s.Note = "", 0, "removed: its names could not be hidden"
	}
}

func (f folder) hideThreads(c *Case) (size int64, err error) {
	content, err := f.content(threadsFile)
	if err != nil {
		return 0, err
	}
	list, directories := parseThreads(content)
	var b strings.Builder
	for i, t := range c.shown(list) {
		b.WriteString(directories[i] + beforeName + t.Name + "\n")
	}
	return int64(b.Len()), record.WriteFileAtomic(f.in(threadsFile), []byte(b.String()))
}

// shown returns the threads, with each name reduced to the part that may be
// shown; a name that is already hidden remains hidden.
func (c *Case) shown(list []footprint.Thread) []footprint.Thread {
	out := make([]footprint.Thread, len(list))
	patterns, sizes := footprint.Patterns(list)
	for i, t := range list {
		out[i] = footprint.Thread{TID: t.TID, Name: c.threadGroup(patterns[i], sizes[i])}
	}
	return out
}

// threadGroup returns the part of a name pattern that may be shown for a group
// with the given number of threads.
func (c *Case) threadGroup(pattern string, threads int) string {
	if pattern == noName {
		return pattern
	}
	return c.hide.ThreadGroup(pattern, threads)
}

// compareThreads compares two readings of the threads of one process. If the
// earlier reading comes from a run directory, its names are hidden, so the
// names of the later reading are hidden too before the comparison.
func (c *Case) compareThreads(hidden bool, before, after footprint.ThreadReading) footprint.ThreadGrowth {
	if hidden {
		before.Threads, after.Threads = c.shown(before.Threads), c.shown(after.Threads)
	}
	g := footprint.CompareThreads(before, after)
	if c.hide != nil {
		g.Rename(c.threadGroup)
	}
	return g
}

// parseThreads parses the output of grep. If a name contains a newline, the
// rest of the name is not a thread and is skipped.
func parseThreads(content []byte) (list []footprint.Thread, directories []string) {
	for line := range strings.Lines(string(content)) {
		directory, name, ok := strings.Cut(strings.TrimRight(line, "\r\n"), beforeName)
		tid, err := strconv.ParseInt(directory[strings.LastIndexByte(directory, '/')+1:], 10, 64)
		if ok && err == nil {
			list, directories = append(list, footprint.Thread{TID: tid, Name: name}), append(directories, directory)
		}
	}
	return list, directories
}
