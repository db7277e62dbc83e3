package hproftest

import (
	"bytes"
	"testing"
)

// TestLeakCases checks that there are at least 200 small and complete dumps,
// that their names and bytes are different, and that they are the same each
// time.
func TestLeakCases(t *testing.T) {
	cases := LeakCases()
	if len(cases) < 200 {
		t.Errorf("%d cases", len(cases))
	}
	names, dumps := map[string]bool{}, map[string]string{}
	for i, c := range cases {
		data, _, err := c.Heap().Dump(c.Form)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if i%5 == 0 {
			if again, _, _ := c.Heap().Dump(c.Form); !bytes.Equal(data, again) {
				t.Errorf("%s: the second dump differs", c.Name)
			}
		}
		if twin := dumps[string(data)]; names[c.Name] || twin != "" {
			t.Errorf("%s has the name or the dump of another case: %s", c.Name, twin)
		}
		names[c.Name], dumps[string(data)] = true, c.Name
		g, err := ReadGraph(data)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if len(g.Nodes) > 6000 {
			t.Errorf("%s has %d objects", c.Name, len(g.Nodes))
		}
		for _, n := range g.Nodes {
			for field, to := range n.Refs {
				if to != 0 && g.Nodes[to] == nil {
					t.Errorf("%s: %s.%s dangles", c.Name, n.Class, field)
				}
			}
		}
	}
}
