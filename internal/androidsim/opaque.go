package androidsim

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// mksh and bionic's files take any bytes but NUL. The parser takes UTF-8 alone, and
// package regexp no other pattern, nor does it tell two broken bytes of a text
// apart. Such bytes go through both as code points that nothing else uses.

// opaqueBase stands for byte 0, opaqueBase+255 for the last one: the end of the
// last area for private use. Who sends one of these gets its bytes back.
const opaqueBase = 0x10ff00

// opaque puts a code point in the place of each byte that is not UTF-8.
func opaque(text string) string {
	var b strings.Builder
	kept := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r < opaqueBase && (r != utf8.RuneError || size > 1) {
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

// plain undoes opaque.
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

// opaqueScript is opaque for the parser, which drops a CR before the end of a line
// and takes others for blanks. To mksh it is a character like others (sh.h, C_LEX1).
func opaqueScript(text string) string {
	return strings.ReplaceAll(opaque(text), "\r", string(rune(opaqueBase+'\r')))
}

// plainTree undoes opaqueScript in all that is evaluated of a script.
func plainTree(f *syntax.File) {
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			n.Value = plain(n.Value)
		case *syntax.SglQuoted:
			n.Value = plain(n.Value)
		}
		// Walk cannot enter what is not there, such as the X of $(()).
		return n != nil
	})
}
