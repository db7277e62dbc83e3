package ksh

import (
	"io"
	"regexp"
	"strings"
	"sync"
)

type grepping struct {
	*Call
	pattern *linePattern
	// The options -v, -c, -l, -q, -o and -s; named means that lines are
	// prefixed with their file name.
	invert, count, list, quiet, only, silent, named bool
	found                                           bool
}

// grep follows toybox: the status is 0 if a line matched, 1 if none did, and 2
// after an error.
func grep(c *Call) int {
	g := &grepping{Call: c}
	var extended, fixed, names, noNames bool
	var patterns []string
	rest, ok := c.Getopt("EFHhsclqvoe:", func(o byte, v string) {
		switch o {
		case 'E':
			extended = true
		case 'F':
			fixed = true
		case 'H':
			names = true
		case 'h':
			noNames = true
		case 's':
			g.silent = true
		case 'c':
			g.count = true
		case 'l':
			g.list = true
		case 'q':
			g.quiet = true
		case 'v':
			g.invert = true
		case 'o':
			g.only = true
		case 'e':
			patterns = append(patterns, v)
		}
	})
	if !ok {
		return 2
	}
	if patterns == nil {
		if len(rest) == 0 {
			c.Failf("no REGEX")
			return 2
		}
		patterns, rest = rest[:1], rest[1:]
	}
	text := strings.Join(patterns, "\n")
	var err error
	if g.pattern, err = kept.get(grepKey{text, extended, fixed}); err != nil {
		c.Failf("bad REGEX '%.80s'", text)
		return 2
	}
	g.named = (names || len(rest) > 1) && !noNames
	return g.files(rest)
}

// linePattern is the pattern that grep matches against each line.
type linePattern struct {
	*regexp.Regexp
	fast *automaton // nil if the pattern has no automaton
}

func (p *linePattern) in(line string) bool {
	if p.fast != nil {
		if found, known := p.fast.matches(line); known {
			return found
		}
	}
	return p.MatchString(line)
}

// grepKey identifies the patterns of a grep; patterns contains one per line.
type grepKey struct {
	patterns        string
	extended, fixed bool
}

// linePatterns caches the latest patterns, because a run uses the same patterns
// repeatedly.
type linePatterns struct {
	mu   sync.Mutex
	made map[grepKey]*linePattern
}

var kept linePatterns

const (
	maxPatterns = 32
	maxKept     = 1 << 10 // bytes of one pattern
)

func (k *linePatterns) get(w grepKey) (*linePattern, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.made[w]; p != nil {
		return p, nil
	}
	p, err := grepPattern(w)
	if err != nil || len(w.patterns) > maxKept {
		return p, err
	}
	if k.made == nil || len(k.made) >= maxPatterns {
		k.made = map[grepKey]*linePattern{}
	}
	k.made[w] = p
	return p, nil
}

func grepPattern(w grepKey) (*linePattern, error) {
	var alternatives []string
	for line := range strings.SplitSeq(w.patterns, "\n") {
		// Package regexp rejects invalid UTF-8 in a pattern and treats each
		// invalid byte of its input as U+FFFD.
		line = string([]rune(line))
		if w.fixed {
			line = regexp.QuoteMeta(line)
		} else {
			line = posixPattern(line, w.extended)
		}
		alternatives = append(alternatives, "(?:"+line+")")
	}
	text := strings.Join(alternatives, "|")
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	re.Longest()
	return &linePattern{re, newAutomaton(text)}, nil
}

// posixPattern converts a POSIX regular expression to Go's syntax. The syntaxes
// differ in the meaning of a backslash inside brackets and, in basic
// expressions, before operators.
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

// bracketEnd returns the end of the bracket expression that begins at i.
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

func (g *grepping) files(names []string) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	bad := false
	for _, name := range names {
		if g.Ctx.Err() != nil || g.quiet && g.found {
			break
		}
		r, err := g.open(name)
		if err != nil {
			bad = true
			if !g.silent {
				g.Failf("%s: %s", name, ErrorText(err))
			}
			continue
		}
		if name == "-" {
			name = "(standard input)"
		}
		g.file(name, r)
	}
	if bad && !(g.quiet && g.found) {
		return 2
	}
	return statusOf(g.found)
}

func (g *grepping) file(name string, r io.Reader) {
	prefix := ""
	if g.named {
		prefix = name + ":"
	}
	hits := 0
	g.eachLine(r, func(line string) bool {
		line = strings.TrimSuffix(line, "\n")
		if g.pattern.in(line) == g.invert {
			return true
		}
		hits++
		g.found = true
		switch {
		case g.quiet || g.list:
			return false
		case g.count:
		case g.only:
			for _, span := range g.pattern.FindAllStringIndex(line, -1) {
				if span[1] > span[0] {
					g.Printf("%s%s\n", prefix, line[span[0]:span[1]])
				}
			}
		default:
			g.Out.WriteString(prefix)
			g.Out.WriteString(line)
			g.Out.WriteByte('\n')
		}
		return true
	})
	switch {
	case g.quiet:
	case g.list && hits > 0:
		g.Printf("%s\n", name)
	case g.count && !g.list:
		g.Printf("%s%d\n", prefix, hits)
	}
}
