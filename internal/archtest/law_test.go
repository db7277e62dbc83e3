package archtest

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Law is the content of the page: what each package may import.
type Law struct {
	// Allowed maps the directory of each package of the project to the packages
	// of the project that it may import.
	Allowed map[string][]string
	// Leaves lists the packages that import no package of the project and that
	// every package may import.
	Leaves map[string]bool
	// Homes maps the import path of each third-party package to the only
	// directory that may import it; its subdirectories may import it too.
	Homes map[string]string
}

const fence = "```"

// ReadLaw parses the code block of a Markdown page that is marked imports;
// there must be exactly one. Its lines have one of these forms:
//
//	package: what it may import
//	leaf package:
//	import path @ its home
//	# a remark
func ReadLaw(page io.Reader) (Law, error) {
	law := Law{Allowed: map[string][]string{}, Leaves: map[string]bool{}, Homes: map[string]string{}}
	inside, blocks := false, 0
	lines := bufio.NewScanner(page)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == fence+"imports":
			inside = true
			blocks++
		case inside && line == fence:
			inside = false
		case inside:
			if err := law.add(line); err != nil {
				return Law{}, fmt.Errorf("read line %d: %w", n, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return Law{}, fmt.Errorf("read the rules: %w", err)
	}
	if blocks != 1 || inside {
		return Law{}, fmt.Errorf("read the rules: want one complete block %simports, got %d", fence, blocks)
	}
	return law, nil
}

func (l Law) add(line string) error {
	line, _, _ = strings.Cut(line, "#")
	if line = strings.TrimSpace(line); line == "" {
		return nil
	}
	if path, home, ok := strings.Cut(line, " @ "); ok {
		path = strings.TrimSpace(path)
		if _, twice := l.Homes[path]; twice {
			return fmt.Errorf("%s has a second home", path)
		}
		l.Homes[path] = strings.TrimSpace(home)
		return nil
	}
	pkg, imports, ok := strings.Cut(line, ":")
	if !ok {
		return fmt.Errorf("%q is neither a package nor a home", line)
	}
	pkg, leaf := strings.CutPrefix(pkg, "leaf ")
	if leaf && strings.TrimSpace(imports) != "" {
		return fmt.Errorf("%s is a leaf, so it may not import packages of the project", pkg)
	}
	if _, twice := l.Allowed[pkg]; twice {
		return fmt.Errorf("%s is listed twice", pkg)
	}
	l.Allowed[pkg] = strings.Fields(imports)
	if leaf {
		l.Leaves[pkg] = true
	}
	return nil
}

// home returns the directory in which a third-party package may be imported,
// and the line of the page that permits it.
func (l Law) home(path string) (home, line string, ok bool) {
	for line, home := range l.Homes {
		if within(path, line) {
			return home, line, true
		}
	}
	return "", "", false
}

// within reports whether a path is equal to a directory or below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
