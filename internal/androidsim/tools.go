package androidsim

import (
	"bufio"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// tool is a program of /system/bin; it returns the exit status.
type tool func(c *call) int

// program is a tool with the Android version (API) from which on it is there:
// before 6.0 toolbox had few (system/core shell_and_utilities/README.md).
type program struct {
	run   tool
	since int
}

// programs is the table of a phone: a table of the package could not hold
// functions that look into it.
func programs() map[string]program {
	return map[string]program{
		"am": {am, 0}, "cat": {cat, 0}, "cp": {copyFile, 0}, "date": {date, 0},
		"df": {df, 0}, "dumpsys": {dumpsysTool, 0}, "find": {find, 23},
		"getprop": {getprop, 0}, "grep": {grep, 0}, "head": {head, 23}, "id": {id, 0}, "input": {input, 0}, "log": {logTool, 0}, "logcat": {logcat, 0}, "ls": {ls, 0}, "md5": {md5Tool, 0}, "md5sum": {md5sum, 23}, "mkdir": {mkdirTool, 0},
		"monkey": {monkey, 0}, "mv": {move, 0}, "nice": {nice, 23}, "pidof": {pidof, 23}, "pm": {pm, 0}, "ps": {ps, 0}, "readlink": {readlink, 19},
		"rm": {rm, 0}, "run-as": {runAs, 0}, "seq": {seq, 23}, "settings": {settings, 17},
		"sh": {sh, 0}, "sha256sum": {sha256sum, 26}, "showmap": {showmap, 0}, "sleep": {sleep, 0}, "stat": {stat, 23}, "su": {su, 0},
		"sync": {nothing, 0}, "tail": {tail, 23}, "tee": {tee, 23}, "timeout": {timeout, 23}, "touch": {touch, 0}, "toybox": {toybox, 23},
		"uname": {uname, 23}, "uptime": {uptime, 0}, "wc": {wc, 23}, "which": {whichTool, 23}, "whoami": {whoami, 23},
		"yes": {yesTool, 23},
	}
}

// tool finds a program of this phone.
func (p *Phone) tool(name string) (tool, bool) {
	t, ok := p.programs[name]
	switch {
	case !ok || t.since > p.opt.API || name == "su" && !p.opt.SU,
		// toolbox had it, and toybox has md5sum.
		name == "md5" && p.opt.API >= 23,
		// It came with debuggable builds alone (system/extras/showmap/Android.mk).
		name == "showmap" && p.opt.API < showmapEverywhere && p.opt.BuildType == "user" && !p.opt.Root:
		return nil, false
	}
	return t.run, true
}

// folder is where a program lies.
func (p *Phone) folder(name string) string {
	if name == "su" || name == "showmap" && p.opt.API < showmapEverywhere {
		return "/system/xbin/"
	}
	return "/system/bin/"
}

// toolAt gives the name of the program that lies at a clean path.
func (p *Phone) toolAt(at string) (string, bool) {
	name := at[strings.LastIndexByte(at, '/')+1:]
	return name, p.hasTool(name) && p.folder(name)+name == at
}

// hasTool also knows the builtins that are programs.
func (p *Phone) hasTool(name string) bool {
	_, ok := p.tool(name)
	return ok || slices.Contains(alsoTools, name)
}

// tools are the names of all programs.
func (p *Phone) tools() []string {
	out := slices.Clone(alsoTools)
	for name := range p.programs {
		if p.hasTool(name) {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

// getopt reads options the way toybox does: letters of spec, with a colon after
// those that take a value. Options may stand among the operands, unless spec
// begins with ^. ok is false after an error, which has been reported.
func (c *call) getopt(spec string, each func(opt byte, value string)) (rest []string, ok bool) {
	spec, first := strings.CutPrefix(spec, "^")
	args := c.args[1:]
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return append(rest, args[i+1:]...), true
		case len(a) < 2 || a[0] != '-':
			if first {
				return append(rest, args[i:]...), true
			}
			rest = append(rest, a)
			continue
		}
		for j := 1; j < len(a); j++ {
			at := strings.IndexByte(spec, a[j])
			if at < 0 || a[j] == ':' {
				c.failf("Unknown option '%s' (see \"%s --help\")", a[j:], c.args[0])
				return nil, false
			}
			if !strings.HasPrefix(spec[at+1:], ":") {
				each(a[j], "")
				continue
			}
			value := a[j+1:]
			if value == "" && i+1 < len(args) {
				i++
				value = args[i]
			} else if value == "" {
				c.failf("Missing argument to -%c", a[j])
				return nil, false
			}
			each(a[j], value)
			break
		}
	}
	return rest, true
}

// open gives the content of a file, or stdin for "-".
func (c *call) open(name string) (io.Reader, error) {
	if name == "-" {
		return c.in, nil
	}
	if e, ok := c.phone.endless(clean(c.cwd, name)); ok {
		return reader{c.ctx, e}, nil
	}
	return c.phone.readAll(clean(c.cwd, name), c.cred)
}

// eachFile calls f with every file, or with stdin if there is none.
func (c *call) eachFile(names []string, f func(name string, r io.Reader)) (failed int) {
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		if c.ctx.Err() != nil {
			return failed
		}
		r, err := c.open(name)
		if err != nil {
			failed = c.failf("%s: %s", name, errorText(err))
			continue
		}
		f(name, r)
	}
	return failed
}

// eachLine calls f with every line until it returns false. A line that is longer
// than a command line may be comes in pieces.
func (c *call) eachLine(r io.Reader, f func(line string) bool) {
	if c.lines == nil {
		c.lines = bufio.NewReader(r)
	} else {
		c.lines.Reset(r)
	}
	for c.ctx.Err() == nil {
		line, err := readLine(c.lines)
		if line != "" && !f(line) || err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func nothing(*call) int { return 0 }

func cat(c *call) int {
	names, ok := c.getopt("uetv", func(byte, string) {})
	if !ok {
		return 1
	}
	return c.eachFile(names, func(_ string, r io.Reader) {
		c.out.Flush()
		io.Copy(c.out, r)
		c.out.Flush()
	})
}

// count reads the number of head and tail.
func (c *call) count(text string) (int, bool) {
	// A number may have a unit (toybox lib/lib.c, atolx).
	digits, unit := text, 1
	if last := len(text) - 1; last > 0 {
		if u, ok := map[byte]int{'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30}[text[last]|0x20]; ok {
			digits, unit = text[:last], u
		}
	}
	n, err := strconv.Atoi(digits)
	if n *= unit; err != nil || n/unit*unit != n {
		c.failf("not integer: %s", text)
		return 0, false
	}
	return n, true
}

// numberOption turns -5 into -n5.
func (c *call) numberOption() {
	for i, a := range c.args[1:] {
		if _, err := strconv.Atoi(strings.TrimPrefix(a, "-")); err == nil && len(a) > 1 && a[0] == '-' {
			c.args[i+1] = "-n" + a[1:]
		}
	}
}

func head(c *call) int {
	lines, bytes, quiet := "10", "", false
	c.numberOption()
	names, ok := c.getopt("n:c:qv", func(o byte, v string) {
		switch o {
		case 'n':
			lines = v
		case 'c':
			bytes = v
		case 'q':
			quiet = true
		}
	})
	if !ok {
		return 1
	}
	n, ok := c.count(lines)
	if bytes != "" {
		n, ok = c.count(bytes)
	}
	if !ok {
		return 1
	}
	several := len(names) > 1 && !quiet
	return c.eachFile(names, func(name string, r io.Reader) {
		if several {
			c.printf("==> %s <==\n", name)
		}
		if bytes != "" {
			io.CopyN(c.out, r, int64(n))
			return
		}
		left := n
		if left <= 0 {
			return
		}
		c.eachLine(r, func(line string) bool {
			c.out.WriteString(line)
			left--
			return left > 0
		})
	})
}

// maxHeld bounds what sort and tail keep, in bytes.
const maxHeld = 16 << 20

// hold reads all lines of the input.
func (c *call) hold(r io.Reader, lines []string) ([]string, bool) {
	size := 0
	for _, l := range lines {
		size += len(l)
	}
	fits := true
	c.eachLine(r, func(line string) bool {
		size += len(line) + 16
		fits = size <= maxHeld
		lines = append(lines, strings.TrimSuffix(line, "\n"))
		return fits
	})
	if !fits {
		c.failf("out of memory")
	}
	return lines, fits
}

func tail(c *call) int {
	lines := "10"
	c.numberOption()
	names, ok := c.getopt("n:fFq", func(o byte, v string) {
		if o == 'n' {
			lines = v
		}
	})
	if !ok {
		return 1
	}
	from, fromStart := strings.CutPrefix(lines, "+")
	n, ok := c.count(from)
	if !ok {
		return 1
	}
	return c.eachFile(names, func(_ string, r io.Reader) {
		held, ok := c.hold(r, nil)
		if !ok {
			return
		}
		if fromStart {
			held = held[min(max(n-1, 0), len(held)):]
		} else {
			held = held[max(0, len(held)-max(n, -n)):]
		}
		for _, l := range held {
			c.printf("%s\n", l)
		}
	})
}

// sha256sum is toybox's from Android 8 on, md5sum from Android 6 on (toys/lsb/md5sum.c).
func sha256sum(c *call) int { return c.checksums("b", sha256.New) }
func md5sum(c *call) int    { return c.checksums("b", md5.New) }

// md5Tool is toolbox's (system/core toolbox/md5.c, Android 5).
func md5Tool(c *call) int { return c.checksums("", md5.New) }

func (c *call) checksums(options string, sum func() hash.Hash) int {
	names, ok := c.getopt(options, func(byte, string) {})
	if !ok {
		return 1
	}
	return c.eachFile(names, func(name string, r io.Reader) {
		h := sum()
		io.Copy(h, r)
		c.printf("%x  %s\n", h.Sum(nil), name)
	})
}

func wc(c *call) int {
	var lines, words, chars bool
	names, ok := c.getopt("lwcm", func(o byte, _ string) {
		lines, words, chars = lines || o == 'l', words || o == 'w', chars || o == 'c' || o == 'm'
	})
	if !ok {
		return 1
	}
	if !lines && !words && !chars {
		lines, words, chars = true, true, true
	}
	show := func(n [3]int64, name string) {
		var cells []string
		for i, on := range []bool{lines, words, chars} {
			if on {
				cells = append(cells, strconv.FormatInt(n[i], 10))
			}
		}
		if name != "-" {
			cells = append(cells, name)
		}
		c.printf("%s\n", strings.Join(cells, " "))
	}
	var total [3]int64
	failed := c.eachFile(names, func(name string, r io.Reader) {
		var n [3]int64
		// The number of bytes alone is that of the file, if it says one (toys/posix/wc.c).
		if size := c.sizeOf(name); size > 0 && chars && !lines && !words {
			n[2] = size
			show(n, name)
			total[2] += size
			return
		}
		c.eachLine(r, func(line string) bool {
			n[0] += int64(strings.Count(line, "\n"))
			n[1] += int64(len(strings.Fields(line)))
			n[2] += int64(len(line))
			return true
		})
		show(n, name)
		for i := range total {
			total[i] += n[i]
		}
	})
	if len(names) > 1 {
		show(total, "total")
	}
	return failed
}

// sizeOf is the size of a file, or of the one that stdin is, 0 for what says none.
func (c *call) sizeOf(name string) int64 {
	if name == "-" {
		if file, ok := c.fds[0].source.(*content); ok {
			return file.size
		}
		return 0
	}
	i, err := c.phone.stat(clean(c.cwd, name), c.cred)
	if err != nil || !i.mode.IsRegular() {
		return 0
	}
	return i.size
}

func tee(c *call) int {
	add := false
	names, ok := c.getopt("ai", func(o byte, _ string) { add = add || o == 'a' })
	if !ok {
		return 1
	}
	to := []io.Writer{c.out}
	failed := 0
	for _, name := range names {
		w, err := c.phone.openWrite(clean(c.cwd, name), c.cred, 0o666, add, false)
		if err != nil {
			failed = c.failf("%s: %s", name, errorText(err))
			continue
		}
		to = append(to, w)
	}
	if _, err := io.Copy(io.MultiWriter(to...), c.in); err != nil && c.ctx.Err() == nil {
		return 1
	}
	return failed
}

func seq(c *call) int {
	numbers := make([]int, 0, 3)
	for _, a := range c.args[1:] {
		n, ok := c.count(a)
		if !ok {
			return 1
		}
		numbers = append(numbers, n)
	}
	first, step, last := 1, 1, 0
	switch len(numbers) {
	case 1:
		last = numbers[0]
	case 2:
		first, last = numbers[0], numbers[1]
	case 3:
		first, step, last = numbers[0], numbers[1], numbers[2]
	default:
		return c.failf("Need 1 argument")
	}
	if step == 0 {
		return c.failf("step is 0")
	}
	for n := first; (n <= last) == (step > 0) || n == last; n += step {
		if _, err := fmt.Fprintf(c.out, "%d\n", n); err != nil || c.ctx.Err() != nil {
			return 1
		}
	}
	return 0
}

// writable opens a file for the tools that make some.
func (c *call) writable(name string) (*fileWriter, bool) {
	w, err := c.phone.openWrite(clean(c.cwd, name), c.cred, 0o666, false, false)
	if err != nil {
		c.failf("%s: %s", name, errorText(err))
		return nil, false
	}
	return w, true
}

// copyOne copies a file, into a directory under its own name.
func (c *call) copyOne(from, to string) bool {
	r, err := c.open(from)
	if err != nil {
		c.failf("%s: %s", from, errorText(err))
		return false
	}
	if i, err := c.phone.stat(clean(c.cwd, to), c.cred); err == nil && i.IsDir() {
		to = path.Join(to, path.Base(from))
	}
	if clean(c.cwd, from) == clean(c.cwd, to) {
		c.failf("'%s' is '%s'", from, to)
		return false
	}
	w, ok := c.writable(to)
	if !ok {
		return false
	}
	if _, err := io.Copy(w, r); err != nil {
		c.failf("%s: %s", to, errorText(err))
		return false
	}
	return true
}

func copyFile(c *call) int { return transfer(c, false) }
func move(c *call) int     { return transfer(c, true) }

func transfer(c *call, removes bool) int {
	names, ok := c.getopt("fpraRvi", func(byte, string) {})
	if !ok {
		return 1
	}
	if len(names) < 2 {
		return c.failf("Need 2 arguments")
	}
	failed := 0
	for _, from := range names[:len(names)-1] {
		if !c.copyOne(from, names[len(names)-1]) {
			failed = 1
			continue
		}
		if !removes {
			continue
		}
		if err := c.phone.remove(clean(c.cwd, from), c.cred, false, false); err != nil {
			failed = c.failf("%s: %s", from, errorText(err))
		}
	}
	return failed
}

func rm(c *call) int {
	var force, recurse bool
	names, ok := c.getopt("frRiv", func(o byte, _ string) {
		force, recurse = force || o == 'f', recurse || o == 'r' || o == 'R'
	})
	if !ok {
		return 1
	}
	if len(names) == 0 && !force {
		return c.failf("Needs 1 argument")
	}
	failed := 0
	for _, name := range names {
		err := c.phone.remove(clean(c.cwd, name), c.cred, recurse, recurse)
		if err != nil && !(force && errors.Is(err, fs.ErrNotExist)) {
			failed = c.failf("%s: %s", name, errorText(err))
		}
	}
	return failed
}

func mkdirTool(c *call) int {
	parents := false
	names, ok := c.getopt("pm:v", func(o byte, _ string) { parents = parents || o == 'p' })
	if !ok {
		return 1
	}
	failed := 0
	for _, name := range names {
		at := clean(c.cwd, name)
		for i := 1; parents && i < len(at) && len(at) <= maxPath; i++ {
			if at[i] == '/' {
				c.phone.mkdir(at[:i], c.cred)
			}
		}
		err := c.phone.mkdir(at, c.cred)
		if err != nil && !(parents && errors.Is(err, fs.ErrExist)) {
			failed = c.failf("'%s': %s", name, errorText(err))
		}
	}
	return failed
}

func touch(c *call) int {
	names, ok := c.getopt("acmd:t:", func(byte, string) {})
	if !ok {
		return 1
	}
	failed := 0
	for _, name := range names {
		if _, err := c.phone.openWrite(clean(c.cwd, name), c.cred, 0o666, true, false); err != nil {
			failed = c.failf("'%s': %s", name, errorText(err))
		}
	}
	return failed
}

func ls(c *call) int {
	if c.phone.opt.API < 23 {
		return oldLS(c)
	}
	var long, all, self bool
	names, ok := c.getopt("la1dhinsRASrtFZ", func(o byte, _ string) {
		long, all, self = long || o == 'l', all || o == 'a' || o == 'A', self || o == 'd'
	})
	if !ok {
		return 1
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	show := func(name string, i info) {
		if !long {
			c.printf("%s\n", name)
			return
		}
		owner := userName(i.uid)
		if i.link != "" {
			name += " -> " + i.link
		}
		c.printf("%s %2d %-8s %-8s %8d %s %s\n", modeText(i.mode), 1, owner, owner, i.size, i.mod.UTC().Format("2006-01-02 15:04"), name)
	}
	failed := 0
	for n, name := range names {
		i, err := c.phone.stat(clean(c.cwd, name), c.cred)
		var entries []info
		if err == nil && i.IsDir() && !self {
			entries, err = c.phone.readDir(clean(c.cwd, name), c.cred)
		}
		if err != nil {
			failed = c.failf("%s: %s", name, errorText(err))
			continue
		}
		if !i.IsDir() || self {
			show(name, i)
			continue
		}
		if len(names) > 1 {
			c.printf("%s%s:\n", map[bool]string{true: "\n"}[n > 0], name)
		}
		if long {
			c.printf("total %d\n", 4*len(entries))
		}
		for _, e := range entries {
			if all || !strings.HasPrefix(e.name, ".") {
				show(e.name, e)
			}
		}
	}
	return failed
}

// oldLS is that of toolbox (system/core/toolbox/ls.c).
func oldLS(c *call) int {
	var long, all, self, sizes bool
	names, ok := c.getopt("lasRdZpi", func(o byte, _ string) {
		long, all, self, sizes = long || o == 'l', all || o == 'a', self || o == 'd', sizes || o == 's'
	})
	if !ok {
		return 1
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	show := func(name string, i info) {
		switch {
		case sizes && !long:
			c.printf("%d %s\n", (i.size+511)/512, name)
			return
		case !long:
			c.printf("%s\n", name)
			return
		}
		size := strconv.FormatInt(i.size, 10)
		if !i.mode.IsRegular() {
			size = ""
		}
		if i.link != "" {
			name += " -> " + i.link
		}
		owner := userName(i.uid)
		c.printf("%s %-8s %-8s %8s %s %s\n", modeText(i.mode), owner, owner, size, i.mod.UTC().Format("2006-01-02 15:04"), name)
	}
	failed := 0
	for _, name := range names {
		i, err := c.phone.stat(clean(c.cwd, name), c.cred)
		if err != nil {
			c.out.Flush()
			fmt.Fprintf(c.errs, "%s: %s\n", name, errorText(err))
			failed = 1
			continue
		}
		if !i.IsDir() || self {
			show(name, i)
			continue
		}
		entries, err := c.phone.readDir(clean(c.cwd, name), c.cred)
		if err != nil {
			c.out.Flush()
			fmt.Fprintf(c.errs, "opendir failed, %s\n", errorText(err))
			failed = 1
		}
		for _, e := range entries {
			if all || !strings.HasPrefix(e.name, ".") {
				show(e.name, e)
			}
		}
	}
	return failed
}

// modeText is the first column of ls -l.
func modeText(m fs.FileMode) string {
	kind := "-"
	switch {
	case m.IsDir():
		kind = "d"
	case m&fs.ModeSymlink != 0:
		kind = "l"
	case m&fs.ModeCharDevice != 0:
		kind = "c"
	}
	return kind + m.Perm().String()[1:]
}

func stat(c *call) int {
	format := ""
	names, ok := c.getopt("c:fLt", func(o byte, v string) {
		if o == 'c' {
			format = v
		}
	})
	if !ok {
		return 1
	}
	failed := 0
	for _, name := range names {
		i, err := c.phone.stat(clean(c.cwd, name), c.cred)
		if err != nil {
			failed = c.failf("'%s': %s", name, errorText(err))
			continue
		}
		kind := "regular file"
		switch {
		case i.IsDir():
			kind = "directory"
		case i.link != "":
			kind = "symbolic link"
		}
		if format == "" {
			c.printf("  File: %s\n  Size: %d\t Blocks: %d\t IO Blocks: 4096\t%s\nAccess: (%04o/%s)\tUid: (%5d/%8s)\tGid: (%5d/%8s)\n",
				name, i.size, (i.size+511)/512, kind, i.mode.Perm(), modeText(i.mode), i.uid, userName(i.uid), i.uid, userName(i.uid))
			continue
		}
		c.printf("%s\n", strings.NewReplacer(
			"%%", "%", "%s", strconv.FormatInt(i.size, 10), "%n", name, "%N", name, "%a", fmt.Sprintf("%o", i.mode.Perm()), "%A", modeText(i.mode),
			"%u", strconv.Itoa(i.uid), "%U", userName(i.uid), "%g", strconv.Itoa(i.uid), "%G", userName(i.uid), "%F", kind,
			"%Y", strconv.FormatInt(i.mod.Unix(), 10), "%b", strconv.FormatInt((i.size+511)/512, 10), "%h", "1").Replace(format))
	}
	return failed
}

// seconds reads a duration as sleep and timeout do.
func (c *call) seconds(text string) (time.Duration, bool) {
	unit := 1.0
	if n := len(text); n > 0 {
		if f, ok := map[byte]float64{'s': 1, 'm': 60, 'h': 3600, 'd': 86400}[text[n-1]]; ok {
			unit, text = f, text[:n-1]
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0) {
		c.failf("not a number '%.80s'", text)
		return 0, false
	}
	return deviceTime(n * unit), true
}

func sleep(c *call) int {
	var sum time.Duration
	for _, a := range c.args[1:] {
		d, ok := c.seconds(a)
		if !ok {
			return 1
		}
		sum = min(sum+d, maxWait)
	}
	if len(c.args) < 2 {
		return c.failf("Needs 1 argument")
	}
	if c.phone.now().wait(c.ctx, sum) != nil {
		return statusOf(c.ctx)
	}
	return 0
}

// errTimeout is why timeout ended its command.
var errTimeout = errors.New("time is up")

func timeout(c *call) int {
	signal := sigTerm
	bad := ""
	rest, ok := c.getopt("^k:s:vi", func(o byte, v string) {
		if o != 's' {
			return
		}
		if n, ok := signalNumber(v); ok {
			signal = n
		} else {
			bad = v
		}
	})
	if !ok {
		return 125
	}
	if bad != "" || len(rest) < 2 {
		c.failf("%s", map[bool]string{true: "Needs 2 arguments", false: "bad -s '" + bad + "'"}[bad == ""])
		return 125
	}
	d, ok := c.seconds(rest[0])
	if !ok {
		return 125
	}
	sub := c.clone()
	if d > 0 {
		t := time.AfterFunc(c.phone.now().real(d), func() { sub.cancel(errTimeout) })
		defer t.Stop()
	}
	status := c.run(sub, rest[1:])
	switch {
	case !errors.Is(context.Cause(sub.ctx), errTimeout):
		return status
	case signal == sigKill:
		return 128 + sigKill
	}
	return 124
}

// nice runs a command: no process here waits for another one's turn (toys/posix/nice.c).
func nice(c *call) int {
	rest, ok := c.getopt("^n:", func(byte, string) {})
	if !ok || len(rest) == 0 {
		return 125
	}
	return c.run(c.clone(), rest)
}

func toybox(c *call) int {
	if len(c.args) < 2 {
		c.printf("%s\n", strings.Join(c.phone.tools(), " "))
		return 0
	}
	return c.run(c.clone(), c.args[1:])
}

func sh(c *call) int {
	command, isText := "", false
	rest, ok := c.getopt("^c:eiux", func(o byte, v string) {
		if o == 'c' {
			command, isText = v, true
		}
	})
	if !ok {
		return 1
	}
	c.out.Flush()
	sub := c.clone()
	defer sub.cancel(nil)
	sub.name, sub.params, sub.funcs = "sh", nil, map[string]*syntax.Stmt{}
	switch {
	case c.deep():
		return 1
	case isText:
		if len(rest) > 0 {
			sub.name, sub.params = rest[0], rest[1:]
		}
	case len(rest) > 0:
		return sub.scriptFile(rest[0], rest[1:])
	default:
		text, err := io.ReadAll(io.LimitReader(c.in, maxCommand+1))
		if err != nil && c.ctx.Err() != nil {
			return statusOf(c.ctx)
		}
		command = string(text)
	}
	sub.last = 0
	sub.script(command, false)
	return sub.finish()
}

func whichTool(c *call) int {
	n := 0
	for _, name := range c.args[1:] {
		if c.phone.hasTool(name) {
			c.printf("%s%s\n", c.phone.folder(name), name)
		} else {
			n = 1
		}
	}
	return n
}

func date(c *call) int {
	now := c.phone.wall().UTC()
	format := ""
	for _, a := range c.args[1:] {
		if f, ok := strings.CutPrefix(a, "+"); ok {
			format = f
		}
	}
	if format == "" {
		c.printf("%s\n", now.Format("Mon Jan _2 15:04:05 UTC 2006"))
		return 0
	}
	c.printf("%s\n", strings.NewReplacer("%%", "%", "%s", strconv.FormatInt(now.Unix(), 10), "%N", fmt.Sprintf("%09d", now.Nanosecond()),
		"%Y", now.Format("2006"), "%m", now.Format("01"), "%d", now.Format("02"), "%H", now.Format("15"), "%M", now.Format("04"),
		"%S", now.Format("05"), "%F", now.Format("2006-01-02"), "%T", now.Format("15:04:05"), "%Z", "UTC", "%z", "+0000").Replace(format))
	return 0
}

func uname(c *call) int {
	release, machine := kernelRelease(c.phone.opt.API), "aarch64"
	if c.phone.opt.Bits32 {
		machine = "armv7l"
	}
	text := "Linux"
	_, ok := c.getopt("asrmnvo", func(o byte, _ string) {
		switch o {
		case 'a':
			text = "Linux localhost " + release + " #1 SMP PREEMPT " + machine
		case 'r':
			text = release
		case 'm':
			text = machine
		case 'n':
			text = "localhost"
		}
	})
	c.printf("%s\n", text)
	return truth(ok)
}

func uptime(c *call) int {
	up := c.phone.Uptime()
	c.printf(" %s up %d:%02d,  0 users,  load average: 1.20, 1.14, 1.09\n", c.phone.wall().UTC().Format("15:04:05"), int(up/time.Hour), int(up/time.Minute)%60)
	return 0
}
