package shim

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/hostdevice/meminfo"
	"github.com/leakgate/leakgate/internal/hostdevice/proctable"
)

// pidof prints the pids of the processes with the given names on one line
// (toybox pidof; -s is the only supported option). It exits with 1 if there is
// no such process.
func pidof(c command) int {
	args, single := c.args, false
	if len(args) > 0 && args[0] == "-s" {
		args, single = args[1:], true
	}
	var words []string
	for _, name := range args {
		pids, err := proctable.Find(name)
		if err != nil {
			return fail(c.err, "pidof", err)
		}
		for _, pid := range pids {
			words = append(words, strconv.Itoa(pid))
		}
	}
	if len(words) == 0 {
		return 1
	}
	if single {
		words = words[:1]
	}
	fmt.Fprintln(c.out, strings.Join(words, " "))
	return 0
}

// column is one column of the output of ps.
type column struct {
	name  string
	value func(proctable.Process) string
}

var columns = []column{
	{"PID", func(p proctable.Process) string { return strconv.Itoa(p.PID) }},
	{"UID", func(p proctable.Process) string { return strconv.Itoa(p.UID) }},
	{"USER", func(p proctable.Process) string { return userName(p.UID) }},
	{"NAME", func(p proctable.Process) string { return p.Name }},
	{"CMD", func(p proctable.Process) string { return clip(filepath.Base(p.Name), 15) }},
	{"ARGS", func(p proctable.Process) string { return p.Args }},
}

func clip(s string, n int) string { return s[:min(n, len(s))] }

// userName returns Android's name for a uid: an app of user 0 with uid 10123 is
// u0_a123 (libcutils, android_filesystem_config.h).
func userName(uid int) string {
	const perUser, firstApp, lastApp = 100000, 10000, 19999
	if app := uid % perUser; app >= firstApp && app <= lastApp {
		return fmt.Sprintf("u%d_a%d", uid/perUser, app-firstApp)
	}
	if uid == 2000 {
		return "shell"
	}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

// ps lists processes: `ps -A`, `ps -e`, `ps -p PID` and -o with the columns
// PID, UID, USER, NAME, CMD and ARGS. Without -A it lists the processes of the
// shell's user; toybox lists only those of the same terminal.
func ps(c command) int {
	shown, only, all, err := psOptions(c.args)
	if err != nil {
		fmt.Fprintf(c.err, "ps: %v\n", err)
		return 1
	}
	list, err := proctable.List()
	if err != nil {
		return fail(c.err, "ps", err)
	}
	rows := [][]string{make([]string, len(shown))}
	for i, col := range shown {
		rows[0][i] = col.name
	}
	for _, p := range list {
		if len(only) > 0 && !only[p.PID] || len(only) == 0 && !all && p.UID != os.Getuid() {
			continue
		}
		row := make([]string, len(shown))
		for i, col := range shown {
			row[i] = col.value(p)
		}
		rows = append(rows, row)
	}
	printColumns(c, rows)
	if len(only) > 0 && len(rows) == 1 {
		return 1
	}
	return 0
}

func psOptions(args []string) (shown []column, only map[int]bool, all bool, err error) {
	only = map[int]bool{}
	for len(args) > 0 {
		if args[0] == "-A" || args[0] == "-e" || args[0] == "-ef" {
			all, args = true, args[1:]
		} else if list, rest, ok := option(args, "-o"); ok {
			if shown, err = psColumns(shown, list); err != nil {
				return nil, nil, false, err
			}
			args = rest
		} else if list, rest, ok := option(args, "-p"); ok {
			for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' }) {
				pid, err := strconv.Atoi(word)
				if err != nil {
					return nil, nil, false, fmt.Errorf("bad -p %q", word)
				}
				only[pid] = true
			}
			args = rest
		} else {
			return nil, nil, false, fmt.Errorf("unknown option %q (see \"ps --help\")", args[0])
		}
	}
	if shown == nil {
		shown, err = psColumns(nil, "USER,PID,NAME")
	}
	return shown, only, all, err
}

func psColumns(shown []column, list string) ([]column, error) {
next:
	for name := range strings.SplitSeq(list, ",") {
		for _, col := range columns {
			if strings.EqualFold(col.name, name) {
				shown = append(shown, col)
				continue next
			}
		}
		return nil, fmt.Errorf("bad -o %s", name)
	}
	return shown, nil
}

func printColumns(c command, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	out := bufio.NewWriter(c.out)
	defer out.Flush()
	for _, row := range rows {
		for i, cell := range row {
			switch {
			case i == len(row)-1:
				fmt.Fprintln(out, cell)
			case strings.HasSuffix(rows[0][i], "ID"):
				fmt.Fprintf(out, "%*s ", widths[i], cell)
			default:
				fmt.Fprintf(out, "%-*s ", widths[i], cell)
			}
		}
	}
}

// showmap prints the mappings of a process, merged by name or, with -v and -a,
// one by one.
func showmap(c command) int {
	api, err := c.dir.API()
	if err != nil {
		return fail(c.err, "showmap", err)
	}
	o, ok := androidtext.ParseShowmap(c.args)
	if !ok {
		fmt.Fprint(c.err, androidtext.ShowmapUsage(api))
		return 1
	}
	layout, err := meminfo.OfProcess(o.PID)
	if err != nil {
		reason := err.Error()
		if path, ok := errors.AsType[*os.PathError](err); ok {
			reason = path.Err.Error()
			reason = strings.ToUpper(reason[:1]) + reason[1:] // in the C library's wording
		}
		if !o.Quiet {
			fmt.Fprint(c.err, androidtext.ShowmapError(api, o.PID, reason))
		}
		return 1
	}
	if _, err := io.WriteString(c.out, androidtext.Showmap(api, layout.Mappings, o)); err != nil {
		return 1
	}
	return 0
}
