package ksh

import (
	"bufio"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"
)

// Programs returns the programs of this package by name: the toybox programs
// that leakgate's scripts call, and the builtins that also exist as programs.
func Programs() map[string]Program {
	all := map[string]Program{
		"cat": cat, "date": date, "grep": grep, "ls": ls, "md5sum": md5sum, "mkdir": mkdir, "nice": nice, "rm": rm,
		"sh":        sh,
		"sha256sum": sha256sum, "sleep": sleep, "stat": stat, "touch": touch,
	}
	for _, name := range []string{"echo", "printf", "true", "false", "test", "[", "kill", "pwd"} {
		all[name] = builtinProgram
	}
	return all
}

// Open opens a file, or the standard input if the name is "-".
func (c *Call) open(name string) (io.Reader, error) {
	if name == "-" {
		return c.In, nil
	}
	r, err := c.shell.sys.Open(c.path(name), c.Cred)
	return reader{c.Ctx, &content{r: r}}, err
}

func (c *Call) path(name string) string { return c.shell.sys.Clean(c.Dir, name) }

func (c *Call) stat(name string) (FileInfo, error) { return c.shell.sys.Stat(c.path(name), c.Cred) }

// eachFile calls f for every file, or for the standard input if none is given.
func (c *Call) eachFile(names []string, f func(name string, r io.Reader)) (status int) {
	if len(names) == 0 {
		names = []string{"-"}
	}
	return c.each(names, "%s", func(name string) error {
		r, err := c.open(name)
		if err == nil {
			f(name, r)
		}
		return err
	})
}

// each calls f for every operand; it reports f's errors and returns the exit
// status.
func (c *Call) each(names []string, format string, f func(name string) error) (status int) {
	for _, name := range names {
		if c.Ctx.Err() != nil {
			return status
		}
		if err := f(name); err != nil {
			status = c.Failf(format+": %s", name, ErrorText(err))
		}
	}
	return status
}

// eachLine calls f for every line, including its newline, until f returns
// false. A line longer than the maximum command line is passed in pieces.
func (c *Call) eachLine(r io.Reader, f func(line string) bool) {
	if c.lines == nil {
		c.lines = bufio.NewReader(r)
	} else {
		c.lines.Reset(r)
	}
	for c.Ctx.Err() == nil {
		line, err := readLine(c.lines)
		if line != "" && !f(line) || err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// readLine reads a line of bounded length, including its newline.
func readLine(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) || len(line) > maxCommand {
			return string(line), err
		}
	}
}

func cat(c *Call) int {
	names, ok := c.Getopt("u", func(byte, string) {})
	if !ok {
		return 1
	}
	return c.eachFile(names, func(_ string, r io.Reader) {
		c.Out.Flush()
		io.Copy(c.Out, r)
		c.Out.Flush()
	})
}

func sha256sum(c *Call) int { return c.checksums(sha256.New) }
func md5sum(c *Call) int    { return c.checksums(md5.New) }

func (c *Call) checksums(sum func() hash.Hash) int {
	names, ok := c.Getopt("b", func(byte, string) {})
	if !ok {
		return 1
	}
	return c.eachFile(names, func(name string, r io.Reader) {
		h := sum()
		io.Copy(h, r)
		c.Printf("%x  %s\n", h.Sum(nil), name)
	})
}

func rm(c *Call) int {
	var force, recurse bool
	names, ok := c.Getopt("frR", func(o byte, _ string) { force, recurse = force || o == 'f', recurse || o != 'f' })
	if !ok {
		return 1
	}
	if len(names) == 0 && !force {
		return c.Failf("Needs 1 argument")
	}
	return c.each(names, "%s", func(name string) error {
		err := c.shell.sys.Remove(c.path(name), c.Cred, recurse)
		if force && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

func mkdir(c *Call) int {
	names, ok := c.Getopt("", func(byte, string) {})
	if !ok {
		return 1
	}
	return c.each(names, "'%s'", func(name string) error { return c.shell.sys.Mkdir(c.path(name), c.Cred) })
}

func touch(c *Call) int {
	names, ok := c.Getopt("c", func(byte, string) {})
	if !ok {
		return 1
	}
	return c.each(names, "'%s'", func(name string) error {
		_, err := c.shell.sys.Create(c.path(name), c.Cred, true)
		return err
	})
}

func ls(c *Call) int {
	var long, all, self bool
	names, ok := c.Getopt("la1d",
		func(o byte, _ string) { long, all, self = long || o == 'l', all || o == 'a', self || o == 'd' })
	if !ok {
		return 1
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	show := func(name string, i FileInfo) {
		if !long {
			c.Printf("%s\n", name)
			return
		}
		owner := c.shell.sys.UserName(i.Owner())
		if i.Target() != "" {
			name += " -> " + i.Target()
		}
		c.Printf("%s %2d %-8s %-8s %8d %s %s\n", ModeText(i.Mode()), 1, owner, owner, i.Size(),
			i.ModTime().UTC().Format("2006-01-02 15:04"), name)
	}
	return c.each(names, "%s", func(name string) error {
		i, err := c.stat(name)
		if err != nil {
			return err
		}
		if !i.IsDir() || self {
			show(name, i)
			return nil
		}
		entries, err := c.shell.sys.ReadDir(c.path(name), c.Cred)
		if err != nil {
			return err
		}
		if len(names) > 1 {
			c.Printf("%s:\n", name)
		}
		if long {
			c.Printf("total %d\n", 4*len(entries))
		}
		for _, e := range entries {
			if all || !strings.HasPrefix(e.Name(), ".") {
				show(e.Name(), e)
			}
		}
		return nil
	})
}

// ModeText returns the first column of the output of ls -l.
func ModeText(m fs.FileMode) string {
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

// stat supports only -c FORMAT.
func stat(c *Call) int {
	format := ""
	names, ok := c.Getopt("c:", func(_ byte, v string) { format = v })
	if !ok {
		return 1
	}
	return c.each(names, "'%s'", func(name string) error {
		i, err := c.stat(name)
		if err != nil {
			return err
		}
		c.Printf("%s\n", strings.NewReplacer(
			"%%", "%", "%s", strconv.FormatInt(i.Size(), 10), "%n", name, "%a", fmt.Sprintf("%o", i.Mode().Perm()),
			"%A", ModeText(i.Mode()), "%u", strconv.Itoa(i.Owner()), "%U", c.shell.sys.UserName(i.Owner()),
			"%Y", strconv.FormatInt(i.ModTime().Unix(), 10)).Replace(format))
		return nil
	})
}

// maxSleep is the maximum duration of a sleep: ten years.
const maxSleep = 10 * 365 * 24 * time.Hour

func sleep(c *Call) int {
	sum := 0.0
	for _, text := range c.Args[1:] {
		digits, unit := text, 1.0
		if n := len(text); n > 0 && strings.IndexByte("smhd", text[n-1]) >= 0 {
			digits, unit = text[:n-1], map[byte]float64{'s': 1, 'm': 60, 'h': 3600, 'd': 86400}[text[n-1]]
		}
		n, err := strconv.ParseFloat(digits, 64)
		if err != nil || !(n >= 0) {
			return c.Failf("not a number '%.80s'", text)
		}
		sum += n * unit
	}
	if len(c.Args) < 2 {
		return c.Failf("Needs 1 argument")
	}
	if c.shell.sys.Sleep(c.Ctx, time.Duration(math.Min(sum*float64(time.Second), float64(maxSleep)))) != nil {
		return Status(c.Ctx)
	}
	return 0
}

// nice runs a command unchanged: processes here do not compete for CPU time.
func nice(c *Call) int {
	rest, ok := c.Getopt("^n:", func(byte, string) {})
	if !ok || len(rest) == 0 {
		return 125
	}
	return c.Run(c.Cred.UID, "", rest)
}

func sh(c *Call) int {
	command, isText := "", false
	rest, ok := c.Getopt("^c:", func(_ byte, v string) { command, isText = v, true })
	c.Out.Flush()
	if !ok || c.shell.tooDeep() {
		return 1
	}
	sub := c.shell.clone()
	defer sub.cancel(nil)
	sub.name, sub.params, sub.status = "sh", nil, 0
	if isText && len(rest) > 0 {
		sub.name, sub.params = rest[0], rest[1:]
	}
	if !isText {
		var err error
		in := c.In
		if len(rest) > 0 {
			sub.name, sub.params = rest[0], rest[1:]
			if in, err = c.open(rest[0]); err != nil {
				sub.errorf("%s", ErrorText(err))
				return 127
			}
		}
		text, err := io.ReadAll(io.LimitReader(in, maxCommand+1))
		if err != nil && c.Ctx.Err() != nil {
			return Status(c.Ctx)
		}
		command = string(text)
	}
	sub.script(command, false)
	return sub.finish()
}

func date(c *Call) int {
	now := c.shell.sys.Now().UTC()
	if len(c.Args) < 2 || c.Args[1] == "" || c.Args[1][0] != '+' {
		c.Printf("%s\n", now.Format("Mon Jan _2 15:04:05 UTC 2006"))
		return 0
	}
	c.Printf("%s\n",
		strings.NewReplacer("%%", "%", "%s", strconv.FormatInt(now.Unix(), 10), "%N",
			fmt.Sprintf("%09d", now.Nanosecond()),
			"%Y", now.Format("2006"), "%m", now.Format("01"), "%d", now.Format("02"), "%H", now.Format("15"), "%M",
			now.Format("04"),
			"%S", now.Format("05")).Replace(c.Args[1][1:]))
	return 0
}
