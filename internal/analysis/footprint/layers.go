package footprint

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/text"
)

const (
	// maxLayers is the maximum number of layer names; maxLayerName is the
	// maximum length of a name, in bytes.
	maxLayers    = 1000
	maxLayerName = 128

	noLayer = "(no name)"
)

// layerSum holds the buffers of one layer.
type layerSum struct {
	count   int64
	bytes   int64
	unknown bool
}

func (p *layerSum) add(kb known.Int) {
	v := times(kb, 1024)
	p.count++
	p.unknown = p.unknown || !v.Known || p.bytes+v.N > maxBytes
	p.bytes = min(p.bytes+v.N, maxBytes)
}

func (p *layerSum) size() known.Int {
	if p.unknown {
		return known.Int{}
	}
	return known.Of(p.bytes)
}

// layersBetween returns the layers of the imported buffers if both snapshots
// contain them, otherwise the layers of the allocated buffers. Only one list is
// used, because most buffers are in both lists. It returns nil if neither list
// is in both snapshots.
func layersBetween(before, after *GraphicsReading) *layers {
	switch {
	case before.ImportedRead && after.ImportedRead:
		return layersOf(before.Imported, after.Imported)
	case before.BuffersRead && after.BuffersRead:
		return layersOf(before.Buffers, after.Buffers)
	}
	return nil
}

// layers adds up the buffers of both snapshots by the simplified names of their
// layers.
type layers struct {
	before, after map[string]*layerSum
	names         []string
}

func layersOf(before, after []Buffer) *layers {
	l := &layers{before: map[string]*layerSum{}, after: map[string]*layerSum{}}
	seen := map[string]bool{}
	for _, side := range []struct {
		sums map[string]*layerSum
		list []Buffer
	}{{l.before, before}, {l.after, after}} {
		for _, b := range side.list {
			name := simplifyLayer(b.Layer)
			if !seen[name] && len(seen) >= maxLayers {
				name = othersName
			}
			if !seen[name] {
				seen[name] = true
				l.names = append(l.names, name)
			}
			if side.sums[name] == nil {
				side.sums[name] = new(layerSum)
			}
			side.sums[name].add(b.KB)
		}
	}
	return l
}

// row compares a layer by bytes, or by the number of its buffers if a buffer
// has no size.
func (l *layers) row(name string) GraphicsRow {
	before, after := l.sum(l.before, name), l.sum(l.after, name)
	r := GraphicsRow{
		Source: SurfaceFlinger, Name: name, Unit: Bytes, Before: before.size(), After: after.size(),
		BuffersBefore: before.count, BuffersAfter: after.count,
	}
	if !r.Before.Known || !r.After.Known {
		r.Unit, r.Before, r.After = Count, known.Of(before.count), known.Of(after.count)
	}
	r.Delta = r.After.N - r.Before.N
	return r
}

func (l *layers) sum(side map[string]*layerSum, name string) layerSum {
	if p := side[name]; p != nil {
		return *p
	}
	return layerSum{}
}

// haveNames reports whether the layers have names, from which their owners can
// be determined.
func (l *layers) haveNames() bool {
	return slices.ContainsFunc(l.names, func(name string) bool { return name != noLayer })
}

// OtherApp is the name under which layers of other apps are combined if their
// names were not kept.
const OtherApp = "(another app)"

// foreign reports whether a layer names a package other than that of the
// process's app, or is OtherApp. If a process chooses its own name, the name
// begins with its package (com.google.android.gms.persistent); a process whose
// name is not a package draws for all apps.
func foreign(layer, process string) bool {
	pkg := packageOf(layer)
	return layer == OtherApp || pkg != "" && isPackage(process) && process != pkg &&
		!strings.HasPrefix(process, pkg+".")
}

// packageOf returns the package in front of the slash of a component in the
// name of a layer (SurfaceView[com.shop/.Main]), or "" if there is none.
func packageOf(layer string) string {
	for {
		front, rest, ok := strings.Cut(layer, "/")
		if !ok {
			return ""
		}
		pkg := front[len(strings.TrimRightFunc(front, ofPackage)):]
		if isPackage(pkg) && (strings.HasPrefix(rest, ".") || strings.IndexFunc(rest, unicode.IsLetter) == 0) {
			return pkg
		}
		layer = rest
	}
}

// isPackage reports whether a name can be the package of an app: two or more
// words, each of which begins with a letter.
func isPackage(name string) bool {
	words := strings.Split(name, ".")
	for _, w := range words {
		if w == "" || !asciiLetter(rune(w[0])) || strings.TrimFunc(w, ofPackage) != "" {
			return false
		}
	}
	return len(words) > 1
}

func asciiLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func ofPackage(r rune) bool { return asciiLetter(r) || r >= '0' && r <= '9' || r == '_' || r == '.' }

// simplifyLayer replaces addresses, and numbers that are separate words, with
// an asterisk, because they change each time
// (SurfaceView[com.shop/.Main]#12(BLAST Consumer)12). It is idempotent.
func simplifyLayer(layer string) string {
	text := printableLayer(layer)
	var b strings.Builder
	for len(text) > 0 {
		n := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		switch {
		case n == 0:
			_, n = utf8.DecodeRuneInString(text)
			b.WriteString(text[:n])
			text = text[n:]
			continue
		case n < 0:
			n = len(text)
		}
		word := text[:n]
		if isNumber(word) {
			word = "*"
		}
		b.WriteString(word)
		text = text[n:]
	}
	if b.Len() == 0 {
		return noLayer
	}
	return b.String()
}

// isNumber reports whether a word is a decimal number, an address or the hash
// code of an object (ActivityRecord{1a2b3c4 u0 com.shop/.Main t12}#34).
func isNumber(word string) bool {
	const digits, letters = "0123456789", "abcdefABCDEF"
	if hex, ok := strings.CutPrefix(word, "0x"); ok && hex != "" {
		return strings.Trim(hex, digits+letters) == ""
	}
	if strings.Trim(word, digits) == "" {
		return true
	}
	return len(word) >= 6 && strings.ContainsAny(word, digits) && strings.Trim(word, digits+letters) == ""
}

// printableLayer returns a name that was read from a device as printable text
// of limited length.
func printableLayer(name string) string {
	return text.Head(strings.TrimSpace(name[:min(len(name), 4*maxLayerName)]), maxLayerName)
}
