package analysis

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/mapping"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/text"
)

// Mapping maps the names of an obfuscated build to the source names.
type Mapping struct {
	names *mapping.Mapping
	// digest is the SHA-256 of the file, in hexadecimal digits.
	digest string
}

// ReadMapping reads the mapping.txt that ProGuard or R8 wrote for a build.
func ReadMapping(r io.Reader) (*Mapping, error) {
	digest := sha256.New()
	names, err := mapping.Read(io.TeeReader(r, digest))
	if err != nil {
		return nil, err
	}
	return &Mapping{names, hex.EncodeToString(digest.Sum(nil))}, nil
}

// sourceNames translates names with a mapping.
type sourceNames struct{ *mapping.Mapping }

// Class returns the source name of a class. A JVM derives the name of a
// lambda's class at run time from the enclosing class, so no mapping contains
// it.
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

// Frame translates one stack frame to one frame per inlined method. If several
// translations are possible, it returns the first.
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

// The values of Naming.Origin.
const (
	namesOfSource     = "source"
	namesOfMapping    = "mapping"
	namesObscure      = "obfuscated"
	namesOtherMapping = "other_mapping"
)

// Naming records whether the names of classes, fields and methods in a dump are
// source names.
type Naming struct {
	// Origin is "source" for a build that is not obfuscated, "mapping" if the
	// mapping of the build was used, "obfuscated" if there was no mapping, and
	// "other_mapping" if the mapping is that of another build.
	Origin string `json:"origin"`
	// Mapping is the mapping that was used, or nil if no mapping was used.
	Mapping *UsedMapping `json:"mapping,omitempty"`
}

// UsedMapping describes a mapping and how well it fits a dump.
type UsedMapping struct {
	// ID is the identifier that R8 wrote, or "" for a mapping by ProGuard.
	// SHA256 is the digest of the file, in hexadecimal digits.
	ID     string `json:"id"`
	SHA256 string `json:"sha256"`
	// Classes is the number of classes that the mapping renames; Found is the
	// number of those in the dump.
	Classes int `json:"classes"`
	Found   int `json:"found_classes"`
	// Short is the number of the app's classes whose names look obfuscated;
	// Unknown is the number of those that are not in the mapping.
	Short   int `json:"short_names"`
	Unknown int `json:"unknown_names"`
	// Fields is the number of fields that the mapping lists for the classes
	// found; Missing is the number of these fields that the dump does not have.
	Fields  int `json:"fields"`
	Missing int `json:"missing_fields"`
}

// checkNames warns if names are obfuscated and cannot be translated, or if the
// mapping belongs to another build.
func (d *dump) checkNames(source *Mapping) {
	byID := map[hprof.ID]string{}
	list := make([]string, 0, len(d.file.Classes))
	for _, c := range d.file.Classes {
		if full, ok := d.file.Strings.Get(c.Name); ok {
			name := heap.NormalName(full)
			list = append(list, name)
			byID[c.Class] = name
		}
	}
	obfuscated := mapping.Obfuscated(list)
	d.names.Origin = namesOfSource
	if source == nil {
		if obfuscated != nil {
			d.obfuscated, d.names.Origin = true, namesObscure
			d.shape(byID)
			d.warn("%v", obfuscated)
		}
		return
	}
	m := source.names
	for _, err := range m.Warnings {
		d.warn("mapping: %v", err)
	}
	fit := m.Fit(list)
	if d.graph != nil {
		d.compareFields(&fit, m, byID)
	}
	doubt := fit.Mismatch()
	if doubt != nil {
		d.warn("%v", doubt)
	}
	foreign := d.otherMapping(m)
	d.names.Mapping = &UsedMapping{
		ID: text.Head(text.Printable(m.ID), maxMappingID), SHA256: source.digest,
		Classes: fit.Renamed, Found: fit.Found, Short: fit.Short, Unknown: fit.Unknown, Fields: fit.Fields,
		Missing: fit.Missing,
	}
	switch {
	case (doubt != nil || foreign) && (obfuscated != nil || fit.Found > 0):
		d.names.Origin = namesOtherMapping
		d.shape(byID)
	case fit.Found > 0:
		d.names.Origin = namesOfMapping
	}
}

// maxMappingID is the maximum length of the recorded ID of a mapping.
const maxMappingID = 100

// compareFields compares the fields of classes with the fields in the mapping.
func (d *dump) compareFields(fit *mapping.Fit, m *mapping.Mapping, byID map[hprof.ID]string) {
	d.graph.Declared(func(c *hprof.Class) {
		var names []string
		for _, f := range c.Fields {
			if name, ok := d.file.Strings.Get(f.Name); ok {
				names = append(names, name)
			}
		}
		for _, f := range c.Statics {
			if name, ok := d.file.Strings.Get(f.Name); ok {
				names = append(names, name)
			}
		}
		fit.AddFields(m, byID[c.ID], names)
	})
}

// shape records a hash of each class of the app whose name means nothing by
// itself: two dumps of one build have the same hashes.
func (d *dump) shape(byID map[hprof.ID]string) {
	if d.graph == nil {
		return
	}
	d.shapes = map[string]uint64{}
	d.graph.Declared(func(c *hprof.Class) {
		name := byID[c.ID]
		if !mapping.MayBeRenamed(name) || trace.StableClass(name) != name {
			return
		}
		hash := fnv.New64a()
		_, _ = fmt.Fprintf(hash, "%s\n", byID[c.Super])
		for _, f := range c.Fields {
			field, _ := d.file.Strings.Get(f.Name)
			_, _ = fmt.Fprintf(hash, "%s %d\n", field, f.Type)
		}
		for _, f := range c.Statics {
			// Fields of the runtime, such as <resolved_references> and
			// $classOverhead, are not in every dump of a build.
			if field, _ := d.file.Strings.Get(f.Name); field != "" && field[0] != '<' && field[0] != '$' {
				_, _ = fmt.Fprintf(hash, "static %s %d\n", field, f.Type)
			}
		}
		d.shapes[name] = hash.Sum64()
	})
}

// oneBuild reports whether two obfuscated dumps are from one build: the classes
// that occur in both dumps have the same shapes, and make up at least half of
// the classes of the smaller dump.
func oneBuild(base, head map[string]uint64) bool {
	shared := 0
	for name, shape := range base {
		other, ok := head[name]
		if ok && other != shape {
			return false
		}
		if ok {
			shared++
		}
	}
	return shared > 0 && 2*shared >= min(len(base), len(head))
}

// otherMapping reports whether the stack traces contain the marker of another
// mapping.
func (d *dump) otherMapping(m *mapping.Mapping) bool {
	met := map[hprof.ID]bool{}
	for _, f := range d.file.Frames {
		if met[f.Source] {
			continue
		}
		met[f.Source] = true
		source, _ := d.file.Strings.Get(f.Source)
		if err := m.Belongs(source); err != nil {
			d.warn("%v", err)
			return true
		}
	}
	return false
}
