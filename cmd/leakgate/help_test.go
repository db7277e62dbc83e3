package main

//unit:program the shells on this computer check the scripts of completion

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// allCommands returns a command and its subcommands.
func allCommands(cmd *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		out = append(out, allCommands(sub)...)
	}
	return out
}

// The help of each command equals its golden file and has at most 80 columns.
func TestHelp(t *testing.T) {
	for _, cmd := range allCommands(newRoot(&console{})) {
		words := strings.Fields(cmd.CommandPath())
		code, out, errOut := typed(t, nil, append(words[1:], "--help")...)
		if code != exitOK || errOut != "" {
			t.Errorf("%s: exit %d, %q", cmd.CommandPath(), code, errOut)
		}
		for line := range strings.Lines(out) {
			if text.Columns(strings.TrimSuffix(line, "\n")) > helpWidth || strings.TrimRight(line, " \n")+"\n" != line {
				t.Errorf("%s: %q is too long or ends with spaces", cmd.CommandPath(), line)
			}
		}
		if _, again, _ := typed(t, nil, append([]string{"help"}, words[1:]...)...); again != out {
			t.Errorf("`leakgate help` and --help differ for %s:\n%s", cmd.CommandPath(), again)
		}
		golden(t, filepath.Join("testdata", "help", strings.Join(words, "-")+".txt"), out)
	}
	code, out, errOut := typed(t, nil)
	if _, help, _ := typed(t, nil, "help"); code != exitUsage || out != "" || errOut != help {
		t.Errorf("leakgate without arguments: exit %d, stdout %q, want %d and the help on stderr\n%s", code, out,
			exitUsage, errOut)
	}
}

// Each command explains its exit codes, links to a page, and shows two or three
// valid command lines.
func TestHelpIsComplete(t *testing.T) {
	for _, cmd := range allCommands(newRoot(&console{})) {
		if page := cmd.Annotations["page"]; page != "" {
			if _, err := os.Stat(filepath.Join("../..", page)); err != nil {
				t.Errorf("%s: %v", cmd.CommandPath(), err)
			}
		}
		if exits := cmd.Annotations["exits"]; !cmd.HasSubCommands() && !strings.HasPrefix(exits, "0 ") {
			t.Errorf("%s: got the exit codes %q, want 0 first", cmd.CommandPath(), exits)
		}
		if _, group := cmd.Parent(), cmd.GroupID; cmd.HasParent() && cmd.Parent().Name() == "leakgate" && group == "" {
			t.Errorf("%s does not belong to any group", cmd.CommandPath())
		}
		examples := strings.Split(cmd.Example, "\n")
		if len(examples) < 2 || len(examples) > 3 {
			t.Errorf("%s: %d examples", cmd.CommandPath(), len(examples))
		}
		for _, line := range examples {
			_, args, ok := strings.Cut(line, "leakgate ")
			args, _, _ = strings.Cut(args, " | ")
			args, _, _ = strings.Cut(args, " > ")
			name, args, _ := strings.Cut(args, " ")
			if !ok || !strings.HasPrefix(line, "  ") ||
				!strings.Contains(line, strings.TrimPrefix(cmd.CommandPath(), "leakgate")) {
				t.Errorf("%s: %q", cmd.CommandPath(), line)
			}
			checkCommand(t, "help", name, args)
		}
	}
}

// The description of a flag does not repeat its placeholder, and no sentence
// ends with a flag.
func TestHelpOfFlags(t *testing.T) {
	for _, cmd := range allCommands(newRoot(&console{})) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if strings.ContainsAny(f.Usage, "`") || strings.HasSuffix(f.Usage, ".") ||
				strings.HasPrefix(f.Usage, f.Value.Type()+" ") || strings.ToLower(f.Usage[:1]) != f.Usage[:1] &&
				f.Usage[:4] != "JSON" {
				t.Errorf("%s --%s: %q", cmd.CommandPath(), f.Name, f.Usage)
			}
		})
	}
}

// foreignFlags are flags of other programs that the pages name.
var foreignFlags = []string{
	"unreachable",                 // dumpsys meminfo
	"output-dir", "fail-on-empty", // ginkgo
	"root",                       // hostdevice serve
	"t",                          // a flag of a program in an example
	"reload-rules", "name-match", // udevadm
	"activity-clear-task", "activity-clear-top", "activity-single-top", // am start
}

// Every flag that a page names belongs to a command.
func TestFlagsOfThePages(t *testing.T) {
	known := slices.Clone(foreignFlags)
	for _, cmd := range allCommands(newRoot(&console{})) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	}
	flag := regexp.MustCompile("(?m)(?:^|[ `(\\[])--([a-z](?:-?[a-z])*)\\b[^-]")
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../docs/formats/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range flag.FindAllStringSubmatch(string(text), -1) {
				if !slices.Contains(known, m[1]) {
					t.Errorf("%s: no command has a flag --%s", page, m[1])
				}
			}
		}
	}
}

// wrong holds invalid command lines, grouped by mistake.
var wrong = map[string][][]string{
	"commands": {
		{"wach"}, {"frobnicate"}, {"wach", "--process", "com.shop"}, {"help", "wach"}, {"help", "watch", "com.shop"},
		{"config"}, {"config", "verfy", "run.yaml"}, {"config", "frobnicate"}, {"completion", "tcsh"}, {"completion"},
	},
	"flags": {
		{"watch", "--procss", "com.shop"}, {"watch", "-process", "com.shop"}, {"watch", "-x"}, {"--frob"},
		{"analyze", "shop.hprof", "--gate"},
		{"watch", "--process"}, {"watch", "--process", "com.a", "--for", "1h", "--for", "2h"},
		{"config", "schema", "--json"}, {"version", "-qv"},
	},
	"values": {
		{"watch", "--process", "com.shop", "--for", "8"}, {"watch", "--process", "com.shop", "--for", "-2h"},
		{"watch", "--process", "com.shop", "--dump", "on_leek"},
		{"watch", "--process", "com.shop", "--policy", "strict"}, {"watch", "--process", "$(reboot)"},
		{"watch", "--process", "com.shop", "--device", ""},
		{"watch", "--process", "com.shop", "--out", "--json"}, {"watch", "--process", "com.shop", "--process", ""},
		{"report", ""},
		{"diagnose", "--process", "com.shop", "--kind", "jave"}, {"run", "run.yaml", "--keep", "all"},
		{"analyze", "shop.hprof", "--top", "many"}, {"analyze", "shop.hprof", "--top", "-1"},
		{"analyze", "shop.hprof", "--memory", "4"}, {"analyze", "shop.hprof", "--memory", "0GB"},
		{"analyze", "shop.hprof", "--json=perhaps"}, {"analyze", "shop.hprof", "--fail-on", "leaks"},
		{"growth", "a.hprof", "b.hprof", "--loops", "0"}, {"parse", "memifno", "x.txt"},
		{"objects", "missing.hprof", "12c0494x"}, {"analyze", "missing.hprof", "--leaking-class", ""},
		{"demo", "--serve", "--port", "0"}, {"demo", "--serve", "--speed", "1000"},
	},
	"arguments": {
		{"run"}, {"run", "a.yaml", "b.yaml"}, {"watch"}, {"watch", "com.shop"}, {"diagnose", "com.shop"}, {"diagnose"},
		{"demo", "now"}, {"doctor", "com.shop"}, {"mark", "text"}, {"version", "now"},
		{"replay"}, {"report"}, {"analyze"}, {"analyze", "a.hprof", "b.hprof"}, {"objects", "a.hprof"},
		{"paths", "a.hprof"}, {"paths", "a.hprof", "A", "B"}, {"diff", "a.hprof"}, {"growth"}, {"growth", "a.hprof"},
		{"strip", "a.hprof"}, {"parse", "meminfo"}, {"parse", "meminfo", "x.txt", "--pid", "7"}, {"config", "verify"},
		{"config", "print"}, {"config", "schema", "x"},
		{"analyze", "a.hprof", "--only", "histogram", "--fail-on", "leak"}, {"diff", "-", "-"},
		{"growth", "a.hprof", "a.hprof"},
		{"demo", "--port", "5099"}, {"demo", "--serve", "--out", "runs/demo"},
	},
	"files": {
		{"run", "missing.yaml"}, {"run", "bad.yaml"}, {"config", "verify", "bad.yaml"}, {"config", "init", "bad.yaml"},
		{"replay", "missing.csv"}, {"report", "missing"}, {"mark", "--run", ".", "text"},
		{"analyze", "missing.hprof"}, {"analyze", "bad.yaml"}, {"analyze", "bad.yaml", "--mapping", "missing.txt"},
		{"diff", "missing.hprof", "bad.yaml"}, {"diff", "bad.yaml", "."}, {"strip", "bad.yaml", "bad.yaml"},
		{"parse", "meminfo", "missing.txt"},
	},
}

// For each kind of mistake, a golden file holds the output of an invalid
// command line: both streams and the exit code.
func TestWrongCommandLines(t *testing.T) {
	for name, lines := range wrong {
		file, err := filepath.Abs(filepath.Join("testdata", "wrong", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile("bad.yaml",
				[]byte("version: 1\napp: { package: com.shop }\nworklod: none\nduration: soon\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, args := range lines {
				code, out, errOut := typed(t, nil, args...)
				fmt.Fprintf(&b, "$ leakgate %s\n%s", shownArguments(args), errOut)
				for line := range strings.Lines(out) {
					b.WriteString("stdout: " + line)
				}
				fmt.Fprintf(&b, "exit %d\n\n", code)
				if code == exitOK || out != "" {
					t.Errorf("%q: exit %d, stdout %q", args, code, out)
				}
			}
			golden(t, file, b.String())
		})
	}
}

func shownArguments(args []string) string {
	words := slices.Clone(args)
	for i, w := range words {
		if w == "" {
			words[i] = "''"
			continue
		}
		words[i] = shellWord(w)
	}
	return strings.Join(words, " ")
}

// completions returns what a shell offers for the last word.
func completions(t *testing.T, args ...string) []string {
	t.Helper()
	code, out, _ := typed(t, nil, append([]string{cobra.ShellCompRequestCmd}, args...)...)
	if code != exitOK {
		t.Errorf("%q: exit %d", args, code)
	}
	var words []string
	for line := range strings.Lines(out) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		words = append(words, word)
	}
	return words
}

func TestCompletion(t *testing.T) {
	file := write(t,
		"version: 1\napp: { package: com.x }\nworkload: none\nduration: 30m\nprofiles: { pr: {}, nightly: {} }\n")
	for name, c := range map[string]struct {
		args, want []string
	}{
		"a command":            {[]string{"wa"}, []string{"watch", ":4"}},
		"subcommand of config": {[]string{"config", ""}, []string{"init", "print", "schema", "verify", ":4"}},
		"argument of help":     {[]string{"help", "config", ""}, []string{"init", "print", "schema", "verify", ":4"}},
		"a shell":              {[]string{"completion", ""}, []string{"bash", "zsh", "fish", "powershell", ":4"}},
		"a kind":               {[]string{"parse", ""}, append(parseKindNames(), ":4")},
		"a file to parse":      {[]string{"parse", "meminfo", ""}, []string{":0"}},
		"a flag":               {[]string{"watch", "--pol"}, []string{"--policy", ":4"}},
		"value of --dump":      {[]string{"watch", "--dump", ""}, []string{"on_leak", "at_end", "at_marks", ":4"}},
		"value of --keep":      {[]string{"run", "x.yaml", "--keep", ""}, []string{"stripped", "raw", "none", ":4"}},
		"a profile":            {[]string{"config", "print", file, "--profile", ""}, []string{"pr", "nightly", ":4"}},
		"a dump":               {[]string{"analyze", ""}, append(slices.Clone(dumpExtensions), ":8")},
		"run file":             {[]string{"run", ""}, []string{"yaml", "yml", ":8"}},
		"a run directory":      {[]string{"mark", "--run", ""}, []string{":16"}},
		"a mapping":            {[]string{"analyze", "x.hprof", "--mapping", ""}, []string{":0"}},
		"no suggestions":       {[]string{"watch", "--device", ""}, []string{":4"}},
	} {
		if got := completions(t, c.args...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, out, errOut := typed(t, nil, "completion", shell)
		if code != exitOK || errOut != "" || !strings.Contains(out, "__complete") {
			t.Errorf("%s: exit %d, %q", shell, code, errOut)
		}
		path, err := exec.LookPath(shell)
		if err != nil || shell == "powershell" {
			continue
		}
		check := exec.Command(path, "-n")
		check.Stdin = strings.NewReader(out)
		if text, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, text)
		}
	}
}
