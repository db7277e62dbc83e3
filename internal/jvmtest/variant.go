package jvmtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// Variant is the heap of one build of Mall in one run.
type Variant struct {
	Name string
	// Dump is the path of the heap dump; Mapping is the path of ProGuard's
	// mapping, or "" if nothing is renamed. The files exist until the end of
	// the test.
	Dump, Mapping string
	// Dumps are the paths of the dumps after each loop; the last path is Dump.
	Dumps []string
	// Leaking lists the classes of MallLeaks, with their names in the source
	// code.
	Leaking []string
	// Iterations is the number of times that each leak occurred, for use with
	// Leak.Objects.
	Iterations int
}

// plan describes how a variant is created.
type plan struct {
	name string
	// source is the seed of Files.Rebuilt, or 0 for the original program.
	source uint64
	// seed and others are the arguments of MallMain.
	seed, others, iterations int
	options                  []string
	// rules are ProGuard's rules; nil means that the program is not renamed.
	// names is the seed of ProGuard's dictionaries; 0 means no dictionaries.
	rules []string
	names uint64
}

// plans returns the first build and the builds that are compared with it. All
// have the same leaks.
func plans() []plan {
	list := []plan{{name: "first", seed: 1, others: 20, iterations: 2}}
	for i := range 6 {
		list = append(list,
			plan{name: fmt.Sprintf("rebuilt %d", i+1), source: uint64(i + 1), seed: 1, others: 20, iterations: 2})
	}
	for i, options := range [][]string{
		nil,
		{"-Xmx96m"},
		{"-XX:-UseSerialGC", "-XX:+UseParallelGC"},
		{"-XX:-UseSerialGC", "-XX:+UseG1GC"},
		{"-XX:-UseCompressedOops"},
		{"-XX:ObjectAlignmentInBytes=16"},
	} {
		others := [...]int{0, 7, 60, 200, 500, 1000}[i]
		list = append(list,
			plan{
				name: fmt.Sprintf("reordered %d", i+1), seed: i + 2, others: others, iterations: i%3 + 1,
				options: options,
			})
	}
	for i, rules := range [][]string{
		{},
		{"-repackageclasses"},
		{"-repackageclasses q"},
		{"-flattenpackagehierarchy"},
		{"-useuniqueclassmembernames"},
	} {
		// In the first two renamed variants, ProGuard chooses the names itself.
		p := plan{name: fmt.Sprintf("renamed %d", i+1), seed: 1, others: 20, iterations: 2, rules: rules}
		if i > 1 {
			p.names = uint64(i)
		}
		list = append(list, p)
	}
	return append(list,
		plan{name: "all 1", source: 1, seed: 8, others: 90, iterations: 3, rules: []string{}, names: 7},
		plan{
			name: "all 2", source: 2, seed: 9, others: 300, iterations: 1, options: []string{"-Xmx80m"},
			rules: []string{"-repackageclasses"}, names: 8,
		},
	)
}

// Variants builds Mall twenty times and runs each build once. The first build
// is the original program. In the rebuilt variants, javac and the JVM number
// lambdas and anonymous classes differently. The reordered variants create the
// objects in a different order, between other objects, at other addresses. The
// renamed variants were processed by ProGuard. The last two variants combine
// all of these changes. The builds take half a minute on one core, so tests
// should share the result. If ProGuard is missing, recorded.Missing ends the
// test.
func (j *JDK) Variants(tb testing.TB) []Variant {
	tb.Helper()
	return j.variants(tb, plans())
}

// SomeVariants returns one or two variants of each type, in the order of
// Variants.
func (j *JDK) SomeVariants(tb testing.TB) []Variant {
	tb.Helper()
	some := []string{"first", "rebuilt 1", "reordered 2", "renamed 1", "renamed 3", "all 1"}
	return j.variants(tb, slices.DeleteFunc(plans(), func(p plan) bool { return !slices.Contains(some, p.name) }))
}

func (j *JDK) variants(tb testing.TB, list []plan) []Variant {
	tb.Helper()
	proguard := j.shrinker(tb)
	dir := tb.TempDir()
	if err := j.compileTogether(tb.Context(), sources(list)); err != nil {
		tb.Fatal(err)
	}
	variants, failures := make([]Variant, len(list)), make([]error, len(list))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i, p := range list {
		all.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			variants[i], failures[i] = proguard.variant(tb.Context(), filepath.Join(dir, strconv.Itoa(i)), p)
		})
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		tb.Fatal(err)
	}
	return variants
}

// program returns the program of a plan.
func (p plan) program() Files {
	if p.source == 0 {
		return Mall()
	}
	return Mall().Rebuilt(p.source)
}

// sources returns the distinct programs of plans.
func sources(list []plan) []Files {
	seen := map[uint64]bool{}
	var programs []Files
	for _, p := range list {
		if !seen[p.source] {
			seen[p.source] = true
			programs = append(programs, p.program())
		}
	}
	return programs
}

// variant creates a variant in a new directory.
func (s *shrinker) variant(ctx context.Context, dir string, p plan) (Variant, error) {
	v := Variant{Name: p.name, Iterations: p.iterations}
	for _, leak := range MallLeaks() {
		v.Leaking = append(v.Leaking, leak.Class)
	}
	jar, err := s.build(ctx, dir, p.build(), &v)
	if err == nil {
		err = s.jdk.visited(ctx, dir, p.options, jar, &v, 1, MallMain, strconv.Itoa(p.seed), strconv.Itoa(p.others))
	}
	if err != nil {
		return v, fmt.Errorf("make variant %s: %w", p.name, err)
	}
	return v, nil
}

// recipe describes a jar; if its rules are nil, the jar is not renamed.
type recipe struct {
	source Files
	main   string
	rules  []string
	// names is the seed of ProGuard's dictionaries, 0 for no dictionaries.
	names uint64
}

func (p plan) build() recipe { return recipe{p.program(), MallMain, p.rules, p.names} }

// build creates the jar and the mapping of a variant.
func (s *shrinker) build(ctx context.Context, dir string, of recipe, v *Variant) (string, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	jar := filepath.Join(dir, "program.jar")
	if err := s.jdk.compile(ctx, of.source, jar); err != nil || of.rules == nil {
		return jar, err
	}
	rules := of.rules
	if of.names != 0 {
		names, err := dictionaries(dir, of.names)
		if err != nil {
			return "", err
		}
		rules = append(names, rules...)
	}
	jar, mapping, err := s.shrink(ctx, dir, jar, of.main, rules)
	v.Mapping = mapping
	return jar, err
}

// visited runs all iterations of a variant, in loops of equal length, and dumps
// its heap after each loop.
func (j *JDK) visited(ctx context.Context, dir string, options []string, jar string, v *Variant, loops int, main string,
	args ...string) (err error) {
	process, err := j.start(ctx, dir, options, jar, main, args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.close()) }()
	for range loops {
		if err := process.do(ctx, v.Iterations/loops); err != nil {
			return err
		}
		if v.Dump, err = process.dump(ctx); err != nil {
			return err
		}
		v.Dumps = append(v.Dumps, v.Dump)
	}
	return nil
}
