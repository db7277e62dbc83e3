package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"gopkg.in/yaml.v3"
)

// AppendAccepted adds entries to text, the content of a file of accepted leaks,
// and returns the new content. The text parameter may be empty. Existing
// comments and entries are unchanged. If the file is invalid, the error is of
// type [Errors].
func AppendAccepted(name string, text []byte, entries []Accepted) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("version: 1\naccepted: []\n")
	}
	if _, err := ParseAccepted(name, text); err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	list := acceptedList(doc.Content[0])
	for _, e := range entries {
		list.Content = append(list.Content, e.node())
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&doc), enc.Close()); err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	// Check that the new content yields the requested entries when it is
	// parsed.
	again, err := ParseAccepted(name, out.Bytes())
	if err != nil {
		return nil, err
	}
	if tail := again[max(len(again)-len(entries), 0):]; !slices.EqualFunc(tail, entries, sameAccepted) {
		return nil, fmt.Errorf("write %s: the entries cannot be encoded as YAML", name)
	}
	return out.Bytes(), nil
}

// acceptedList returns the node of the list of accepted leaks; it adds the list
// to the file if it is missing.
func acceptedList(root *yaml.Node) *yaml.Node {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != "accepted" {
			continue
		}
		list := resolved(root.Content[i+1])
		if list.Kind != yaml.SequenceNode {
			*list = yaml.Node{
				Kind: yaml.SequenceNode, Tag: "!!seq", HeadComment: list.HeadComment, LineComment: list.LineComment,
				FootComment: list.FootComment,
			}
		}
		list.Style &^= yaml.FlowStyle
		return list
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "accepted"}, list)
	return list
}

// node returns the entry as a YAML node.
func (a Accepted) node() *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	add := func(key, value, tag string) {
		if value == "" {
			return
		}
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key},
			&yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value})
	}
	add("key", a.Key, "!!str")
	add("class", a.Class, "!!str")
	add("held", a.Held, "!!str")
	add("reason", a.Reason, "!!str")
	add("owner", a.Owner, "!!str")
	add("until", a.Until.Format(time.DateOnly), "!!timestamp")
	return n
}

func sameAccepted(a, b Accepted) bool {
	return a.Key == b.Key && a.Class == b.Class && a.Held == b.Held && a.Reason == b.Reason && a.Owner == b.Owner &&
		a.Until.Format(time.DateOnly) == b.Until.Format(time.DateOnly)
}
