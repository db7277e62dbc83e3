package jvmtest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shrinker is ProGuard: it removes the parts that a program does not need and
// renames the rest.
type shrinker struct {
	jdk     *JDK
	program string
}

// shrinker finds ProGuard through PATH, where Debian's package proguard-cli
// installs it. If ProGuard is missing, recorded.Missing ends the test.
func (j *JDK) shrinker(tb testing.TB) *shrinker {
	tb.Helper()
	return &shrinker{j, find(tb, "proguard")}
}

// shrink renames everything in a jar except its main class. It works in a
// separate directory, and returns the paths of the new jar and of the mapping.
// Optimization is disabled, because it merges classes and removes fields that
// are never read; this would also remove leaks.
func (s *shrinker) shrink(ctx context.Context, dir, jar, main string, rules []string) (renamed, mapping string,
	err error) {
	key, err := s.key(dir, jar, main, rules)
	if err != nil {
		return "", "", fmt.Errorf("obfuscate program: %w", err)
	}
	data, err := built(key, func() ([]byte, error) {
		renamed, mapping, err := s.run(ctx, dir, jar, main, rules)
		if err != nil {
			return nil, err
		}
		return pair(renamed, mapping)
	})
	if err != nil {
		return "", "", err
	}
	var files [2][]byte
	if err := json.Unmarshal(data, &files); err != nil {
		return "", "", fmt.Errorf("obfuscate program: %w", err)
	}
	renamed, mapping = filepath.Join(dir, "renamed.jar"), filepath.Join(dir, "mapping.txt")
	if err := errors.Join(os.WriteFile(renamed, files[0], 0o600), os.WriteFile(mapping, files[1], 0o600)); err != nil {
		return "", "", fmt.Errorf("obfuscate program: %w", err)
	}
	return renamed, mapping, nil
}

// key returns a string that identifies the renamed program and the rules. If
// the rules name files in dir, the contents of these files are included.
func (s *shrinker) key(dir, jar, main string, rules []string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %s", stamp(s.program), main, strings.ReplaceAll(strings.Join(rules, "\n"), dir, ""))
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return "", err
	}
	for _, name := range append(names, jar) {
		data, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %x ", filepath.Base(name), sha256.Sum256(data))
	}
	return fmt.Sprintf("renamed %x", h.Sum(nil)), nil
}

// pair returns the contents of two files as one file.
func pair(first, second string) ([]byte, error) {
	var files [2][]byte
	for i, name := range []string{first, second} {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files[i] = data
	}
	return json.Marshal(files)
}

// run starts ProGuard.
func (s *shrinker) run(ctx context.Context, dir, jar, main string, rules []string) (renamed, mapping string,
	err error) {
	api, err := s.jdk.library()
	if err != nil {
		return "", "", err
	}
	library := filepath.Join(dir, "library.jar")
	if err := os.WriteFile(library, api, 0o600); err != nil {
		return "", "", fmt.Errorf("obfuscate program: %w", err)
	}
	defer os.Remove(library)
	renamed, mapping = filepath.Join(dir, "renamed.jar"), filepath.Join(dir, "mapping.txt")
	all := append([]string{
		"-injars '" + jar + "'", "-outjars '" + renamed + "'", "-libraryjars '" + library + "'",
		"-printmapping '" + mapping + "'",
		"-keep class " + main + " { public static void main(java.lang.String[]); }", "-dontoptimize",
		"-allowaccessmodification",
	}, rules...)
	if err := os.WriteFile(filepath.Join(dir, "rules.pro"), []byte(strings.Join(all, "\n")), 0o600); err != nil {
		return "", "", fmt.Errorf("obfuscate program: %w", err)
	}
	// ProGuard's program is a script that starts a JVM.
	env := environment("JAVA_TOOL_OPTIONS=" + strings.Join(small, " "))
	if _, err := run(ctx, dir, env, s.program, "@rules.pro"); err != nil {
		return "", "", fmt.Errorf("obfuscate program: %w", err)
	}
	return renamed, mapping, nil
}

// dictionaries returns rules that assign the new names in an order that depends
// on the seed. The set of short names is always the same, so one name stands
// for different classes or members in different builds.
func dictionaries(dir string, seed uint64) ([]string, error) {
	var names []string
	for c := 'a'; c <= 'z'; c++ {
		names = append(names, string(c), "a"+string(c), "b"+string(c))
	}
	random := rand.New(rand.NewPCG(seed, 0))
	var rules []string
	for _, kind := range []string{"obfuscation", "classobfuscation", "packageobfuscation"} {
		random.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
		path := filepath.Join(dir, kind+".txt")
		if err := os.WriteFile(path, []byte(strings.Join(names, "\n")), 0o600); err != nil {
			return nil, fmt.Errorf("write dictionary: %w", err)
		}
		rules = append(rules, "-"+kind+"dictionary '"+path+"'")
	}
	return rules, nil
}
