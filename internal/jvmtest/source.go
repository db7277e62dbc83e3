package jvmtest

import (
	"embed"
	"fmt"
	"math/rand/v2"
	"strings"
)

//go:embed programs/*.java
var programs embed.FS

// Source is the text of a program by the name of each file.
type Source map[string]string

// Main classes of the programs. ShopMain takes the names of leaks, SteadyMain nothing,
// MallMain a seed and a number of things beside the leaks.
const (
	ShopMain   = "com.example.shop.Leaks"
	SteadyMain = "com.example.steady.Steady"
	MallMain   = "com.example.mall.Mall"
	// TwinsMain takes a seed.
	TwinsMain = "com.example.twins.Twins"
	// GalleryMain takes the name of one shape.
	GalleryMain = "com.example.gallery.Gallery"
	// LibrariesMain takes the name of one shape.
	LibrariesMain = "com.example.libraries.Libraries"
)

// Shop has the leaks of ShopLeaks, each for itself, and the program without any.
func Shop() Source { return read("Console.java", "Leaks.java", "Steady.java") }

// Mall has the leaks of MallLeaks, all at once.
func Mall() Source { return read("Console.java", "Mall.java") }

// Twins has objects to which several ways of one length lead, of TwinClasses.
func Twins() Source { return read("Console.java", "Twins.java") }

// TwinClasses are the classes of those objects.
func TwinClasses() (classes []string) {
	for _, name := range []string{"Cart", "Photo", "Order", "Price", "Help", "Wish"} {
		classes = append(classes, "com.example.twins.Twins$"+name+"Screen")
	}
	return classes
}

// Gallery has the shapes of GalleryLeaks, and programs that do not leak.
func Gallery() Source { return read("Console.java", "Gallery.java") }

func read(names ...string) Source {
	s := Source{}
	for _, name := range names {
		text, err := programs.ReadFile("programs/" + name)
		if err != nil {
			panic("jvmtest: a program that is embedded is not there: " + err.Error())
		}
		s[name] = string(text)
	}
	return s
}

// Marks in a source. Above a member of a class, memberMark says that it may stand
// anywhere among those that have one; both say that other code may stand here.
const (
	memberMark    = "//@member"
	statementMark = "//@statement"
)

// Rebuilt is the program some work later: its marked members stand in another order, and
// there are other lambdas and anonymous classes between them, so that javac and the JVM
// give other numbers to those that leak.
func (s Source) Rebuilt(seed uint64) Source {
	rebuilt := Source{}
	for name, text := range s {
		b := builder{random: rand.New(rand.NewPCG(seed, uint64(len(name))))}
		rebuilt[name] = b.file(text)
	}
	return rebuilt
}

// builder rebuilds one file.
type builder struct {
	random *rand.Rand
	made   int
}

// file goes over the classes, which begin and end at the left edge.
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

// members orders the members of a class anew; what stands before the first mark stays.
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

// statement puts other code in the place of a mark.
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

// member is a static field that is set as its class is loaded: the JVM numbers lambdas
// in the order in which they are first met.
func (b *builder) member() string {
	b.made++
	if b.random.IntN(2) == 0 {
		return fmt.Sprintf("static Runnable more%d = () -> {};\n", b.made)
	}
	return fmt.Sprintf("static Object more%d = new Object() {};\n", b.made)
}
