package reporters

import (
	"io"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/text"
)

// WritePaths writes the merged paths to objects as a tree. top is the maximum
// number of branches.
func WritePaths(w io.Writer, p *analysis.Paths, top int) error {
	var out page
	what := p.Class
	if p.Object != "" {
		what += " " + p.Object
	}
	out.line("%s: %s, %s reached from GC roots; %s, retaining %s", shownName(what), text.Grouped(p.Instances),
		text.Grouped(p.Reached), text.Size(p.Bytes), text.Size(p.Retained))
	if len(p.Branches) > 0 {
		out.blank()
		out.line("%12s %12s  %s", "INSTANCES", "BYTES", "PATH")
		t := pathTree{out: &out, left: top}
		for i := range p.Branches {
			t.branch(&p.Branches[i], 0)
		}
		if t.more > 0 {
			out.line("%12s %12s  %s more branches; --top shows them", "", "", text.Grouped(t.more))
		}
	}
	if p.Reached == 0 {
		out.line("no path found: the objects are garbage, " +
			"or held only by references that are not followed, such as weak ones")
	}
	out.warnings(p.Warnings)
	return out.writeTo(w)
}

// pathTree prints a tree up to a maximum number of lines.
type pathTree struct {
	out  *page
	left int
	more int64
}

// deepestIndent is the maximum indentation of a line, in columns.
const deepestIndent = 60

func (t *pathTree) branch(x *analysis.Branch, depth int) {
	if t.left == 0 {
		t.more++
		for i := range x.Branches {
			t.branch(&x.Branches[i], depth+1)
		}
		return
	}
	t.left--
	name := x.Class
	if x.Type == "class" {
		name = "class " + name
	}
	if x.Objects > 1 {
		name = text.Grouped(x.Objects) + " x " + name
	}
	switch {
	case x.GCRoot != "":
		name = x.GCRoot + ": " + name
	case x.Kind == "instance_field" || x.Kind == "static_field":
		name = simpleName(x.Owner) + "." + x.Reference + " → " + name
	default:
		name = simpleName(strings.TrimSuffix(x.Owner, "[]")) + x.Reference + " → " + name
	}
	note := ""
	if x.Truncated {
		note = " (deeper levels are not shown)"
	}
	t.out.line("%12s %12s  %s%s%s", text.Grouped(x.Instances), text.Grouped(x.Bytes),
		strings.Repeat("  ", min(depth, deepestIndent/2)), shownName(name), note)
	for i := range x.Branches {
		t.branch(&x.Branches[i], depth+1)
	}
}
