package config

import (
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// A key that holds one value or a list of values does not accept an empty
// string, not even from a variable. Arguments of a program may be empty
// strings; they are not checked here.
func TestNoKeyAcceptsEmptyText(t *testing.T) {
	checked := 0
	for _, l := range knownLeaves() {
		if l.key.holds != oneValue && l.key.holds != manyValues || l.path == "workload" {
			continue
		}
		checked++
		for _, text := range []string{"", "${EMPTY}"} {
			value := newText(text)
			if l.key.holds == manyValues {
				value = newList([]string{text})
			}
			root := newMapping()
			at := root
			for _, name := range l.names[:len(l.names)-1] {
				at = childMapping(at, name)
			}
			at.Content = append(at.Content, newText(l.names[len(l.names)-1]), value)
			file, err := yaml.Marshal(root)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse("x.yaml", file, func(name string) (string, bool) { return "", name == "EMPTY" })
			if err == nil || !strings.Contains(err.Error(), l.path) {
				t.Errorf("%s: %q is accepted: %v", l.path, text, err)
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d keys were checked, want at least 40", checked)
	}
}
