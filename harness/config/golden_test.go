package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the bad files in testdata give as what they should give")

// environment is the environment of all tests.
func environment(name string) (string, bool) {
	v, ok := map[string]string{
		"SHOP": "com.shop", "EMPTY": "", "WORD": "many", "EVENTS": "5000", "LENGTH": "2d", "DOLLAR": "${SHOP} $$",
	}[name]
	return v, ok
}

// TestBadFiles compares everything that is said about each file of testdata with
// the text beside it.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("find files: %d, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Parse(filepath.Base(file), text, environment)
			if err == nil {
				t.Fatalf("accepted: %+v", c)
			}
			checkErrors(t, text, err)
			got := err.Error() + "\n"
			golden := strings.TrimSuffix(file, ".yaml") + ".want"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != strings.ReplaceAll(string(want), "\r\n", "\n") {
				t.Errorf("got:\n%swant:\n%s", got, want)
			}
		})
	}
}
