package capture

import (
	"strings"
	"testing"
)

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"com.shop", "com.shop", true},
		{"com.shop", "com.shop:push", false},
		{"com.shop", "com.shopping", false},
		{"com.shop:*", "com.shop:push", true},
		{"com.shop:*", "com.shop", false},
		{"com.shop*", "com.shop", true},
		{"com.shop*", "com.shopping", true},
		{"com.shop:*", "com.shop:sandboxed_process0:org.chromium.content.app.SandboxedProcessService0:0", true},
	} {
		p, err := ParsePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Match(c.name); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.name, got)
		}
	}
}

func TestParsePatternRefuses(t *testing.T) {
	for _, bad := range []string{
		"", "*", "com.*.shop", " com.shop", "com.shop ", "com. *", "com.shop,com.x", "com.shop#2", "com.\u202eshop",
		"a'b", "a\nb", "$(reboot)", "a;b", "-rf", strings.Repeat("a", 300),
	} {
		if p, err := ParsePattern(bad); err == nil {
			t.Errorf("%q parsed as %q", bad, p)
		}
	}
}

func TestProcessIsolated(t *testing.T) {
	for uid, want := range map[int]bool{
		0: false, 1000: false, 10123: false, 90000: true, 99017: true, 1010123: false, 1099017: true,
	} {
		if got := (Process{UID: uid}).Isolated(); got != want {
			t.Errorf("uid %d isolated: %v", uid, got)
		}
	}
}

func FuzzParsePattern(f *testing.F) {
	f.Add("com.shop:*")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePattern(text)
		if err != nil {
			return
		}
		if !p.Match(p.stem()) && strings.HasSuffix(text, "*") {
			t.Errorf("%q does not match its own prefix", text)
		}
		if strings.ContainsAny(string(p), "'\n \\\"`;|&<>()") {
			t.Errorf("%q contains a shell metacharacter", text)
		}
	})
}
