package mapping

import (
	"bytes"
	"strconv"
	"strings"
)

// version is the version of the format: ten times the major number plus the
// minor one.
type version int

// These are the versions in which each feature was added, according to R8's
// doc/retrace.md and R8's source. supported is the latest version that this
// package knows.
const (
	sinceSynthesized       version = 10
	sinceOutline           version = 20
	sinceResidualSignature version = 22
	supported              version = 22
)

func (v version) String() string { return strconv.Itoa(int(v)/10) + "." + strconv.Itoa(int(v)%10) }

// parseVersion parses a version such as "2.2". As in R8, "none", "experimental"
// and other words mean that the mapping has no version.
func parseVersion(text string) version {
	before, behind, _ := strings.Cut(text, ".")
	major, err := strconv.Atoi(before)
	minor, err2 := strconv.Atoi(behind)
	if err != nil || err2 != nil || major < 0 || major > 99 || minor < 0 || minor > 9 {
		return 0
	}
	return version(10*major + minor)
}

// comment reads the text after the # of a line: a line of R8's header, or
// metadata.
func (r *reading) comment(text []byte) {
	if len(text) > 0 && text[0] == '{' {
		r.information(text)
		return
	}
	key, value, ok := bytes.Cut(text, colon)
	if !ok || len(value) > maxHeader {
		return
	}
	value = bytes.ToValidUTF8(trim(value), []byte("\ufffd"))
	switch string(trim(key)) {
	case "compiler":
		r.set(&r.Compiler, value)
	case "compiler_version":
		r.set(&r.Version, value)
	case "pg_map_id":
		r.set(&r.ID, value)
	case "pg_map_hash":
		r.set(&r.Hash, trim(bytes.TrimPrefix(value, []byte("SHA-256"))))
		r.set(&r.ID, []byte(r.Hash))
	}
}

const maxHeader = 1 << 10

// set stores a value unless there is one already, because some files consist of
// several concatenated mappings.
func (r *reading) set(to *string, value []byte) {
	r.header = true
	if *to == "" {
		*to = string(value)
	}
}

// information reads a comment in braces, which belongs to the line above it. A
// kind of comment introduced after the version that the mapping declares is
// ignored, like an ordinary comment (doc/retrace.md).
func (r *reading) information(text []byte) {
	var i info
	if !i.parse(text) {
		r.doubt(badInformation, text)
		return
	}
	switch string(i.id) {
	case "com.android.tools.r8.mapping":
		r.header = true
		if r.version = parseVersion(string(i.version)); r.version > supported && r.doubts[newer].count == 0 {
			r.doubts[newer] = doubt{count: 1, line: r.number, text: r.version.String()}
		}
	case "sourceFile":
		if r.subject == ofClass && r.current.source == 0 && isFile(i.file) {
			r.current.source = r.names.add(i.file)
		}
	case "com.android.tools.r8.synthesized":
		r.synthesized(sinceSynthesized)
	case "com.android.tools.r8.outline":
		// R8's retrace also removes the frame of an outline from the trace.
		r.synthesized(sinceOutline)
	case "com.android.tools.r8.residualsignature":
		if r.subject == ofField && r.version >= sinceResidualSignature && len(i.signature) > 0 {
			r.fields[r.last] = byte(kindOfDescriptor(string(i.signature)))
		}
	}
}

func (r *reading) synthesized(since version) {
	switch {
	case r.version < since:
	case r.subject == ofMethod:
		r.methods[r.last] |= isSynthesized
	case r.subject == ofClass && since == sinceSynthesized:
		r.current.synthesized = true
	}
}

// isFile reports whether a string can be printed as the name of a file.
func isFile(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return len(text) > 0 && len(text) <= maxHeader
}

// info is the useful part of a line of metadata. It shares the bytes of the
// line.
type info struct {
	id, file, version, signature []byte
}

// parse reads one JSON object in the same way as R8's parser. Strings may be in
// single quotes and keys unquoted; anything after the closing brace is skipped
// (doc/retrace.md has an example).
func (i *info) parse(text []byte) bool {
	for rest := trim(text[1:]); ; rest = trim(rest[1:]) {
		var key, value []byte
		var ok bool
		if key, rest, ok = token(rest); !ok || len(rest) == 0 || rest[0] != ':' {
			return false
		}
		if value, rest, ok = anyValue(trim(rest[1:])); !ok || len(rest) == 0 {
			return false
		}
		i.set(key, value)
		if rest[0] != ',' {
			return rest[0] == '}' && len(i.id) > 0
		}
	}
}

func (i *info) set(key, value []byte) {
	switch string(key) {
	case "id":
		i.id = value
	case "fileName":
		i.file = value
	case "version":
		i.version = value
	case "signature":
		i.signature = value
	}
}

// token reads a key or a simple value: a quoted string, or a word. Escapes are
// decoded.
func token(text []byte) (value, rest []byte, ok bool) {
	if len(text) == 0 {
		return nil, nil, false
	}
	if quote := text[0]; quote == '"' || quote == '\'' {
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case quote:
				return unescaped(text[1:i]), trim(text[i+1:]), true
			}
		}
		return nil, nil, false
	}
	end := bytes.IndexAny(text, ":,{}[] \t'\"")
	if end <= 0 {
		return nil, nil, false
	}
	return text[:end], trim(text[end:]), true
}

// unescaped decodes the escapes of JSON. Few lines contain an escape: R8 never
// escapes $, so only names with non-ASCII letters may contain one.
func unescaped(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	inner := bytes.ReplaceAll(bytes.ReplaceAll(text, []byte(`\/`), []byte("/")), []byte(`\'`), []byte("'"))
	if plain, err := strconv.Unquote(`"` + string(inner) + `"`); err == nil {
		return []byte(plain)
	}
	return text
}

// anyValue reads a value of any kind. A nested value is skipped, and the result
// is then empty.
func anyValue(text []byte) (value, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return token(text)
	}
	for depth, i := 0, 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return nil, trim(text[i+1:]), true
			}
		case '"', '\'':
			_, after, ok := token(text[i:])
			if !ok {
				return nil, nil, false
			}
			i = len(text) - len(after) - 1
		}
	}
	return nil, nil, false
}
