package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/harness/config"
)

// No output of a command contains the value of a variable that a file refers
// to, unless --reveal is given; none ever contains the GitHub token.
func TestNoCommandShowsSecrets(t *testing.T) {
	t.Chdir(t.TempDir())
	files := map[string]string{
		"good.yaml":    "workload: { command: [run, \"--t=${TOKEN}x\"] }\nduration: 45m\n",
		"bad.yaml":     "workload: none\nduration: ${TOKEN}\n",
		"mapping.yaml": "workload: none\nduration: 45m\n",
		"store.yaml":   "workload: none\nduration: 45m\nbaseline: { store: \"command:./${TOKEN} get\" }\ngate: {}\n",
	}
	for name, text := range files {
		app := "app: { package: com.shop }\n"
		if name == "mapping.yaml" {
			app = "app: { package: com.shop, mapping: \"${TOKEN}/mapping.txt\" }\n"
		}
		if err := os.WriteFile(name, []byte("version: 1\n"+app+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := serve(t, shop("phone-a"))
	env["TOKEN"], env["LEAKGATE_GITHUB_TOKEN"] = "ghp_SECRET", "ghp_OTHER"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"config", "print", "good.yaml"}, `"--t=${TOKEN}x"`},
		{[]string{"config", "print", "good.yaml", "--json"}, `"--t=${TOKEN}x"`},
		{
			[]string{"config", "verify", "bad.yaml"},
			"duration: invalid value from ${TOKEN} (10 characters): want a duration",
		},
		{[]string{"config", "verify", "bad.yaml", "--json"}, "invalid value from ${TOKEN} (10 characters)"},
		{[]string{"config", "print", "bad.yaml"}, "invalid value from ${TOKEN} (10 characters)"},
		{[]string{"run", "bad.yaml"}, "invalid value from ${TOKEN} (10 characters)"},
		{[]string{"run", "mapping.yaml"}, "${TOKEN}/mapping.txt"},
		{[]string{"run", "store.yaml", "--for", "45m"}, "${TOKEN}"},
		{[]string{"gate", "--run", ".", "--config", "store.yaml"}, ""},
	} {
		code, out, errOut := typed(t, env, c.args...)
		if all := out + errOut; strings.Contains(all, "ghp_") || !strings.Contains(all, c.want) {
			t.Errorf("%q: exit %d, want %s\n%s", c.args, code, c.want, all)
		}
	}
	if _, out, _ := typed(t, env, "config", "print", "good.yaml", "--reveal"); !strings.Contains(out,
		`"--t=ghp_SECRETx"`) {
		t.Errorf("the value is not shown despite --reveal:\n%s", out)
	}
	// The printed file has the same meaning, and its variables are not
	// expanded.
	_, out, _ := typed(t, env, "config", "print", "good.yaml", "--origin=false")
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	cfg, err := config.Parse("again.yaml", []byte(out), lookup)
	if err != nil || cfg.Workload.Command[1] != "--t=ghp_SECRETx" {
		t.Errorf("%+v, %v", cfg, err)
	}
	if left, err := filepath.Glob("leakgate-runs/*"); err != nil || len(left) > 0 {
		t.Errorf("a run was started: %v, %v", left, err)
	}
}
