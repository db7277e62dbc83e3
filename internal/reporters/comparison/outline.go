package comparison

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// These bounds on the JSON prevent a small file from becoming a large value in
// memory: a list of millions of empty rows takes a few megabytes as JSON, but
// gigabytes as rows.
const (
	maxDepth    = 16
	maxObjects  = 400_000
	maxElements = 50_000
)

// nesting is an object or list that contains the current position.
type nesting struct {
	object bool
	// names contains the names in the object so far, ignoring case as
	// encoding/json does.
	names    map[string]bool
	nameNext bool
	elements int
}

// checkOutline checks that a JSON document is bounded and that no object
// contains the same name twice. Go would merge the second value into the first,
// and other parsers would return a different value.
func checkOutline(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	o := outline{}
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := o.add(token); err != nil {
			return fmt.Errorf("at byte %d: %w", dec.InputOffset(), err)
		}
	}
}

type outline struct {
	stack   []nesting
	objects int
}

func (o *outline) add(token json.Token) error {
	if token == json.Delim('}') || token == json.Delim(']') {
		o.stack = o.stack[:len(o.stack)-1]
		return nil
	}
	if n := len(o.stack); n > 0 {
		isName, err := o.stack[n-1].add(token)
		if isName || err != nil {
			return err
		}
	}
	if token != json.Delim('{') && token != json.Delim('[') {
		return nil
	}
	object := token == json.Delim('{')
	if object {
		o.objects++
	}
	if o.objects > maxObjects || len(o.stack) >= maxDepth {
		return fmt.Errorf("more than %d objects or %d levels", maxObjects, maxDepth)
	}
	o.stack = append(o.stack, nesting{object: object, nameNext: object, names: map[string]bool{}})
	return nil
}

// add counts a name or a value, and reports whether it was a name.
func (n *nesting) add(token json.Token) (isName bool, err error) {
	if !n.object || !n.nameNext {
		n.nameNext = n.object
		if n.elements++; n.elements > maxElements {
			return false, fmt.Errorf("more than %d values in one list", maxElements)
		}
		return false, nil
	}
	n.nameNext = false
	name, _ := token.(string)
	folded := strings.ToLower(strings.ToUpper(name))
	if n.names[folded] {
		return true, fmt.Errorf("%s twice in one object", text.Quote(name, 60))
	}
	n.names[folded] = true
	return true, nil
}
