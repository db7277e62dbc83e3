package footprint

import (
	"bytes"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/text"
)

const (
	// maxRaw is the maximum length of a name as received, and maxMapping is the
	// maximum length of a name as reported, in bytes.
	maxRaw     = 4096
	maxMapping = 256
)

// simplifyMapping rewrites its argument in place and returns it: printable,
// without the parts that differ in each mapping, and at most maxMapping bytes
// long. It is idempotent.
//
// It repeats its changes, because one change may make another possible. Each
// change makes the name shorter, or reduces the number of digits and
// unprintable bytes, so the repetition terminates.
func simplifyMapping(name []byte) []byte {
	for {
		before := len(name)
		name = uninstalled(text.PrintableBytes(trim(name)))
		changed := star(&name)
		name = shorten(name)
		if !changed && len(name) == before {
			return name
		}
	}
}

// trim removes leading and trailing white space, and also the suffix of a
// deleted file, because the mapping is still the same.
func trim(name []byte) []byte {
	for {
		cut := bytes.TrimSuffix(bytes.TrimSpace(name), []byte(deleted))
		if len(cut) == len(name) {
			return cut
		}
		name = cut
	}
}

// uninstalled removes the parts that each installation generates from the path
// of an app: /data/app/~~42B3==/com.shop-2sB6VienT2XP9nnL4_ZFaw==/base.apk
// becomes /data/app/com.shop/base.apk (frameworks/base
// PackageManagerServiceUtils.java, getNextCodePath).
func uninstalled(name []byte) []byte {
	const app = "/app/"
	for at := 0; ; {
		i := bytes.Index(name[at:], []byte(app))
		if i < 0 {
			return name
		}
		at += i + len(app)
		if where := name[:at-len(app)]; !bytes.HasSuffix(where, []byte("/data")) &&
			!bytes.Contains(where, []byte("/mnt/expand/")) {
			at-- // the slash may begin the next match
			continue
		}
		for {
			folder, _, inside := bytes.Cut(name[at:], []byte("/"))
			from, to := at+len(folder), at+len(folder)
			switch {
			case !inside:
			case has(folder, "~~") && bytes.HasSuffix(folder, []byte("==")):
				from, to = at, to+1
			default:
				from = at + installed(folder)
			}
			if from == to {
				break
			}
			name = append(name[:from], name[to:]...)
		}
	}
}

// installed returns the length of the package name at the beginning of folder,
// an app's directory, which ends in a hash or, before Android 8, a number.
func installed(folder []byte) int {
	i := bytes.LastIndexByte(folder, '-')
	if hash := len(folder) - len("==") - 22; bytes.HasSuffix(folder, []byte("==")) && hash > 1 &&
		folder[hash-1] == '-' {
		return hash - 1 // the hash may contain a -
	}
	if end := folder[i+1:]; i > 0 && len(end) > 0 && len(end) <= 3 && digits(end) == len(end) {
		return i
	}
	return len(folder)
}

// star replaces numbers that differ in each mapping with an asterisk:
// addresses, hashes, UUIDs, IDs. In the name of a file, a number usually
// belongs to the name unless it is long. In the name of other memory, a number
// that is a separate word or comes last is an ID.
func star(name *[]byte) (changed bool) {
	b, at := *name, 0
	least := 1
	if kind := kindOf(b); kind == File || kind == Device {
		least = 4
	}
	for i := 0; i < len(b); {
		n := word(b[i:])
		if n == 0 {
			b[at] = b[i]
			i, at = i+1, at+1
			continue
		}
		token := b[i : i+n]
		kept, from := n, n
		switch end := i + n; {
		case hash(token):
			kept = 0
			from += groups(b[end:])
		case digits(token) == n && n >= least:
			kept = 0
		case least == 1 && (end == len(b) || end == len(b)-1 && b[end] == ']'):
			if d := trailing(token); d > 1 {
				kept = n - d
			}
		}
		at += copy(b[at:], token[:kept])
		if kept < n {
			b[at] = '*'
			at, changed = at+1, true
		}
		i += from
	}
	*name = b[:at]
	return changed
}

// word returns the number of letters and digits at the beginning of a string.
func word(b []byte) int {
	for i, c := range b {
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && c < utf8.RuneSelf {
			return i
		}
	}
	return len(b)
}

// hash reports whether a word is a hexadecimal number with the prefix 0x, or
// with at least 8 digits, such as an address or the first part of a UUID.
func hash(token []byte) bool {
	number := bytes.TrimPrefix(token, []byte("0x"))
	if hexes(number) != len(number) || len(number) == 0 {
		return false
	}
	return len(number) < len(token) || len(number) >= 8 && bytes.ContainsAny(number, "0123456789")
}

// groups returns the length of the rest of a UUID after its first group.
func groups(b []byte) (n int) {
	for len(b) > n && b[n] == '-' {
		w := word(b[n+1:])
		if w < 4 || hexes(b[n+1:n+1+w]) != w {
			break
		}
		n += 1 + w
	}
	return n
}

// shorten keeps the beginning and the end of a name, because a path ends with
// the name of the file.
func shorten(name []byte) []byte {
	const gap = "…"
	if len(name) <= maxMapping {
		return name
	}
	head, tail := (maxMapping-len(gap))/2, len(name)-(maxMapping-len(gap))/2
	for !utf8.RuneStart(name[head]) {
		head--
	}
	for tail < len(name) && !utf8.RuneStart(name[tail]) {
		tail++
	}
	end := name[tail:]
	return append(append(name[:head], gap...), end...)
}

func digits(b []byte) int { return leading(b, isDigit) }

func hexes(b []byte) int {
	return leading(b, func(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' })
}

func leading(b []byte, is func(byte) bool) int {
	for i, c := range b {
		if !is(c) {
			return i
		}
	}
	return len(b)
}

func trailing(b []byte) (n int) {
	for n < len(b) && isDigit(b[len(b)-1-n]) {
		n++
	}
	return n
}
