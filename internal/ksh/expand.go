package ksh

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

var (
	errTooLong = errors.New("argument list too long")
	errMemory  = errors.New("out of memory")
)

// expansion expands the words of one command within a byte limit; it implements
// expand.WriteEnviron for package expand, which has no limit itself.
type expansion struct {
	*shell
	left int
	err  error
}

func (s *shell) expand(f func(e *expansion, cfg *expand.Config) error) (err error) {
	e := &expansion{shell: s, left: maxWords}
	defer recovered(&err)
	err = f(e, &expand.Config{Env: e, CmdSubst: e.substitute, ExtGlob: true})
	if unset, ok := errors.AsType[expand.UnsetParameterError](err); ok {
		unset.Message = cmp.Or(unset.Message, "parameter null or not set")
		err = fatalError{errors.New(plain(unset.Error()))}
	}
	return cmp.Or(e.err, err)
}

// spend counts n bytes against the limit; it returns false if the limit is
// exceeded, the context is done, or an error occurred before.
func (e *expansion) spend(n int) bool {
	e.left -= n
	if e.err == nil && e.left < 0 {
		e.err = errTooLong
	}
	e.err = cmp.Or(e.err, e.ctx.Err())
	return e.err == nil
}

// Get returns a variable or parameter.
func (e *expansion) Get(name string) expand.Variable {
	if user, ok := strings.CutPrefix(name, "HOME "); ok {
		// ~user is not expanded: package expand would query the host.
		return expand.Variable{Set: true, Kind: expand.String, Str: "~" + user}
	}
	value, set := e.vars[name]
	switch n, err := strconv.Atoi(name); {
	case name == "@" || name == "*":
		v := expand.Variable{Set: true, Kind: expand.Indexed, List: []string{}}
		for _, p := range e.params {
			if !e.spend(len(p) + 1) {
				return expand.Variable{}
			}
			v.List = append(v.List, opaque(p))
		}
		return v
	case name == "?":
		value, set = strconv.Itoa(e.status), true
	case name == "$":
		value, set = strconv.Itoa(e.leader.PID), true
	case name == "PPID":
		value, set = strconv.Itoa(e.leader.Parent), true
	case name == "!":
		value, set = strconv.Itoa(e.job), e.job != 0
	case name == "#":
		value, set = strconv.Itoa(len(e.params)), true
	case name == "0":
		value, set = e.name, true
	case err == nil && n > 0 && n <= len(e.params):
		value, set = e.params[n-1], true
	}
	if !set || !e.spend(len(value)+1) {
		return expand.Variable{}
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: opaque(value)}
}

// Set sets a variable, as ${name:=word} and $((name=1)) do.
func (e *expansion) Set(name string, v expand.Variable) error {
	if !syntax.ValidName(name) {
		return errors.New("bad substitution")
	}
	return e.set(name, plain(v.Str))
}

// Each is a stub: the variable names would be needed only for ${!prefix*},
// which this shell does not support.
func (e *expansion) Each(func(string, expand.Variable) bool) {}

// substitute runs the commands of $(...).
func (e *expansion) substitute(w io.Writer, c *syntax.CmdSubst) error {
	if e.tooDeep() {
		return fatalError{errors.New("recursion too deep")}
	}
	out := &buffer{max: maxCapture}
	sub := e.clone()
	defer sub.cancel(nil)
	sub.fds[1] = end{sink: out}
	sub.stmts(c.Stmts)
	e.status, e.substituted = sub.finish(), true
	if out.full {
		return errMemory
	}
	if !e.spend(len(out.data)) {
		return e.err
	}
	_, err := io.WriteString(w, opaque(string(out.data)))
	return err
}

func (s *shell) fields(words []*syntax.Word) ([]string, error) {
	var out []string
	return out, s.expand(func(e *expansion, cfg *expand.Config) error {
		for field, err := range expand.FieldsSeq(cfg, words...) {
			if err != nil || !e.spend(len(field)+1) {
				return err
			}
			names, err := e.glob(field)
			if err != nil {
				return err
			}
			out = append(out, names...)
		}
		return nil
	})
}

// text expands a word to one string, without splitting it.
func (s *shell) text(w *syntax.Word) (text string, err error) {
	err = s.expand(func(_ *expansion, cfg *expand.Config) error {
		text, err = expand.Literal(cfg, w)
		return err
	})
	return plain(text), err
}

func (s *shell) matches(w *syntax.Word, text string) (hit bool, err error) {
	return hit, s.expand(func(_ *expansion, cfg *expand.Config) error {
		p, err := expand.Pattern(cfg, w)
		hit = compile(p, pattern.EntireString|pattern.ExtendedOperators).MatchString(opaque(text))
		return err
	})
}

// compile returns the regular expression for an opaque pattern; an invalid
// pattern is matched literally.
func compile(p string, mode pattern.Mode) *regexp.Regexp {
	if text, err := pattern.Regexp(p, mode); err == nil {
		if re, err := regexp.Compile(text); err == nil {
			return re
		}
	}
	return regexp.MustCompile("^" + regexp.QuoteMeta(p) + "$")
}

// Package expand is not used for globs: it would split and join paths by the
// rules of the host. Instead, unquoted glob characters pass through package
// expand as code points that opaque does not use. Glob characters in the values
// of unquoted variables are literal, which is the only difference from mksh.

const globs = "*?["

func markGlobs(words []*syntax.Word) {
	for _, w := range words {
		for _, part := range w.Parts {
			lit, ok := part.(*syntax.Lit)
			if !ok || !strings.ContainsAny(lit.Value, globs) {
				continue
			}
			var b strings.Builder
			for i := 0; i < len(lit.Value); i++ {
				ch := lit.Value[i]
				switch {
				case ch == '\\' && i+1 < len(lit.Value):
					b.WriteByte(ch)
					i++
					b.WriteByte(lit.Value[i])
				case strings.IndexByte(globs, ch) >= 0:
					b.WriteRune(opaqueBase + rune(ch))
				default:
					b.WriteByte(ch)
				}
			}
			lit.Value = b.String()
		}
	}
}

func globPattern(field string) string {
	var b strings.Builder
	for _, r := range field {
		if r >= opaqueBase && strings.ContainsRune(globs, r-opaqueBase) {
			b.WriteRune(r - opaqueBase)
		} else {
			b.WriteString(pattern.QuoteMeta(string(r), 0))
		}
	}
	return b.String()
}

// glob returns the files that match a field or, if none do, the field itself.
func (e *expansion) glob(field string) ([]string, error) {
	p := globPattern(field)
	if !pattern.HasMeta(p, 0) {
		return []string{plain(field)}, nil
	}
	found := []string{""}
	if strings.HasPrefix(p, "/") {
		found[0] = "/"
	}
	segments := strings.FieldsFunc(p, func(r rune) bool { return r == '/' })
	for i, segment := range segments {
		var next []string
		for _, base := range found {
			for _, name := range e.list(base, segment, i < len(segments)-1) {
				if !e.spend(len(base) + len(name)) {
					return nil, e.err
				}
				if base != "" && !strings.HasSuffix(base, "/") {
					name = "/" + name
				}
				next = append(next, base+name)
			}
		}
		found = next
	}
	if len(found) == 0 {
		return []string{plain(field)}, nil
	}
	slices.Sort(found)
	return found, nil
}

func (e *expansion) list(dir, segment string, dirs bool) []string {
	dir = e.sys.Clean(e.dir, dir)
	if !pattern.HasMeta(segment, 0) {
		name := plain(strings.ReplaceAll(segment, `\`, ""))
		if _, err := e.sys.Stat(e.sys.Clean(dir, name), e.cred); err != nil {
			return nil
		}
		return []string{name}
	}
	entries, err := e.sys.ReadDir(dir, e.cred)
	if err != nil {
		return nil
	}
	re := compile(segment, pattern.EntireString|pattern.Filenames)
	var out []string
	for _, f := range entries {
		hidden := strings.HasPrefix(f.Name(), ".") && !strings.HasPrefix(segment, ".")
		if !hidden && (f.IsDir() || !dirs) && re.MatchString(opaque(f.Name())) {
			out = append(out, f.Name())
		}
	}
	return out
}

func number(text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil && text != "" {
		return 0, fmt.Errorf("%.80s: bad number", text)
	}
	return n, nil
}
