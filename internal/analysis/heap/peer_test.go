//go:build e2e

package heap_test

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/jvmtest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// peerVersion is the release of hprof-analyzer whose rules peerRules describes.
// Its authors compare its results byte by byte with those of Eclipse MAT.
const peerVersion = "0.3.2"

var peerRules = rules{layout: true, referents: true, frames: true, sticky: true}

// madeDumps lists shapes of jvmtest.Gallery, whose dumps are compared: class
// loaders that leak, objects held by a frame of main and by a thread local,
// weak and soft references, a queue of finalizers, and native memory, all in a
// JVM whose references take 8 bytes.
var madeDumps = []struct {
	shape   string
	options []string
}{
	{"class-loader", nil}, {"main-local", nil}, {"thread-local", nil}, {"weak-map", nil}, {"soft-cache", nil},
	{"finalizer", nil},
	{"direct", []string{"-XX:-UseCompressedOops"}},
}

// TestPeer compares the trees of JVM dumps with hprof-analyzer's. The two tools
// are compared through a dominator tree that a textbook algorithm computes. It
// agrees with the engine under the engine's rules, and with the peer under the
// peer's rules, object by object and class by class. So the rules are the only
// difference between the tools.
func TestPeer(t *testing.T) {
	if !recorded.Long() {
		t.Skip("this test may build hprof-analyzer; set LEAKGATE_E2E=long to run it")
	}
	peer := findPeer(t)
	var total tally
	check := func(name, path string, dump []byte) {
		t.Run(name, func(t *testing.T) {
			total.add(comparePeer(t, peer, path, dump))
		})
	}
	for _, name := range jvmDumps {
		path := filepath.Join(t.TempDir(), strings.TrimSuffix(name, ".gz"))
		dump := recorded.Read(t, "hprof", name)
		if err := os.WriteFile(path, dump, 0o600); err != nil {
			t.Fatal(err)
		}
		check(name, path, dump)
	}
	j := jvmtest.New(t)
	jar := j.Compile(t, jvmtest.Gallery())
	for _, made := range madeDumps {
		p := j.StartWith(t, made.options, jar, jvmtest.GalleryMain, made.shape)
		p.Do(t, 6)
		path := p.Dump(t)
		p.Stop(t)
		dump, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		check(made.shape, path, dump)
	}
	t.Logf("all: %v", &total)
	if total.objects < 300_000 || total.classes < 10_000 || total.wide == 0 {
		t.Errorf("only %d objects and %d classes were compared, and %d dumps had 8-byte references", total.objects,
			total.classes, total.wide)
	}
	for i, s := range ruleSteps {
		if i > 0 && total.explained[i] == 0 {
			t.Errorf("the rule %q explains nothing: the dumps do not exercise it", s.name)
		}
	}
}

// findPeer returns the path of the program: the one that make bench-heap uses,
// or one built for tests without the parts that take a quarter of an hour to
// build. If neither is available, recorded.Missing decides whether the test
// fails or is skipped.
func findPeer(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		recorded.Missing(t, "cannot find the cache directory for hprof-analyzer: %v", err)
	}
	root := filepath.Join(cache, "leakgate-test", "hprof-analyzer-"+peerVersion)
	path := filepath.Join(root, "bin", "hprof-analyzer")
	for _, path := range []string{
		filepath.Join(cache, "leakgate", "heapbench", "peers", "bin", "hprof-analyzer"), path,
	} {
		if isPeer(path) {
			return path
		}
	}
	cargo, err := exec.LookPath("cargo")
	if err != nil {
		recorded.Missing(t, "this test needs hprof-analyzer %s, or cargo to install it: %v", peerVersion, err)
	}
	install := exec.CommandContext(t.Context(), cargo, "install", "--locked", "--root", root, "--version", peerVersion,
		"hprof-analyzer")
	install.Env = append(os.Environ(), "CARGO_PROFILE_RELEASE_LTO=off", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16",
		"CARGO_PROFILE_RELEASE_OPT_LEVEL=1")
	out, err := install.CombinedOutput()
	if err != nil || !isPeer(path) {
		recorded.Missing(t, "hprof-analyzer %s cannot be installed: %v: %s", peerVersion, err,
			out[max(0, len(out)-500):])
	}
	return path
}

// isPeer reports whether a program is hprof-analyzer in release peerVersion.
func isPeer(path string) bool {
	out, err := exec.Command(path, "--version").Output()
	words := strings.Fields(string(out))
	return err == nil && len(words) > 1 && words[1] == peerVersion
}

// ruleSteps lists the steps from the engine's rules to the peer's, one rule per
// step. All rules use the same sizes; they differ only in references and roots.
var ruleSteps = []struct {
	name string
	rules
}{
	{"the engine's references", rules{layout: true, records: true}},
	{"weak referents", rules{layout: true, records: true, referents: true}},
	{"frames as children of threads", rules{layout: true, records: true, referents: true, frames: true}},
	{"without signers and protection domains", rules{layout: true, referents: true, frames: true}},
	{"declared classes as roots", peerRules},
}

// tally holds the counts of a comparison.
type tally struct {
	// objects and classes are the numbers of objects and classes that agree
	// with the peer.
	objects, classes int
	// wide is the number of dumps of a JVM whose references take 8 bytes.
	wide int
	// explained counts the objects by the last step of ruleSteps that changes
	// their dominator or retained size; the first entry counts those that no
	// step changes.
	explained [5]int
}

func (c *tally) add(o tally) {
	c.objects += o.objects
	c.classes += o.classes
	c.wide += o.wide
	for i, n := range o.explained {
		c.explained[i] += n
	}
}

func (c *tally) String() string {
	text := fmt.Sprintf("%d objects and %d classes agree", c.objects, c.classes)
	for i, s := range ruleSteps {
		text += fmt.Sprintf("; %s: %d", s.name, c.explained[i])
	}
	return text
}

// comparePeer compares the results of the engine and of the peer, each with the
// tree that is computed under its own rules.
func comparePeer(t *testing.T, program, path string, dump []byte) (c tally) {
	p := readPlain(t, dump)
	checkEngine(t, p.tree(engineRules), load(t, dump, heap.Options{Model: heap.Leakgate}))
	var trees []*ruledTree
	for _, s := range ruleSteps {
		trees = append(trees, p.tree(s.rules))
	}
	if p.referenceSize() == 8 {
		c.wide = 1
	}
	answer := runPeer(t, program, path)
	last := trees[len(trees)-1]
	c.objects = checkObjects(t, last, answer)
	c.classes = checkClasses(t, last, answer)
	for o := range p.objects {
		if !slices.ContainsFunc(trees, func(t *ruledTree) bool { return t.dominators[o] != unreached }) {
			continue
		}
		step := len(trees) - 1
		for step > 0 && trees[step].dominators[o] == trees[step-1].dominators[o] &&
			trees[step].retained[o] == trees[step-1].retained[o] {
			step--
		}
		if trees[0].dominators[o] == last.dominators[o] && trees[0].retained[o] == last.retained[o] {
			step = 0
		}
		c.explained[step]++
	}
	t.Logf("%v", &c)
	return c
}

// peerAnswer is the result of hprof-analyzer for a dump.
type peerAnswer struct {
	// ids, sizes, retained and dominators describe the reachable objects, after
	// an object 0 that represents the boot class loader. A dominator is stored
	// as the number of the object plus 2; 1 means that there is none.
	ids, sizes, retained, dominators []int64
	rows                             []peerRow
}

type peerRow struct {
	Class     string `json:"pretty_class"`
	Loader    uint64 `json:"loader_id"`
	Instances int64  `json:"instances"`
	Shallow   int64  `json:"shallow"`
	Retained  int64  `json:"retained"`
}

// runPeer runs hprof-analyzer, which writes its report and the indices that
// Eclipse MAT needs to open a dump.
func runPeer(t *testing.T, program, path string) *peerAnswer {
	t.Helper()
	dir := t.TempDir()
	report := filepath.Join(dir, "report.json")
	if out, err := exec.CommandContext(t.Context(), program, path, report, "--mat", dir).CombinedOutput(); err != nil {
		t.Fatalf("run hprof-analyzer: %v: %s", err, out)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Overview struct {
			Histogram []peerRow `json:"histogram"`
		} `json:"overview"`
	}
	if err := json.Unmarshal(text, &parsed); err != nil {
		t.Fatal(err)
	}
	a := &peerAnswer{rows: parsed.Overview.Histogram}
	for name, to := range map[string]*[]int64{
		"idx": &a.ids, "a2s": &a.sizes, "o2ret": &a.retained, "domIn": &a.dominators,
	} {
		list, err := filepath.Glob(filepath.Join(dir, "*."+name+".index"))
		if err != nil || len(list) != 1 {
			t.Fatalf("%d files *.%s.index (%v)", len(list), name, err)
		}
		if *to, err = readIndex(list[0]); err != nil {
			t.Fatalf("read %s: %v", list[0], err)
		}
	}
	if n := len(a.ids); n != len(a.sizes) || n != len(a.retained) || n != len(a.dominators) {
		t.Fatalf("the indices have %d, %d, %d and %d objects", n, len(a.sizes), len(a.retained), len(a.dominators))
	}
	return a
}

// readIndex reads an index of Eclipse MAT (IndexReader.IntIndexReader,
// LongIndexReader). It consists of pages of numbers, the offset of each page
// and of the end of the last one, the number of entries of a full page, and the
// count of all numbers.
func readIndex(path string) (list []int64, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(data) < 16 {
		return nil, errors.New("too short")
	}
	end := len(data) - 8
	full, count := int(binary.BigEndian.Uint32(data[end:])), int(binary.BigEndian.Uint32(data[end+4:]))
	pages := (count + full - 1) / full
	starts := data[end-8*(pages+1):]
	for i := range pages {
		from, to := binary.BigEndian.Uint64(starts[8*i:]), binary.BigEndian.Uint64(starts[8*i+8:])
		list = append(list, unpack(data[from:to], min(full, count-i*full))...)
	}
	return list, nil
}

// unpack reads a page: the number of bits per entry, the number of zero bits
// that follow each entry, then the entries (ArrayIntCompressed,
// ArrayLongCompressed).
func unpack(page []byte, count int) (list []int64) {
	bits, zeros, data := int(page[0]), page[1], page[2:]
	at := 0
	for range count {
		value := uint64(0)
		for range bits {
			value = value<<1 | uint64(data[at>>3]>>(7-at&7)&1)
			at++
		}
		list = append(list, int64(value<<zeros))
	}
	return list
}

// checkObjects compares all objects that the peer reaches, and returns their
// count.
func checkObjects(t *testing.T, want *ruledTree, got *peerAnswer) int {
	t.Helper()
	if len(got.ids)-1 != len(want.order) {
		t.Errorf("the peer reaches %d objects, want %d", len(got.ids)-1, len(want.order))
	}
	wrong := 0
	for i, id := range got.ids[1:] {
		o, ok := want.numbers[hprof.ID(id)]
		if !ok {
			t.Fatalf("the peer reports unknown object %#x", id)
		}
		dominator := topLevel
		if d := got.dominators[i+1]; d > 1 {
			dominator = want.numbers[hprof.ID(got.ids[d-2])]
		}
		if size, retained := got.sizes[i+1], got.retained[i+1]; dominator != want.dominators[o] ||
			size != want.sizes[o] || retained != want.retained[o] {
			if wrong++; wrong <= 5 {
				t.Errorf("%#x (%s): dominator %d, %d bytes, retains %d; want %d, %d, %d", id,
					want.className(want.objects[o]),
					dominator, size, retained, want.dominators[o], want.sizes[o], want.retained[o])
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d objects differ", wrong, len(got.ids)-1)
	}
	return len(got.ids) - 1 - wrong
}

// checkClasses compares the rows of the histogram, and returns their count.
// Several classes may have the same name and loader, so their rows are compared
// as a group.
func checkClasses(t *testing.T, want *ruledTree, got *peerAnswer) int {
	t.Helper()
	wanted := want.byClass()
	wrong := 0
	for _, rows := range [][]peerRow{wanted, got.rows} {
		slices.SortFunc(rows, func(a, b peerRow) int {
			return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Loader, b.Loader),
				cmp.Compare(a.Retained, b.Retained), cmp.Compare(a.Instances, b.Instances))
		})
	}
	if len(wanted) != len(got.rows) {
		t.Fatalf("got %d rows, want %d", len(got.rows), len(wanted))
	}
	for i, w := range wanted {
		if w != got.rows[i] {
			if wrong++; wrong <= 5 {
				t.Errorf("row %+v, want %+v", got.rows[i], w)
			}
		}
	}
	return len(wanted) - wrong
}

// byClass computes the rows of MAT's histogram: one row for each class of each
// loader. An object below another instance of its class, or below its class
// object, is counted as part of that object; a class object is counted as part
// of its class.
func (t *ruledTree) byClass() (list []peerRow) {
	above, retained, instances, shallow := map[rowKey]int{}, map[rowKey]int64{}, map[rowKey]int64{}, map[rowKey]int64{}
	for _, o := range t.objects {
		retained[t.keyOf(o)] = 0
		if o.kind == hprof.SubClassDump {
			retained[t.classKey(o.id)] = 0
		}
	}
	t.walk(func(o int32) {
		k := t.keyOf(t.objects[o])
		instances[k]++
		shallow[k] += t.sizes[o]
		if above[k] == 0 {
			retained[k] += t.retained[o]
		}
		above[k]++
		if t.objects[o].kind == hprof.SubClassDump {
			k = t.classKey(t.objects[o].id)
			retained[k] += t.retained[o]
			above[k]++
		}
	}, func(o int32) {
		above[t.keyOf(t.objects[o])]--
		if t.objects[o].kind == hprof.SubClassDump {
			above[t.classKey(t.objects[o].id)]--
		}
	})
	rows := map[rowKey]*peerRow{}
	for k := range retained {
		// The objects for int.class and similar types are instances of
		// java.lang.Class in the dump, not classes. These objects share a row
		// with the classes, but are ignored as ancestors.
		folded := t.fold(k)
		if rows[folded] == nil {
			rows[folded] = t.newRow(folded)
		}
		r := rows[folded]
		r.Instances += instances[k]
		r.Shallow += shallow[k]
		r.Retained += retained[k]
	}
	for _, r := range rows {
		list = append(list, *r)
	}
	return list
}

// rowKey identifies a row by its class, or by its name if all classes with this
// name share the row.
type rowKey struct {
	class hprof.ID
	name  string
}

// keyOf returns the row key of an object.
func (p *plain) keyOf(o plainObject) rowKey {
	if o.kind == hprof.SubInstance || o.kind == hprof.SubObjectArray {
		return rowKey{class: o.class}
	}
	return rowKey{name: p.className(o)}
}

// classKey returns the row key of the instances of a class.
func (p *plain) classKey(class hprof.ID) rowKey { return p.fold(rowKey{class: class}) }

// fold merges the rows of all classes named java.lang.Class, and the rows of
// all arrays of a primitive type. The peer recognizes these classes by the
// names that HotSpot writes. The hprof agent writes byte[] instead, which has a
// separate row without objects.
func (p *plain) fold(k rowKey) rowKey {
	if p.primitiveArray(k.class) || p.written[k.class] == "java/lang/Class" {
		return rowKey{name: p.names[k.class]}
	}
	return k
}

// newRow returns a row without objects. MAT creates an object for the boot
// class loader, which is not in any dump and references nothing. The peer does
// the same if the name of the loader's class is written as HotSpot writes it.
func (t *ruledTree) newRow(k rowKey) *peerRow {
	r := &peerRow{Class: cmp.Or(k.name, t.names[k.class])}
	if c := t.classes[k.class]; c != nil {
		r.Loader = uint64(c.Loader)
	}
	if t.written[k.class] == "java/lang/ClassLoader" && r.Loader == 0 {
		r.Instances, r.Shallow = 1, align(t.instanceSize(k.class, t.referenceSize()), 8)
	}
	return r
}
