package ksh

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/pattern"
	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxCommand is the kernel's MAX_ARG_STRLEN.
	maxCommand = 128 << 10
	// maxOpeners bounds everything that can nest in a command line: the parser
	// is recursive, and each level uses about 4 kB of stack.
	maxOpeners = 4000
)

type parseError struct{ error }

func (e parseError) Error() string { return plain(e.error.Error()) }

// parse parses an mksh script and rejects unsupported syntax. All strings in
// the result are encoded by opaque.
func parse(text string) (list []*syntax.Stmt, err error) {
	if len(text) > maxCommand {
		return nil, errors.New("argument list too long")
	}
	for _, o := range openers {
		// Openers are counted even if they do not nest: no real script has that
		// many.
		if strings.Count(text, o) > maxOpeners {
			return nil, errors.New("nested too deeply")
		}
	}
	defer recovered(&err)
	f, err := syntax.NewParser(syntax.Variant(syntax.LangMirBSDKorn)).Parse(strings.NewReader(opaque(text)), "")
	if err != nil {
		return nil, parseError{err}
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		if what := unsupported(n); what != "" && err == nil {
			err = fmt.Errorf("%s: not supported by this shell", what)
		}
		// Walk cannot visit missing nodes, such as the X of $(()).
		return n != nil && err == nil
	})
	if err != nil {
		return nil, err
	}
	syntax.Walk(f, func(n syntax.Node) bool {
		prepare(n)
		return n != nil
	})
	return f.Stmts, nil
}

// openers lists all tokens that can make the parser recurse one level deeper.
var openers = []string{
	"(", "{", "[", "`", "?", "-", "+", "~", "!", "|", "&", "if", "for", "while", "until", "case", "do", "time",
	"function",
}

// recovered converts a panic in the libraries, caused by unexpected input, to
// an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("bad substitution: %.200v", r)
	}
}

// unsupported names the unsupported part of a node, or returns "".
func unsupported(n syntax.Node) string {
	switch n := n.(type) {
	case *syntax.Stmt:
		if n.Coprocess || n.Disown {
			return "coprocess"
		}
	case *syntax.BinaryCmd:
		if n.Op != syntax.AndStmt && n.Op != syntax.OrStmt && n.Op != syntax.Pipe {
			return n.Op.String()
		}
	case *syntax.CallExpr, *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause:
	case *syntax.CaseClause:
		for _, item := range n.Items {
			if item.Op != syntax.Break {
				return item.Op.String()
			}
		}
	case *syntax.ForClause:
		if _, ok := n.Loop.(*syntax.WordIter); !ok || n.Select {
			return "this loop"
		}
	case syntax.Command:
		return "this kind of command"
	case *syntax.Assign:
		if n.Array != nil || n.Index != nil || n.Name == nil {
			return "array"
		}
	case *syntax.Redirect:
		if n.N != nil && (len(n.N.Value) != 1 || n.N.Value[0] < '0' || n.N.Value[0] > '9') {
			return "file descriptor " + n.N.Value
		}
		switch n.Op {
		case syntax.RdrIn, syntax.RdrOut, syntax.AppOut, syntax.DplIn, syntax.DplOut:
		default:
			return n.Op.String()
		}
	case *syntax.CmdSubst:
		if n.TempFile || n.ReplyVar || len(n.Stmts) == 1 && n.Stmts[0].Cmd == nil {
			return "this substitution"
		}
	case *syntax.ProcSubst:
		return n.Op.String()
	case *syntax.ParamExp:
		return unsupportedExpansion(n)
	}
	return ""
}

// unsupportedExpansion names the unsupported part of ${...}. Replacements are
// unsupported because a result could be as long as the product of the lengths
// of two variables.
func unsupportedExpansion(p *syntax.ParamExp) string {
	const what = "bad substitution"
	if p.Param == nil || p.Slice != nil || p.Repl != nil || p.Excl || p.Width || p.IsSet || p.Index != nil ||
		p.Names != 0 ||
		p.NestedParam != nil || len(p.Modifiers) > 0 || p.Flags != nil {
		return what
	}
	switch {
	case p.Exp == nil:
		return ""
	case trims(p.Exp.Op) && p.Exp.Word != nil:
		for _, part := range p.Exp.Word.Parts {
			// Package expand would treat the value of a quoted variable as a
			// pattern.
			if q, ok := part.(*syntax.DblQuoted); ok && len(q.Parts) > 0 && (&syntax.Word{Parts: q.Parts}).Lit() == "" {
				return what
			}
		}
		return ""
	}
	switch p.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull,
		syntax.ErrorUnset, syntax.ErrorUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return ""
	}
	return what
}

// trims reports whether an operator trims a pattern, as in ${name#pattern}.
func trims(op syntax.ParExpOperator) bool {
	switch op {
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		return true
	}
	return false
}

// prepare converts words for package expand. That package keeps backslashes in
// words that become a single string, ignores quotes in trim patterns, and
// expands globs by the host's rules.
func prepare(n syntax.Node) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		markGlobs(n.Args)
	case *syntax.WordIter:
		markGlobs(n.Items)
	case *syntax.Assign:
		unquote(n.Value)
	case *syntax.Redirect:
		unquote(n.Word)
	case *syntax.CaseClause:
		unquote(n.Word)
	case *syntax.ParamExp:
		switch {
		case n.Exp == nil || n.Exp.Word == nil:
		case trims(n.Exp.Op):
			for i, part := range n.Exp.Word.Parts {
				n.Exp.Word.Parts[i] = quotePattern(part)
			}
		default:
			unquote(n.Exp.Word)
		}
	}
}

// unquote replaces escaped characters with quoted ones.
func unquote(w *syntax.Word) {
	if w == nil {
		return
	}
	var out []syntax.WordPart
	for _, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			out = append(out, part)
			continue
		}
		for text := lit.Value; text != ""; {
			i := strings.IndexByte(text, '\\')
			if i < 0 || i+1 == len(text) {
				out = append(out, &syntax.Lit{Value: text})
				break
			}
			_, size := utf8.DecodeRuneInString(text[i+1:])
			if i > 0 {
				out = append(out, &syntax.Lit{Value: text[:i]})
			}
			out = append(out, &syntax.SglQuoted{Value: text[i+1 : i+1+size]})
			text = text[i+1+size:]
		}
	}
	w.Parts = out
}

// quotePattern converts a quoted part of a pattern to plain text that is
// matched literally.
func quotePattern(part syntax.WordPart) syntax.WordPart {
	text := ""
	switch part := part.(type) {
	case *syntax.SglQuoted:
		if text = part.Value; part.Dollar {
			return part
		}
	case *syntax.DblQuoted:
		text = (&syntax.Word{Parts: part.Parts}).Lit()
		text = strings.NewReplacer(`\\`, `\`, `\$`, `$`, `\"`, `"`, "\\`", "`").Replace(text)
	default:
		return part
	}
	return &syntax.Lit{Value: pattern.QuoteMeta(text, 0)}
}

// mksh scripts and file names may contain any bytes except NUL. The parser
// accepts only UTF-8. Package regexp accepts only UTF-8 in patterns, and treats
// all invalid bytes in the searched text alike. Bytes that are not UTF-8
// therefore pass through both packages as code points that nothing else uses.
// The same applies to CR, which the parser drops at the end of a line and
// treats as a blank elsewhere; in mksh it is an ordinary character (sh.h,
// C_LEX1).

// opaqueBase represents byte 0, and opaqueBase+255 represents byte 255; these
// code points are at the end of the last private use area. Code points of a
// script in this range are replaced byte by byte. opaqueBase+'*' and similar
// runes stand for glob characters (see markGlobs).
const opaqueBase = 0x10ff00

// opaque replaces CR and each byte that is not UTF-8 with a code point.
func opaque(text string) string {
	var b strings.Builder
	kept := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r < opaqueBase && r != '\r' && (r != utf8.RuneError || size > 1) {
			i += size
			continue
		}
		b.WriteString(text[kept:i])
		for range size {
			b.WriteRune(opaqueBase + rune(text[i]))
			i++
		}
		kept = i
	}
	if kept == 0 {
		return text
	}
	return b.String() + text[kept:]
}

// plain reverses opaque and markGlobs.
func plain(text string) string {
	var b strings.Builder
	kept := 0
	for i, r := range text {
		if r < opaqueBase {
			continue
		}
		b.WriteString(text[kept:i])
		b.WriteByte(byte(r - opaqueBase))
		kept = i + utf8.RuneLen(r)
	}
	if kept == 0 {
		return text
	}
	return b.String() + text[kept:]
}
