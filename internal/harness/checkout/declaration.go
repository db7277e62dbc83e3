package checkout

import (
	"context"
	"fmt"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// Declaration is where a field or its class is declared.
type Declaration struct {
	// File is the slash-separated path below the top folder. It may have any character.
	File string
	// Line counts from 1.
	Line int
	// OfField is whether the line is that of the field: otherwise the field is not found, and the
	// line is that of the class, or of the class around it where no source names the class.
	OfField bool
	// Reason says why nothing is found. It is printable.
	Reason string
}

// Declaration returns where a field is declared. class and field are named as the JVM does:
// `com.shop.Cart$Companion`, `com.shop.CartKt`, `total$delegate`. It returns false with the
// reason where the sources do not declare the class, or where several files do, as the variants
// of an app may. The first call reads all sources, which ctx ends.
func (c *Checkout) Declaration(ctx context.Context, class, field string) (Declaration, bool) {
	x, err := c.indexed(ctx)
	if err != nil {
		return Declaration{Reason: "sources not read: " + text.FirstLine(err.Error(), maxName)}, false
	}
	return x.declaration(class, field)
}

// indexed returns the index of the sources, which is built once.
func (c *Checkout) indexed(ctx context.Context) (*index, error) {
	c.sources.Lock()
	defer c.sources.Unlock()
	if c.index != nil {
		return c.index, nil
	}
	x, err := c.newIndex(ctx)
	if err != nil {
		return nil, err
	}
	c.index = x
	return x, nil
}

func (x *index) declaration(class, field string) (Declaration, bool) {
	if x.incomplete != nil {
		// What is not read may declare the class again.
		return Declaration{Reason: "sources not read: " + text.FirstLine(x.incomplete.Error(), maxName)}, false
	}
	found, exact, ok := x.class(class)
	if !ok {
		return Declaration{Reason: fmt.Sprintf("no source declares %s", text.Head(class, maxName))}, false
	}
	if len(found.files) > 1 {
		return Declaration{Reason: fmt.Sprintf("several files declare %s: %s", text.Head(found.name, maxName), fileList(found.files))}, false
	}
	out := Declaration{File: found.files[0], Line: found.line}
	if !exact {
		return out, true
	}
	// Kotlin keeps what a property is delegated to in NAME$delegate.
	for _, name := range []string{field, strings.TrimSuffix(field, "$delegate")} {
		if line, ok := found.field(name); ok {
			return Declaration{File: out.File, Line: line, OfField: true}, true
		}
	}
	return out, true
}

// class returns a class, or the innermost one around it that a source names: of a lambda, an
// anonymous or local class, or what R8 and Kotlin's compiler generate.
func (x *index) class(name string) (found indexedClass, exact, ok bool) {
	if len(name) > maxClassName {
		return indexedClass{}, false, false
	}
	if found, ok = x.classes[name]; ok {
		return found, true, true
	}
	// D8 once named lambdas com.shop.-$$Lambda$Cart$xyz.
	name = strings.Replace(name, ".-$$Lambda$", ".", 1)
	if lambda := strings.Index(name, "$$Lambda"); lambda > 0 { // what follows may have any character
		name = name[:lambda]
	}
	for {
		if found, ok = x.classes[name]; ok {
			return found, false, true
		}
		cut := strings.LastIndexByte(name, '$')
		if cut <= 0 {
			return indexedClass{}, false, false
		}
		name = strings.TrimRight(name[:cut], "$")
	}
}

// maxClassName is the most bytes that a class file has for a name.
const maxClassName = 1<<16 - 1

func fileList(files []string) string {
	var out []string
	for _, file := range files {
		out = append(out, text.Tail(file, maxName/2))
	}
	if len(out) == maxFiles {
		out[maxFiles-1] = "..."
	}
	return strings.Join(out, ", ")
}
