package androidsim

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

// fragment is a piece of an expanded word.
type fragment struct {
	text string
	// quoted text is neither split nor taken as a pattern.
	quoted bool
	// split text comes from an expansion outside quotes.
	split bool
	// apart begins a new field, as between the words of "$@".
	apart bool
}

var (
	errTooLong = errors.New("argument list too long")
	errMemory  = errors.New("out of memory")
)

// expander expands words with a budget of bytes.
type expander struct {
	*shell
	left int
}

func (s *shell) expander() *expander { return &expander{s, maxWords} }

func (e *expander) spend(n int) error {
	if err := e.ctx.Err(); err != nil {
		return err
	}
	if e.left -= n; e.left < 0 {
		return errTooLong
	}
	return nil
}

// fields expands words to arguments: expansions, splitting, patterns. Braces are plain text.
func (s *shell) fields(words []*syntax.Word) ([]string, error) {
	e := s.expander()
	var out []string
	for _, w := range words {
		frags, err := e.word(w.Parts, false)
		if err != nil {
			return nil, err
		}
		for _, field := range s.cut(frags) {
			values, err := e.glob(field)
			if err != nil {
				return nil, err
			}
			out = append(out, values...)
		}
	}
	return out, nil
}

// text expands a word to one string.
func (s *shell) text(w *syntax.Word) (string, error) {
	if w == nil {
		return "", nil
	}
	frags, err := s.expander().word(w.Parts, false)
	return join(frags), err
}

func join(frags []fragment) string {
	var b strings.Builder
	for i, f := range frags {
		if f.apart && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(f.text)
	}
	return b.String()
}

// hereText expands the body of a here-document; a quoted word before it makes
// the body literal, which the parser has seen to.
func (s *shell) hereText(rd *syntax.Redirect) (string, error) {
	quoted := slices.ContainsFunc(rd.Word.Parts, func(p syntax.WordPart) bool {
		lit, ok := p.(*syntax.Lit)
		return !ok || strings.Contains(lit.Value, `\`)
	})
	if lit := rd.Hdoc.Lit(); quoted && lit != "" {
		return lit, nil
	}
	frags, err := s.expander().word(rd.Hdoc.Parts, true)
	return join(frags), err
}

// pattern expands a word to an opaque pattern; what is quoted in it stands for
// itself.
func (s *shell) pattern(w *syntax.Word) (string, error) {
	if w == nil {
		return "", nil
	}
	frags, err := s.expander().word(w.Parts, false)
	return patternOf(frags), err
}

func patternOf(frags []fragment) string {
	var b strings.Builder
	for _, f := range frags {
		text := opaque(f.text)
		if f.quoted {
			text = pattern.QuoteMeta(text, 0)
		}
		b.WriteString(text)
	}
	return b.String()
}

// compile makes a regular expression, for opaque texts, of an opaque pattern; one
// that is none is text.
func compile(pat string, mode pattern.Mode) *regexp.Regexp {
	text, err := pattern.Regexp(pat, mode|pattern.ExtendedOperators)
	if err == nil {
		if re, err := regexp.Compile(text); err == nil {
			return re
		}
	}
	text = regexp.QuoteMeta(pat)
	if mode&pattern.EntireString != 0 {
		text = "^" + text + "$"
	}
	return regexp.MustCompile(text)
}

func matches(pat, text string) bool {
	return compile(pat, pattern.EntireString).MatchString(opaque(text))
}

// word expands the parts of a word; in quotes nothing will be split.
func (e *expander) word(parts []syntax.WordPart, quotes bool) ([]fragment, error) {
	var out []fragment
	for i, p := range parts {
		frags, err := e.part(p, quotes, i == 0)
		if err != nil {
			return nil, err
		}
		for _, f := range frags {
			if err := e.spend(len(f.text) + 1); err != nil {
				return nil, err
			}
		}
		out = append(out, frags...)
	}
	return out, nil
}

func (e *expander) part(p syntax.WordPart, quotes, first bool) ([]fragment, error) {
	switch p := p.(type) {
	case *syntax.Lit:
		if quotes {
			return []fragment{{text: unquoteDouble(p.Value), quoted: true}}, nil
		}
		return e.literal(p.Value, first), nil
	case *syntax.SglQuoted:
		if p.Dollar {
			return []fragment{{text: unescape(p.Value), quoted: true}}, nil
		}
		return []fragment{{text: p.Value, quoted: true}}, nil
	case *syntax.DblQuoted:
		frags, err := e.word(p.Parts, true)
		if len(p.Parts) == 0 {
			frags = []fragment{{quoted: true}}
		}
		return frags, err
	case *syntax.ParamExp:
		return e.param(p, quotes)
	case *syntax.CmdSubst:
		text, err := e.substitute(p)
		return []fragment{{text: text, quoted: quotes, split: !quotes}}, err
	case *syntax.ArithmExp:
		n, err := e.arithm(p.X)
		return []fragment{{text: strconv.FormatInt(n, 10), quoted: quotes, split: !quotes}}, err
	case *syntax.ExtGlob:
		return []fragment{{text: p.Op.String() + p.Pattern.Value + ")", quoted: quotes}}, nil
	}
	return nil, errors.New("process substitution: not supported by this shell")
}

// literal takes the backslashes out of plain text.
func (e *expander) literal(text string, first bool) []fragment {
	var out []fragment
	if rest, ok := strings.CutPrefix(text, "~"); ok && first && (rest == "" || rest[0] == '/') {
		home, _ := e.get("HOME")
		out, text = append(out, fragment{text: strings.TrimSuffix(home, "/"), quoted: true}), rest
		if text == "" && home == "/" {
			return []fragment{{text: "/", quoted: true}}
		}
	}
	for text != "" {
		i := strings.IndexByte(text, '\\')
		if i < 0 {
			return append(out, fragment{text: text})
		}
		if i > 0 {
			out = append(out, fragment{text: text[:i]})
		}
		rest := text[i+1:]
		_, size := utf8.DecodeRuneInString(rest)
		if rest != "" && rest[0] != '\n' {
			out = append(out, fragment{text: rest[:size], quoted: true})
		}
		text = rest[size:]
	}
	return out
}

// unquoteDouble is what a backslash means within double quotes.
func unquoteDouble(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			switch text[i+1] {
			case '\n':
				i++
				continue
			case '$', '`', '"', '\\':
				i++
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// unescape is what a backslash means in $'...', echo and the %b of printf.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		if at := strings.IndexByte(`abefnrtv\'"`, text[i]); at >= 0 {
			b.WriteByte("\a\b\x1b\f\n\r\t\v\\'\""[at])
			continue
		}
		digits, base, from := 0, 8, i
		switch text[i] {
		case 'x':
			digits, base, from = 2, 16, i+1
		case '0', '1', '2', '3', '4', '5', '6', '7':
			digits = 3
			if text[i] == '0' {
				digits = 4
			}
		}
		to := from
		for to < len(text) && to < from+digits && strings.IndexByte("0123456789abcdefABCDEF"[:base+base/16*6], text[to]) >= 0 {
			to++
		}
		if to == from {
			b.WriteByte('\\')
			b.WriteByte(text[i])
			continue
		}
		n, _ := strconv.ParseUint(text[from:to], base, 32)
		b.WriteByte(byte(n))
		i = to - 1
	}
	return b.String()
}

// substitute runs $(...).
func (e *expander) substitute(c *syntax.CmdSubst) (string, error) {
	if c.TempFile || c.ReplyVar {
		return "", errors.New("this substitution is not supported by this shell")
	}
	if e.deep() {
		return "", errFatal{errors.New("recursion too deep")}
	}
	if text, ok, err := e.shortcut(c); ok {
		return text, err
	}
	out := &buffer{max: maxCapture}
	sub := e.clone()
	defer sub.cancel(nil)
	sub.fds[1] = end{sink: out}
	sub.stmts(c.Stmts)
	e.last, e.substituted = sub.finish(), true
	if out.full {
		return "", errMemory
	}
	text := strings.ReplaceAll(string(out.data), "\x00", "")
	return strings.TrimRight(text, "\n"), e.ctx.Err()
}

// shortcut is $(<file).
func (e *expander) shortcut(c *syntax.CmdSubst) (text string, ok bool, err error) {
	if len(c.Stmts) != 1 || c.Stmts[0].Cmd != nil || len(c.Stmts[0].Redirs) != 1 || c.Stmts[0].Redirs[0].Op != syntax.RdrIn {
		return "", false, nil
	}
	name, err := e.text(c.Stmts[0].Redirs[0].Word)
	if err != nil {
		return "", true, err
	}
	data, err := e.phone.readFile(clean(e.cwd, name), e.cred)
	if err != nil {
		return "", true, fmt.Errorf("can't open %s: %s", name, errorText(err))
	}
	if len(data) > maxCapture {
		return "", true, errMemory
	}
	return strings.TrimRight(string(data), "\n"), true, nil
}

// cut splits what is to be split at IFS, and gives the fields.
func (s *shell) cut(frags []fragment) [][]fragment {
	ifs, ok := s.get("IFS")
	if !ok {
		ifs = " \t\n"
	}
	var out [][]fragment
	var field []fragment
	begun := false
	flush := func() {
		out = append(out, field)
		field, begun = nil, false
	}
	for _, f := range frags {
		if f.apart && begun {
			flush()
		}
		if !f.split {
			field = append(field, f)
			begun = begun || f.quoted || f.text != ""
			continue
		}
		for text := f.text; text != ""; {
			i := strings.IndexAny(text, ifs)
			if i != 0 {
				if i < 0 {
					i = len(text)
				}
				field, begun = append(field, fragment{text: text[:i]}), true
				text = text[i:]
				continue
			}
			// Blanks around another separator are one separator with it.
			rest := strings.TrimLeft(text, blanksOf(ifs))
			if at := strings.IndexAny(rest, ifs); at == 0 && (begun || len(rest) == len(text)) {
				flush()
				_, size := utf8.DecodeRuneInString(rest)
				rest = strings.TrimLeft(rest[size:], blanksOf(ifs))
			} else if begun {
				flush()
			}
			text = rest
		}
	}
	if begun {
		flush()
	}
	return out
}

// blanksOf is the white space among the separators.
func blanksOf(ifs string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '\t' || r == '\n' {
			return r
		}
		return -1
	}, ifs)
}

// maxMatches bounds what one pattern finds.
const maxMatches = 40000

// glob gives the files that a field means, or the field itself.
func (e *expander) glob(field []fragment) ([]string, error) {
	plain := join(field)
	meta := slices.ContainsFunc(field, func(f fragment) bool { return !f.quoted && strings.ContainsAny(f.text, "*?[") })
	if !meta || e.noglob {
		return []string{plain}, nil
	}
	found := []string{""}
	pat := patternOf(field)
	if strings.HasPrefix(pat, "/") {
		found[0] = "/"
	}
	segments := strings.FieldsFunc(pat, func(r rune) bool { return r == '/' })
	for i, seg := range segments {
		var next []string
		for _, base := range found {
			more, err := e.globSegment(base, seg, i < len(segments)-1)
			if err != nil {
				return nil, err
			}
			if next = append(next, more...); len(next) > maxMatches {
				return nil, errTooLong
			}
		}
		found = next
	}
	for _, f := range found {
		if err := e.spend(len(f)); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return []string{plain}, nil
	}
	slices.Sort(found)
	return found, nil
}

// globSegment matches one part of a path in a directory.
func (e *expander) globSegment(base, seg string, dirs bool) ([]string, error) {
	if err := e.ctx.Err(); err != nil {
		return nil, err
	}
	under := func(name string) string {
		if base == "" || strings.HasSuffix(base, "/") {
			return base + name
		}
		return base + "/" + name
	}
	if !pattern.HasMeta(seg, 0) {
		name := under(plain(strings.ReplaceAll(seg, `\`, "")))
		if _, err := e.phone.stat(clean(e.cwd, name), e.cred); err != nil {
			return nil, nil
		}
		return []string{name}, nil
	}
	entries, err := e.phone.readDir(clean(e.cwd, base), e.cred)
	if err != nil {
		return nil, nil
	}
	re := compile(seg, pattern.EntireString|pattern.Filenames)
	var out []string
	for _, f := range entries {
		hidden := strings.HasPrefix(f.name, ".") && !strings.HasPrefix(seg, ".")
		if !hidden && re.MatchString(opaque(f.name)) && (f.IsDir() || !dirs) {
			out = append(out, under(f.name))
		}
	}
	return out, nil
}

// get gives a variable.
func (s *shell) get(name string) (value string, set bool) {
	v := s.vars[name]
	if v == nil {
		return "", false
	}
	return v.value, true
}

// set changes a variable.
func (s *shell) set(name, value string) error {
	v := s.vars[name]
	if v == nil {
		v = &variable{}
		s.size += len(name) + 32
	}
	if v.readonly {
		return fmt.Errorf("%s: is read only", name)
	}
	if s.size+len(value)-len(v.value) > maxVariables {
		return errMemory
	}
	s.size += len(value) - len(v.value)
	v.value = value
	s.vars[name] = v
	return nil
}

func (s *shell) unset(name string) {
	if v := s.vars[name]; v != nil && !v.readonly {
		s.size -= len(name) + 32 + len(v.value)
		delete(s.vars, name)
	}
}

// special gives a parameter that is not a variable.
func (s *shell) special(name string) (value string, set, special bool) {
	switch name {
	case "?":
		return strconv.Itoa(s.last), true, true
	case "$":
		return strconv.Itoa(s.leader.pid), true, true
	case "!":
		return strconv.Itoa(s.job), s.job != 0, true
	case "#":
		return strconv.Itoa(len(s.params)), true, true
	case "0":
		return s.name, true, true
	case "-":
		return "", true, true
	case "PPID":
		return strconv.Itoa(s.leader.parent), true, true
	}
	n, err := strconv.Atoi(name)
	if err != nil {
		return "", false, false
	}
	if n < 1 || n > len(s.params) {
		return "", false, true
	}
	return s.params[n-1], true, true
}

// param expands $name and ${...}.
func (e *expander) param(p *syntax.ParamExp, quotes bool) ([]fragment, error) {
	bad := errors.New("bad substitution")
	if p.Param == nil || p.Slice != nil || p.Repl != nil || p.Excl || p.Width || p.IsSet || p.Index != nil || p.Names != 0 || p.NestedParam != nil || len(p.Modifiers) > 0 || p.Flags != nil {
		return nil, bad
	}
	name := p.Param.Value
	one := func(text string) []fragment { return []fragment{{text: text, quoted: quotes, split: !quotes}} }
	if name == "@" || name == "*" {
		return e.all(p, name, quotes)
	}
	value, set, special := e.special(name)
	if !special {
		value, set = e.get(name)
	}
	switch {
	case p.Length:
		return one(strconv.Itoa(utf8.RuneCountInString(value))), nil
	case p.Exp != nil:
		return e.operate(p, name, value, set, quotes)
	case !set && e.nounset:
		return nil, errFatal{fmt.Errorf("%s: parameter not set", name)}
	}
	return one(value), nil
}

// all expands $@ and $*.
func (e *expander) all(p *syntax.ParamExp, name string, quotes bool) ([]fragment, error) {
	if p.Length {
		return []fragment{{text: strconv.Itoa(len(e.params)), quoted: quotes}}, nil
	}
	if p.Exp != nil || p.Repl != nil || p.Slice != nil {
		return nil, errors.New("bad substitution")
	}
	if quotes && name == "*" {
		ifs, set := e.get("IFS")
		sep := " "
		if set {
			sep = ifs[:min(1, len(ifs))]
		}
		return []fragment{{text: strings.Join(e.params, sep), quoted: true}}, nil
	}
	var out []fragment
	for _, v := range e.params {
		out = append(out, fragment{text: v, quoted: quotes, split: !quotes, apart: true})
	}
	if len(out) > 0 {
		out[0].apart = false
	}
	return out, nil
}

// operate is ${name-word} and its relatives.
func (e *expander) operate(p *syntax.ParamExp, name, value string, set, quotes bool) ([]fragment, error) {
	one := func(text string) []fragment { return []fragment{{text: text, quoted: quotes, split: !quotes}} }
	present := set
	switch p.Exp.Op {
	case syntax.AlternateUnsetOrNull, syntax.DefaultUnsetOrNull, syntax.ErrorUnsetOrNull, syntax.AssignUnsetOrNull:
		present = set && value != ""
	}
	word := func() ([]fragment, error) {
		if p.Exp.Word == nil {
			return nil, nil
		}
		frags, err := e.word(p.Exp.Word.Parts, quotes)
		for i := range frags {
			frags[i].split = !frags[i].quoted
		}
		return frags, err
	}
	switch p.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		if present {
			return word()
		}
		return nil, nil
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		if present {
			return one(value), nil
		}
		return word()
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if present {
			return one(value), nil
		}
		frags, err := word()
		if err != nil {
			return nil, err
		}
		if !syntax.ValidName(name) {
			return nil, errors.New("bad substitution")
		}
		return one(join(frags)), e.set(name, join(frags))
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if present {
			return one(value), nil
		}
		frags, err := word()
		if err != nil {
			return nil, err
		}
		text := join(frags)
		if text == "" {
			text = "parameter null or not set"
		}
		return nil, errFatal{fmt.Errorf("%s: %s", name, text)}
	}
	text, err := e.trim(p.Exp, value)
	return one(text), err
}

// trim is ${name#pattern} and its relatives.
func (e *expander) trim(x *syntax.Expansion, value string) (string, error) {
	pat, err := e.pattern(x.Word)
	if err != nil {
		return "", err
	}
	re := compile(pat, pattern.EntireString)
	prefix, large := false, false
	switch x.Op {
	case syntax.RemSmallPrefix:
		prefix = true
	case syntax.RemLargePrefix:
		prefix, large = true, true
	case syntax.RemSmallSuffix:
	case syntax.RemLargeSuffix:
		large = true
	default:
		return "", errors.New("bad substitution")
	}
	text := opaque(value)
	for n := range len(text) + 1 {
		if err := e.ctx.Err(); err != nil {
			return "", err
		}
		if large {
			n = len(text) - n
		}
		at := n
		if !prefix {
			at = len(text) - n
		}
		switch {
		case at < len(text) && !utf8.RuneStart(text[at]):
		case prefix && re.MatchString(text[:at]):
			return plain(text[at:]), nil
		case !prefix && re.MatchString(text[at:]):
			return plain(text[:at]), nil
		}
	}
	return value, nil
}

// arithm evaluates $((...)) in 64 bits.
func (s *shell) arithm(x syntax.ArithmExpr) (int64, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	switch x := x.(type) {
	case *syntax.Word:
		text, err := s.text(x)
		if err != nil {
			return 0, err
		}
		return s.number(text, 0)
	case *syntax.ParenArithm:
		return s.arithm(x.X)
	case *syntax.UnaryArithm:
		return s.unary(x)
	case *syntax.BinaryArithm:
		return s.binaryArithm(x)
	}
	return 0, errors.New("bad arithmetic expression")
}

// number reads a number, or the variable of that name.
func (s *shell) number(text string, depth int) (int64, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return n, nil
	}
	if depth < 8 && syntax.ValidName(text) {
		value, _ := s.get(text)
		return s.number(value, depth+1)
	}
	return 0, fmt.Errorf("%.80s: bad number", text)
}

func (s *shell) unary(x *syntax.UnaryArithm) (int64, error) {
	n, err := s.arithm(x.X)
	switch x.Op {
	case syntax.Not:
		return yes(n == 0), err
	case syntax.BitNegation:
		return ^n, err
	case syntax.Minus:
		return -n, err
	case syntax.Plus:
		return n, err
	}
	return 0, errors.New("bad arithmetic operator")
}

func yes(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (s *shell) binaryArithm(x *syntax.BinaryArithm) (int64, error) {
	left, err := s.arithm(x.X)
	if err != nil {
		return 0, err
	}
	switch x.Op {
	case syntax.TernQuest:
		branches, ok := x.Y.(*syntax.BinaryArithm)
		if !ok || branches.Op != syntax.TernColon {
			return 0, errors.New("bad arithmetic expression")
		}
		if left != 0 {
			return s.arithm(branches.X)
		}
		return s.arithm(branches.Y)
	case syntax.AndArit:
		if left == 0 {
			return 0, nil
		}
	case syntax.OrArit:
		if left != 0 {
			return 1, nil
		}
	}
	right, err := s.arithm(x.Y)
	if err != nil {
		return 0, err
	}
	if x.Op == syntax.AndArit || x.Op == syntax.OrArit {
		return yes(right != 0), nil
	}
	return calculate(x.Op, left, right)
}

func calculate(op syntax.BinAritOperator, a, b int64) (int64, error) {
	switch op {
	case syntax.Add:
		return a + b, nil
	case syntax.Sub:
		return a - b, nil
	case syntax.Mul:
		return a * b, nil
	case syntax.Quo, syntax.Rem:
		switch {
		case b == 0:
			return 0, errors.New("divide by zero")
		case b == -1 && op == syntax.Quo:
			return -a, nil
		case b == -1:
			return 0, nil
		case op == syntax.Quo:
			return a / b, nil
		}
		return a % b, nil
	case syntax.And:
		return a & b, nil
	case syntax.Or:
		return a | b, nil
	case syntax.Xor:
		return a ^ b, nil
	case syntax.Shl:
		return a << uint(b&63), nil
	case syntax.Shr:
		return a >> uint(b&63), nil
	case syntax.Eql:
		return yes(a == b), nil
	case syntax.Neq:
		return yes(a != b), nil
	case syntax.Lss:
		return yes(a < b), nil
	case syntax.Gtr:
		return yes(a > b), nil
	case syntax.Leq:
		return yes(a <= b), nil
	case syntax.Geq:
		return yes(a >= b), nil
	case syntax.Comma:
		return b, nil
	}
	return 0, errors.New("bad arithmetic operator")
}

// fileTest answers -e, -f, -d and the like.
func (s *shell) fileTest(op, name string) bool {
	i, err := s.phone.stat(clean(s.cwd, name), s.cred)
	if name == "" || err != nil {
		return false
	}
	switch op {
	case "-f":
		return i.mode.IsRegular()
	case "-d":
		return i.IsDir()
	case "-s":
		return i.size > 0
	case "-L", "-h", "-p", "-S", "-b":
		return false
	case "-c":
		return i.mode&fs.ModeCharDevice != 0
	case "-r", "-w", "-x":
		bits := map[string]fs.FileMode{"-r": 4, "-w": 2, "-x": 1}[op]
		n := node{mode: i.mode, uid: i.uid}
		return n.allowed(s.cred.uid, bits) && (op != "-w" || !strings.HasPrefix(clean(s.cwd, name), "/system"))
	}
	return true
}
