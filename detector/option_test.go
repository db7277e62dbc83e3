package detector

import (
	"strings"
	"testing"
)

func TestSetTakesEveryKnownValue(t *testing.T) {
	for _, o := range options {
		for _, value := range o.known {
			p := ArticlePolicy()
			if err := p.Article.Set(o.name, value); err != nil {
				t.Errorf("%s %s: %v", o.name, value, err)
			}
			if got := o.get(&p.Article); got != value || p.Validate() != nil {
				t.Errorf("%s is %q after Set(%q), policy %v", o.name, got, value, p.Validate())
			}
		}
	}
}

func TestSetRefuses(t *testing.T) {
	a := ArticlePolicy().Article
	before := a
	for _, c := range [][3]string{
		{"floors", "some", "all, one_fall, last"},
		{"flors", "all", "known options: total, windows"},
	} {
		if err := a.Set(c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s %s: %v", c[0], c[1], err)
		}
	}
	if a != before {
		t.Error("a refused option changed something")
	}
}
