package androidsim

import (
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// grepping is one run of grep.
type grepping struct {
	*call
	pattern                                        *linePattern
	invert, count, list, unlisted, quiet, only, no bool
	named, silent                                  bool
	most                                           int
	found                                          bool
	status                                         int
}

// grep follows toybox: lines of several files are printed with the file's name,
// the status is 0 for a hit, 1 for none and 2 after an error.
func grep(c *call) int {
	g := &grepping{call: c, most: -1}
	extended, fixed := c.args[0] == "egrep", c.args[0] == "fgrep"
	var fold, words, lines, recurse, names, noNames bool
	var patterns []string
	rest, ok := c.getopt("EFGHhsclLqvinowxre:m:Ra", func(o byte, v string) {
		switch o {
		case 'E':
			extended = true
		case 'F':
			fixed = true
		case 'H':
			names, noNames = true, false
		case 'h':
			noNames = true
		case 's':
			g.silent = true
		case 'c':
			g.count = true
		case 'l':
			g.list = true
		case 'L':
			g.unlisted = true
		case 'q':
			g.quiet = true
		case 'v':
			g.invert = true
		case 'i':
			fold = true
		case 'n':
			g.no = true
		case 'o':
			g.only = true
		case 'w':
			words = true
		case 'x':
			lines = true
		case 'r', 'R':
			recurse = true
		case 'e':
			patterns = append(patterns, v)
		case 'm':
			g.most, _ = strconv.Atoi(v)
		}
	})
	if !ok {
		return 2
	}
	if patterns == nil {
		if len(rest) == 0 {
			c.failf("no REGEX")
			return 2
		}
		patterns, rest = rest[:1], rest[1:]
	}
	var err error
	if g.pattern, err = c.phone.patterns.get(wanted{strings.Join(patterns, "\n"), extended, fixed, fold, words, lines}); err != nil {
		c.failf("bad REGEX '%.80s'", strings.Join(patterns, "\n"))
		return 2
	}
	if recurse {
		if len(rest) == 0 {
			rest = []string{"."}
		}
		names = true
		rest = g.below(rest)
	}
	g.named = (names || len(rest) > 1) && !noNames
	return g.files(rest)
}

// linePattern is what grep looks for in each line.
type linePattern struct {
	*regexp.Regexp
	fast *automaton // nil for a pattern that has none
}

// in says whether the pattern is in the line.
func (p *linePattern) in(line string) bool {
	if p.fast != nil {
		if found, known := p.fast.matches(line); known {
			return found
		}
	}
	return p.MatchString(line)
}

// wanted is what one grep asks for; each line of patterns is one.
type wanted struct {
	patterns                             string
	extended, fixed, fold, words, inFull bool
}

// linePatterns keeps the patterns that a phone was asked for: whoever watches it asks
// for the same ones all day.
type linePatterns struct {
	mu   sync.Mutex
	made map[wanted]*linePattern
}

// What bounds the patterns that are kept: beyond maxPatterns of them all are forgotten.
const (
	maxPatterns = 32
	maxKept     = 1 << 10 // bytes of one
)

func (k *linePatterns) get(w wanted) (*linePattern, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.made[w]; p != nil {
		return p, nil
	}
	p, err := grepPattern([]string{w.patterns}, w.extended, w.fixed, w.fold, w.words, w.inFull)
	if err != nil || len(w.patterns) > maxKept {
		return p, err
	}
	if k.made == nil || len(k.made) >= maxPatterns {
		k.made = map[wanted]*linePattern{}
	}
	k.made[w] = p
	return p, nil
}

// grepPattern joins all patterns; each line of a pattern is one.
func grepPattern(patterns []string, extended, fixed, fold, words, lines bool) (*linePattern, error) {
	var alternatives []string
	for _, p := range patterns {
		for line := range strings.SplitSeq(p, "\n") {
			// Package regexp takes no broken UTF-8 in a pattern and matches each such
			// byte of a text as U+FFFD.
			line = string([]rune(line))
			switch {
			case fixed:
				line = regexp.QuoteMeta(line)
			default:
				line = posixPattern(line, extended)
			}
			alternatives = append(alternatives, "(?:"+line+")")
		}
	}
	text := strings.Join(alternatives, "|")
	if words {
		text = `\b(?:` + text + `)\b`
	}
	if lines {
		text = "^(?:" + text + ")$"
	}
	if fold {
		text = "(?i:" + text + ")"
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	re.Longest()
	return &linePattern{re, newAutomaton(text)}, nil
}

// posixPattern turns a POSIX regular expression into one of Go. They differ in
// what a backslash does in brackets and, for basic ones, before operators.
func posixPattern(p string, extended bool) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch ch := p[i]; {
		case ch == '[':
			end := bracketEnd(p, i)
			b.WriteString(strings.ReplaceAll(p[i:end], `\`, `\\`))
			i = end - 1
		case ch == '\\' && i+1 < len(p):
			i++
			switch {
			case p[i] == '<' || p[i] == '>':
				b.WriteString(`\b`)
			case !extended && strings.IndexByte("(){}|+?", p[i]) >= 0:
				b.WriteByte(p[i])
			case strings.IndexByte("bBwWsSdD", p[i]) >= 0:
				b.WriteString(`\` + p[i:i+1])
			default:
				b.WriteString(regexp.QuoteMeta(p[i : i+1]))
			}
		case !extended && strings.IndexByte("(){}|+?", ch) >= 0:
			b.WriteString(`\` + string(ch))
		case !extended && ch == '*' && (i == 0 || i == 1 && p[0] == '^'):
			b.WriteString(`\*`)
		default:
			b.WriteByte(ch)
		}
	}
	return b.String()
}

// bracketEnd finds the end of a bracket expression that begins at i.
func bracketEnd(p string, i int) int {
	j := i + 1
	if j < len(p) && p[j] == '^' {
		j++
	}
	if j < len(p) && p[j] == ']' {
		j++
	}
	for j < len(p) && p[j] != ']' {
		if p[j] == '[' && j+1 < len(p) && p[j+1] == ':' {
			if k := strings.Index(p[j:], ":]"); k > 0 {
				j += k + 1
			}
		}
		j++
	}
	return min(j+1, len(p))
}

// below lists all files under directories.
func (g *grepping) below(names []string) []string {
	var out []string
	for i := 0; i < len(names) && len(out) < maxMatches && len(names) < maxMatches; i++ {
		entries, err := g.phone.readDir(clean(g.cwd, names[i]), g.cred)
		if err != nil {
			out = append(out, names[i])
			continue
		}
		for _, e := range entries {
			names = append(names, path.Join(names[i], e.name))
		}
	}
	return out
}

func (g *grepping) files(names []string) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	g.status = 1
	bad := false
	for _, name := range names {
		if g.ctx.Err() != nil || g.quiet && g.found {
			break
		}
		r, err := g.open(name)
		if err != nil {
			bad = true
			if !g.silent {
				g.failf("%s: %s", name, errorText(err))
			}
			continue
		}
		if name == "-" {
			name = "(standard input)"
		}
		g.file(name, r)
	}
	switch {
	case g.quiet && g.found:
		return 0
	case bad:
		return 2
	}
	return truth(g.found)
}

func (g *grepping) file(name string, r io.Reader) {
	prefix := ""
	if g.named {
		prefix = name + ":"
	}
	hits, number := 0, 0
	g.eachLine(r, func(line string) bool {
		number++
		line = strings.TrimSuffix(line, "\n")
		if g.pattern.in(line) == g.invert {
			return true
		}
		hits++
		g.found = g.found || !g.unlisted
		if g.quiet || g.list || g.unlisted {
			return false
		}
		if !g.count {
			label := prefix
			if g.no {
				label += strconv.Itoa(number) + ":"
			}
			g.show(label, line)
		}
		return g.most < 0 || hits < g.most
	})
	switch {
	case g.quiet:
	case g.list && hits > 0, g.unlisted && hits == 0:
		g.found = true
		g.printf("%s\n", name)
	case g.count && !g.list && !g.unlisted:
		g.printf("%s%d\n", prefix, hits)
	}
}

func (g *grepping) show(label, line string) {
	if !g.only {
		g.out.WriteString(label)
		g.out.WriteString(line)
		g.out.WriteByte('\n')
		return
	}
	for _, span := range g.pattern.FindAllStringIndex(line, -1) {
		if span[1] > span[0] {
			g.printf("%s%s\n", label, line[span[0]:span[1]])
		}
	}
}
