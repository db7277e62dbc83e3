package jvmtest

import (
	"embed"
	"fmt"
	"math/rand/v2"
	"strings"
)

//go:embed programs/*.java
var programs embed.FS

// Files maps the names of a program's files to their contents.
type Files map[string]string

// The main classes of the programs. ShopMain takes names of leaks, SteadyMain
// takes no arguments, and MallMain takes a seed and the number of additional
// objects that do not leak.
const (
	ShopMain   = "com.example.shop.Leaks"
	SteadyMain = "com.example.steady.Steady"
	MallMain   = "com.example.mall.Mall"
	// TwinsMain takes a seed.
	TwinsMain = "com.example.twins.Twins"
	// GalleryMain takes the name of a shape.
	GalleryMain = "com.example.gallery.Gallery"
	// LibrariesMain takes the name of a shape.
	LibrariesMain = "com.example.libraries.Libraries"
)

// Shop returns the files of two programs: one with the leaks of ShopLeaks, each
// of which can be selected alone, and one without leaks.
func Shop() Files { return read("Console.java", "Leaks.java", "Steady.java") }

// Mall returns a program with all leaks of MallLeaks at once.
func Mall() Files { return read("Console.java", "Mall.java") }

// Twins returns a program that creates objects of TwinClasses, each reachable
// by several paths of equal length.
func Twins() Files { return read("Console.java", "Twins.java") }

// TwinClasses returns the names of the classes whose objects Twins creates.
func TwinClasses() (classes []string) {
	for _, name := range []string{"Cart", "Photo", "Order", "Price", "Help", "Wish"} {
		classes = append(classes, "com.example.twins.Twins$"+name+"Screen")
	}
	return classes
}

// Gallery returns a program with the shapes of LeakingShapes, and with shapes
// that do not leak.
func Gallery() Files { return read("Console.java", "Gallery.java") }

func read(names ...string) Files {
	s := Files{}
	for _, name := range names {
		text, err := programs.ReadFile("programs/" + name)
		if err != nil {
			panic("jvmtest: missing embedded program: " + err.Error())
		}
		s[name] = string(text)
	}
	return s
}

// The marks in a source file. A memberMark above a member of a class means that
// the marked members may be reordered; code may be inserted at the position of
// either mark.
const (
	memberMark    = "//@member"
	statementMark = "//@statement"
)

// Rebuilt returns a later version of the program. Its marked members are in a
// different order, with additional lambdas and anonymous classes between them,
// so javac and the JVM assign different numbers to the leaking lambdas and
// classes.
func (s Files) Rebuilt(seed uint64) Files {
	rebuilt := Files{}
	for name, text := range s {
		b := builder{random: rand.New(rand.NewPCG(seed, uint64(len(name))))}
		rebuilt[name] = b.file(text)
	}
	return rebuilt
}

// builder rebuilds a file.
type builder struct {
	random *rand.Rand
	made   int
}

// file processes the classes, which begin and end in the first column.
func (b *builder) file(text string) string {
	var out, body []string
	inside := false
	for line := range strings.Lines(text) {
		switch {
		case inside && line == "}\n":
			out = append(append(out, b.members(body)...), line)
			inside = false
		case inside:
			body = append(body, line)
		default:
			out = append(out, line)
			inside, body = strings.HasSuffix(line, "{\n"), nil
		}
	}
	return strings.Join(out, "")
}

// members reorders the members of a class; lines before the first mark stay
// unchanged.
func (b *builder) members(body []string) []string {
	var head []string
	var blocks [][]string
	for _, line := range body {
		switch {
		case strings.TrimSpace(line) == memberMark:
			blocks = append(blocks, nil)
		case len(blocks) == 0:
			head = append(head, b.statement(line)...)
		default:
			blocks[len(blocks)-1] = append(blocks[len(blocks)-1], b.statement(line)...)
		}
	}
	if len(blocks) == 0 {
		return head
	}
	for range b.random.IntN(4) {
		blocks = append(blocks, []string{b.member()})
	}
	b.random.Shuffle(len(blocks), func(i, k int) { blocks[i], blocks[k] = blocks[k], blocks[i] })
	for _, block := range blocks {
		head = append(head, block...)
	}
	return head
}

// statement returns the line, or random statements if the line is a
// statementMark.
func (b *builder) statement(line string) []string {
	if strings.TrimSpace(line) != statementMark {
		return []string{line}
	}
	var lines []string
	for range b.random.IntN(3) {
		b.made++
		if b.random.IntN(2) == 0 {
			lines = append(lines, fmt.Sprintf("Runnable more%d = () -> {}; more%[1]d.run();\n", b.made))
		} else {
			lines = append(lines, "new Object() {}.hashCode();\n")
		}
	}
	return lines
}

// member returns a static field that is initialized when its class is loaded:
// the JVM numbers lambdas in the order of their first use.
func (b *builder) member() string {
	b.made++
	if b.random.IntN(2) == 0 {
		return fmt.Sprintf("static Runnable more%d = () -> {};\n", b.made)
	}
	return fmt.Sprintf("static Object more%d = new Object() {};\n", b.made)
}
