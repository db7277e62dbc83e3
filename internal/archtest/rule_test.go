package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// forbidden holds package names that do not describe the content of a package:
// such a package would collect unrelated code over time.
var forbidden = []string{
	"base", "common", "core", "helper", "helpers", "lib", "manager", "managers", "misc",
	"model", "models", "shared", "types", "util", "utils",
}

// layer is one of the parts of the tree, lowest first.
type layer struct {
	folders []string
	// mayImport lists the other directories from which the layer may import.
	// The layer rules do not restrict imports within one directory.
	mayImport []string
}

// layers are the rules that no line of the page can override. Each package
// belongs to exactly one directory of a layer; see room. The directory internal
// contains the instruments: simulated phones, oracles, measurements.
var layers = []layer{
	{folders: []string{"detector"}},
	{folders: []string{"analysis"}},
	{folders: []string{"capture", "reporters"}, mayImport: []string{"detector", "analysis"}},
	{folders: []string{"harness"}, mayImport: []string{"detector", "analysis", "capture", "reporters"}},
	{folders: []string{"internal"}, mayImport: []string{"detector", "analysis", "capture", "reporters"}},
	{folders: []string{"cmd", "examples"},
		mayImport: []string{"detector", "analysis", "capture", "reporters", "harness", "internal"}},
	{folders: []string{"tools"}, mayImport: []string{"internal"}},
}

// product lists the directories whose packages may also be in internal/FOLDER/.
var product = []string{"detector", "analysis", "capture", "reporters", "harness"}

// Violation describes how the tree violates one of the rules.
type Violation struct {
	Rule string // a word that identifies the rule
	Text string // what is wrong, where, and how to fix it
}

func (v Violation) String() string { return v.Rule + ": " + v.Text }

// Check compares the tree of a module with the page.
func Check(module string, law Law, tree map[string]*Package) []Violation {
	c := checker{module: module, law: law, tree: tree}
	c.lists()
	c.leaves()
	used := map[string]bool{} // "importer imported", or a line of the page that names a home
	for _, folder := range sortedKeys(tree) {
		p := tree[folder]
		c.name(p)
		c.comment(p)
		for _, imported := range sortedKeys(p.Imports) {
			c.imported(p, imported, p.Imports[imported], used)
		}
		for _, imported := range sortedKeys(p.TestImports) {
			c.importedByTest(p, imported, p.TestImports[imported], used)
		}
	}
	c.unused(used)
	return c.found
}

type checker struct {
	module string
	law    Law
	tree   map[string]*Package
	found  []Violation
}

func (c *checker) add(rule, format string, args ...any) {
	c.found = append(c.found, Violation{rule, fmt.Sprintf(format, args...)})
}

// own returns the directory of a package of the project, or false for any other
// package.
func (c *checker) own(imported string) (string, bool) {
	if imported == c.module {
		return ".", true
	}
	return strings.CutPrefix(imported, c.module+"/")
}

// lists checks that the page lists exactly the packages that exist.
func (c *checker) lists() {
	for _, folder := range sortedKeys(c.tree) {
		if _, ok := c.law.Allowed[folder]; !ok {
			c.add("listed", "package %s is not on the page: add a line with what it may import", folder)
		}
	}
	for _, folder := range sortedKeys(c.law.Allowed) {
		if _, ok := c.tree[folder]; !ok {
			c.add("listed", "the page has a line for %s, which does not exist", folder)
		}
	}
}

// leaves checks that each leaf is internal and imports no package of the
// project. Every package may import a leaf, so no line of the page may permit
// it.
func (c *checker) leaves() {
	for _, leaf := range sortedKeys(c.law.Leaves) {
		if !within(leaf, "internal") {
			c.add("leaf", "%s is a leaf, but not in internal", leaf)
		}
		if p := c.tree[leaf]; p != nil {
			for _, imported := range sortedKeys(p.Imports) {
				if target, own := c.own(imported); own {
					c.add("leaf", "%s imports %s: a leaf may not import packages of the project", p.Imports[imported],
						target)
				}
			}
		}
	}
	for _, folder := range sortedKeys(c.law.Allowed) {
		for _, target := range c.law.Allowed[folder] {
			if c.law.Leaves[target] {
				c.add("leaf", "the page lets %s import %s: every package may import a leaf, so remove it from the line",
					folder, target)
			}
		}
	}
}

// name checks that every package belongs to a layer and has a meaningful name.
func (c *checker) name(p *Package) {
	for _, part := range append(strings.Split(p.Folder, "/"), p.Name) {
		if slices.Contains(forbidden, part) {
			c.add("name", "package %s: %q does not describe the content: move it to the packages that it belongs to",
				p.Folder, part)
			break
		}
	}
	if layerOf(p.Folder) == nil {
		c.add("layer", "package %s does not belong to any layer of the tree", p.Folder)
	}
}

// comment checks that every package has a package comment.
func (c *checker) comment(p *Package) {
	if p.onlyTests() {
		return
	}
	begin := "Package " + p.Name + " "
	if isProgram(p) {
		begin = "Command " + path.Base(p.Folder) + " "
	}
	if !strings.HasPrefix(p.Doc, begin) {
		c.add("comment", "package %s has no package comment that begins with %q", p.Folder, begin)
	}
}

// imported checks one import of the files that are not tests.
func (c *checker) imported(p *Package, imported, file string, used map[string]bool) {
	target, own := c.own(imported)
	if !own {
		c.foreign(p, imported, file, used)
		return
	}
	if c.law.Leaves[target] {
		return
	}
	used[p.Folder+" "+target] = true
	if allowed, listed := c.law.Allowed[p.Folder]; listed && !slices.Contains(allowed, target) {
		c.add("allowed", "%s imports %s, but the page does not let %s do so", file, target, p.Folder)
	}
	if above(target, p.Folder) && c.reaches(target, p.Folder) {
		c.add("parent", "%s imports its parent %s, which imports it: remove one of the two imports", file,
			target)
	}
	if isTestSupport(target) && !isTestSupport(p.Folder) {
		c.add("test support", "%s imports %s, which is only for tests", file, target)
	}
	c.layered(p.Folder, target, file)
}

// importedByTest checks one import of test files. A test may also import what
// the page does not list: every internal package, to set up what it tests, and
// every package that its layer may import, including parents and children.
func (c *checker) importedByTest(p *Package, imported, file string, used map[string]bool) {
	target, own := c.own(imported)
	switch {
	case !own:
		c.foreign(p, imported, file, used)
	case room(target) != "internal":
		c.layered(p.Folder, target, file)
	}
}

// reaches reports whether a package imports another one, directly or
// indirectly. The compiler detects cycles too, but not cycles that span two
// build tags.
func (c *checker) reaches(from, target string) bool {
	seen := map[string]bool{}
	var walk func(folder string) bool
	walk = func(folder string) bool {
		if folder == target {
			return true
		}
		p := c.tree[folder]
		if p == nil || seen[folder] {
			return false
		}
		seen[folder] = true
		for imported := range p.Imports {
			if next, own := c.own(imported); own && walk(next) {
				return true
			}
		}
		return false
	}
	return walk(from)
}

// layered checks an import against the layers.
func (c *checker) layered(importer, target, file string) {
	from := layerOf(importer)
	if from == nil || c.law.Leaves[target] || room(importer) == room(target) ||
		slices.Contains(from.mayImport, room(target)) {
		return
	}
	c.add("layer", "%s imports %s: nothing in %s may import from %s", file, target, room(importer), room(target))
}

// foreign checks that a third-party package is imported only in its home.
func (c *checker) foreign(p *Package, imported, file string, used map[string]bool) {
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return // the standard library
	}
	home, line, ok := c.law.home(imported)
	if !ok {
		c.add("home", "%s imports %s, which has no home on the page", file, imported)
		return
	}
	used[line] = true
	if room(p.Folder) == "examples" {
		return // examples represent users, who may import any package
	}
	if !within(p.Folder, home) {
		c.add("home", "%s imports %s, whose home is %s", file, imported, home)
	}
}

// unused checks that the page allows only imports that exist; otherwise it
// would not describe the tree.
func (c *checker) unused(used map[string]bool) {
	for _, folder := range sortedKeys(c.law.Allowed) {
		for _, target := range c.law.Allowed[folder] {
			if !used[folder+" "+target] && c.tree[folder] != nil && !c.tree[folder].onlyTests() {
				c.add("used", "the page lets %s import %s, but there is no such import", folder, target)
			}
		}
	}
	for _, line := range sortedKeys(c.law.Homes) {
		if !used[line] {
			c.add("used", "the page has a home for %s, which nothing imports", line)
		}
	}
}

// room returns the directory of the layer to which a package belongs. It is
// usually the first element of the package's path. If that is internal and the
// second element is a part of the product, the package belongs to the second:
// internal/analysis/heap belongs to analysis. Packages such as
// internal/analysis/heap are below internal at the root because other parts of
// leakgate import them, but other programs may not.
func room(folder string) string {
	parts := strings.Split(folder, "/")
	if parts[0] == "internal" && len(parts) > 1 && slices.Contains(product, parts[1]) {
		return parts[1]
	}
	return parts[0]
}

func layerOf(folder string) *layer {
	for i := range layers {
		if slices.Contains(layers[i].folders, room(folder)) {
			return &layers[i]
		}
	}
	return nil
}

// above reports whether a directory contains another one.
func above(folder, other string) bool { return folder != other && within(other, folder) }

// isProgram reports whether a package is a program. No package may import a
// program, wherever its directory is.
func isProgram(p *Package) bool { return p.Name == "main" }

// isTestSupport reports whether a package has a name of the form x/xtest. Such
// a package helps the tests of x and of its users, as net/http/httptest does.
func isTestSupport(folder string) bool {
	return path.Base(folder) == path.Base(path.Dir(folder))+"test"
}
