package detector

import (
	"strings"
	"testing"
	"time"
)

func TestPoliciesAreValid(t *testing.T) {
	for _, p := range []Policy{DefaultPolicy(), RobustPolicy(), ArticlePolicy()} {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		change func(*Policy)
		want   string
	}{
		"name":        {func(p *Policy) { p.Name = "vague" }, `unknown policy "vague": want article or`},
		"revision":    {func(p *Policy) { p.Revision = 2 }, "invalid revision 2"},
		"normal":      {func(p *Policy) { p.NormalInterval = 0 }, "invalid interval 0s"},
		"suspicious":  {func(p *Policy) { p.SuspiciousInterval = 2 * time.Hour }, "invalid interval 2h"},
		"leaking":     {func(p *Policy) { p.LeakingInterval = -1 }, "invalid interval -1ns"},
		"cooldown":    {func(p *Policy) { p.Cooldown = -1 }, "invalid cooldown"},
		"gap":         {func(p *Policy) { p.MaxGap = time.Second }, "invalid gap 1s"},
		"zero policy": {func(p *Policy) { *p = Policy{Name: PolicyArticle} }, "invalid revision 0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := ArticlePolicy()
			tt.change(&p)
			err := p.Validate()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			d := New(p)
			if d.policy != DefaultPolicy() {
				t.Error("New accepts an invalid policy, want the default")
			}
			if w := d.Verdict().Warnings; len(w) != 1 || !strings.Contains(w[0].Error(), tt.want) {
				t.Errorf("warnings %v", w)
			}
		})
	}
}
