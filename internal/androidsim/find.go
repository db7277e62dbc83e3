package androidsim

import (
	"io/fs"
	"path"
	"strconv"
)

// finder is one run of find: what it looks for and what it does with it.
type finder struct {
	*call
	name           string
	kind           byte
	least, deepest int
	remove         bool
	failed         int
}

// find knows -name, -type, -maxdepth, -mindepth, -print and -delete.
func find(c *call) int {
	f := finder{call: c, deepest: 64}
	var roots []string
	args := c.args[1:]
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "" || a[0] != '-' {
			roots = append(roots, a)
			continue
		}
		value := ""
		switch a {
		case "-name", "-type", "-maxdepth", "-mindepth":
			if i++; i >= len(args) {
				return c.failf("'%s' needs 1 arg", a)
			}
			value = args[i]
		}
		n, err := strconv.Atoi(value)
		switch {
		case a == "-name":
			f.name = value
		case a == "-type" && len(value) == 1:
			f.kind = value[0]
		case a == "-maxdepth" && err == nil:
			f.deepest = min(n, f.deepest)
		case a == "-mindepth" && err == nil:
			f.least = n
		case a == "-delete":
			f.remove = true
		case a == "-print":
		default:
			return c.failf("bad arg '%s'", a)
		}
	}
	if roots == nil {
		roots = []string{"."}
	}
	for _, root := range roots {
		i, err := c.phone.stat(clean(c.cwd, root), c.cred)
		if err != nil {
			f.fail(root, err)
			continue
		}
		f.walk(root, i, 0)
	}
	return f.failed
}

func (f *finder) fail(name string, err error) { f.failed = f.failf("%s: %s", name, errorText(err)) }

func (f *finder) walk(name string, i info, depth int) {
	if f.ctx.Err() != nil {
		return
	}
	if !f.remove {
		f.found(name, i, depth)
	}
	if i.IsDir() && depth < f.deepest {
		list, err := f.phone.readDir(clean(f.cwd, name), f.cred)
		if err != nil {
			f.fail(name, err)
		}
		for _, child := range list {
			below := name + "/" + child.name
			if name == "/" {
				below = name + child.name
			}
			f.walk(below, child, depth+1)
		}
	}
	if f.remove {
		f.found(name, i, depth)
	}
}

func (f *finder) found(name string, i info, depth int) {
	kinds := map[byte]bool{0: true, 'd': i.IsDir(), 'f': i.mode.IsRegular(), 'l': i.mode&fs.ModeSymlink != 0, 'c': i.mode&fs.ModeCharDevice != 0}
	if depth < f.least || !kinds[f.kind] {
		return
	}
	if ok, err := path.Match(f.name, path.Base(name)); f.name != "" && (!ok || err != nil) {
		return
	}
	if !f.remove {
		f.printf("%s\n", name)
	} else if err := f.phone.remove(clean(f.cwd, name), f.cred, true, false); err != nil {
		f.fail(name, err)
	}
}

// readlink prints where a symbolic link leads.
func readlink(c *call) int {
	names, ok := c.getopt("nfqemz", func(byte, string) {})
	if !ok || len(names) == 0 {
		return 1
	}
	failed := 0
	for _, name := range names {
		i, err := c.phone.stat(clean(c.cwd, name), c.cred)
		if err != nil || i.link == "" {
			failed = 1
			continue
		}
		c.printf("%s\n", i.link)
	}
	return failed
}
