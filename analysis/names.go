package analysis

import (
	"io"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/mapping"
)

// Mapping has the names of the source for those of an obfuscated build.
type Mapping struct{ names *mapping.Mapping }

// ReadMapping reads the mapping.txt that ProGuard or R8 wrote for a build.
func ReadMapping(r io.Reader) (*Mapping, error) {
	names, err := mapping.Read(r)
	if err != nil {
		return nil, err
	}
	return &Mapping{names}, nil
}

// sourceNames are those of a mapping.
type sourceNames struct{ *mapping.Mapping }

// Class gives the name of the source. A JVM names the class of a lambda while it runs,
// after the one that has the lambda, which no mapping knows of.
func (n sourceNames) Class(name string) string {
	original := n.Mapping.Class(name)
	if original != name {
		return original
	}
	if at := strings.Index(name, "$$Lambda"); at > 0 {
		return n.Mapping.Class(name[:at]) + name[at:]
	}
	return name
}

func (n sourceNames) Field(class, name string, t hprof.Type) string {
	return n.FieldOfType(class, name, strings.ToLower(t.String()))
}

// Frame gives the first of the frames that it may be, with what was inlined.
func (n sourceNames) Frame(f heap.StackFrame) (list []heap.StackFrame) {
	for _, x := range n.Mapping.Frame(f.Class, f.Method, f.Line) {
		if x.Alternative > 0 {
			break
		}
		if x.Source == "" {
			x.Source = f.Source
		}
		list = append(list, heap.StackFrame{Class: x.Class, Method: x.Method, Source: x.Source, Line: x.Line})
	}
	return list
}

// doubtNames says where names are an obfuscator's and nobody knows those of the source,
// or where the mapping is that of another build.
func (d *dump) doubtNames(source *Mapping) {
	byID := map[hprof.ID]string{}
	list := make([]string, 0, len(d.file.Classes))
	for _, c := range d.file.Classes {
		if text, ok := d.file.Strings.Get(c.Name); ok {
			name := heap.NormalName(text)
			list = append(list, name)
			byID[c.Class] = name
		}
	}
	if source == nil {
		if err := mapping.Obfuscated(list); err != nil {
			d.obfuscated = true
			d.warn("%v", err)
		}
		return
	}
	m := source.names
	for _, err := range m.Warnings {
		d.warn("mapping: %v", err)
	}
	fit := m.Fit(list)
	if d.graph != nil {
		d.askFields(&fit, m, byID)
	}
	if err := fit.Doubt(); err != nil {
		d.warn("%v", err)
	}
	d.doubtSources(m)
}

// askFields compares the fields of classes with those that the mapping tells.
func (d *dump) askFields(fit *mapping.Fit, m *mapping.Mapping, byID map[hprof.ID]string) {
	d.graph.Declared(func(class hprof.ID, fields []hprof.ID) {
		var texts []string
		for _, id := range fields {
			if text, ok := d.file.Strings.Get(id); ok {
				texts = append(texts, text)
			}
		}
		fit.AddFields(m, byID[class], texts)
	})
}

// doubtSources looks for the mark of another mapping in the stack traces.
func (d *dump) doubtSources(m *mapping.Mapping) {
	met := map[hprof.ID]bool{}
	for _, f := range d.file.Frames {
		if met[f.Source] {
			continue
		}
		met[f.Source] = true
		text, _ := d.file.Strings.Get(f.Source)
		if err := m.Belongs(text); err != nil {
			d.warn("%v", err)
			return
		}
	}
}
