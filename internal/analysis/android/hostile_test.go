package android_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// hostileClasses are all classes that the topics read: name, superclass,
// instance fields, static fields. In the fields, o stands for a reference, i
// for an int, l for a long and b for a byte. A field may be followed by its
// usual target: the index of a class in this list, or one of hostileArrays.
var hostileClasses = []struct{ name, super, fields, statics string }{
	{"java.lang.Object", "", "", ""},
	{"java.lang.String", "java.lang.Object", "o:value=chars i:offset i:count b:coder", ""},
	{"java.lang.Enum", "java.lang.Object", "i:ordinal o:name", ""},
	{"java.lang.Thread", "java.lang.Object", "o:name=1 l:id l:tid b:daemon i:priority o:holder=4", ""},
	{"java.lang.Thread$FieldHolder", "java.lang.Object", "b:daemon i:priority", ""},
	{"java.lang.ref.Reference", "java.lang.Object", "o:referent=22 o:queue=6", ""},
	{"java.lang.ref.ReferenceQueue", "java.lang.Object", "", "o:ENQUEUED=6"},
	{"java.lang.ref.FinalizerReference", "java.lang.ref.Reference", "o:zombie o:next", "o:head"},
	{"java.lang.ref.Finalizer", "java.lang.ref.Reference", "o:next", "o:unfinalized"},
	{"java.io.FileDescriptor", "java.lang.Object", "i:descriptor", ""},
	{"java.net.Socket", "java.lang.Object", "b:closed", ""},
	{"android.os.ParcelFileDescriptor", "java.lang.Object", "b:mClosed o:mFd=9", ""},
	{"android.graphics.Bitmap", "java.lang.Object",
		"i:mWidth i:mHeight o:mBuffer=bytes b:mRecycled l:mNativePtr l:mId l:mSourceId", "o:dumpData=13"},
	{"android.graphics.Bitmap$DumpData", "java.lang.Object", "i:count o:natives=longs o:buffers=pictures", ""},
	{"android.os.Build", "java.lang.Object", "", "o:MANUFACTURER=1 o:MODEL=1"},
	{"android.os.Build$VERSION", "java.lang.Object", "", "i:SDK_INT o:RELEASE=1"},
	{"android.app.ActivityThread", "java.lang.Object", "o:mBoundApplication=17 o:mServices=20",
		"o:sCurrentActivityThread=16"},
	{"android.app.ActivityThread$AppBindData", "java.lang.Object", "o:appInfo=19 o:processName=1", ""},
	{"android.content.pm.PackageItemInfo", "java.lang.Object", "o:packageName=1", ""},
	{"android.content.pm.ApplicationInfo", "android.content.pm.PackageItemInfo",
		"o:processName=1 i:flags i:targetSdkVersion", ""},
	{"android.util.ArrayMap", "java.lang.Object", "o:mArray=refs i:mSize", ""},
	{"android.util.DisplayMetrics", "java.lang.Object", "i:widthPixels i:heightPixels", ""},
	{"android.app.Activity", "java.lang.Object", "b:mDestroyed b:mFinished", ""},
	{"com.shop.Main\x1b[31m", "android.app.Activity", "o:x", "o:sHeld"},
	{"android.app.Service", "java.lang.Object", "o:y", ""},
	{"android.app.Fragment", "java.lang.Object", "o:mFragmentManager b:mCalled", ""},
	{"androidx.fragment.app.Fragment", "java.lang.Object",
		"o:mFragmentManager b:mCalled o:mLifecycleRegistry=27 o:mMaxState", ""},
	{"androidx.lifecycle.LifecycleRegistry", "java.lang.Object", "o:state=28", ""},
	{"androidx.lifecycle.Lifecycle$State", "java.lang.Enum", "", ""},
	{"android.database.sqlite.SQLiteDatabase", "java.lang.Object",
		"o:mConnectionPoolLocked=20 o:mConfigurationLocked=30", ""},
	{"android.database.sqlite.SQLiteDatabaseConfiguration", "java.lang.Object", "o:path=1", ""},
	{"leakcanary.internal.InternalLeakCanary", "java.lang.Object", "", "o:version=1"},
}

// bytesOf are bytes chosen by a fuzzer, followed by zeros.
type bytesOf []byte

func (b *bytesOf) byte() byte {
	if len(*b) == 0 {
		return 0
	}
	c := (*b)[0]
	*b = (*b)[1:]
	return c
}

func (b *bytesOf) number(n int) (v uint64) {
	for range n {
		v = v<<8 | uint64(b.byte())
	}
	return v
}

const hostileFirst = 0x8000

// The objects of a hostile dump: first hostileEach objects of each class, then
// hostileEach arrays of each kind, then other objects, depending on the bytes.
const hostileEach = 3

var hostileArrays = []string{"chars", "bytes", "longs", "refs", "pictures"}

// ref returns the value of a field: usually an object of the expected class,
// otherwise any object, null, or a missing object.
func (b *bytesOf) ref(kind string) uint64 {
	c, n := b.byte(), uint64(b.byte())
	switch {
	case c < 16:
		return 0
	case c < 24:
		return b.number(4)
	case c < 48 || kind == "":
		return hostileFirst + 8*n
	}
	i := len(hostileClasses) + slices.Index(hostileArrays, kind)
	if class, err := strconv.Atoi(kind); err == nil {
		i = class
	}
	return hostileFirst + 8*(uint64(i)*hostileEach+n%hostileEach)
}

// split returns the name of a field and its usual target.
func split(field string) (name, kind string) {
	name, kind, _ = strings.Cut(field[2:], "=")
	return name, kind
}

// values encodes values for the given fields, chosen from the bytes. Most
// numbers are small, because they find more errors than large ones.
func (b *bytesOf) values(fields string) (body []byte) {
	number := func(size int) uint64 {
		if n := b.number(1); n < 220 {
			return n % 6
		}
		return b.number(size)
	}
	for f := range strings.FieldsSeq(fields) {
		switch f[0] {
		case 'o':
			_, kind := split(f)
			body = binary.BigEndian.AppendUint32(body, uint32(b.ref(kind)))
		case 'i':
			body = binary.BigEndian.AppendUint32(body, uint32(number(4)))
		case 'l':
			body = binary.BigEndian.AppendUint64(body, number(8))
		default:
			body = append(body, b.byte()%2)
		}
	}
	return body
}

func hostileType(c byte) hprof.Type {
	return map[byte]hprof.Type{'o': hprof.Object, 'i': hprof.Int, 'l': hprof.Long}[c]
}

// hostile writes a dump of objects whose contents are determined by the bytes.
func hostile(tb testing.TB, data []byte) (dump []byte, counts map[string]int64) {
	tb.Helper()
	b := bytesOf(data)
	w := &world{names: map[string]hprof.ID{}, classes: map[string]hprof.ID{}, next: 0x1000}
	w.w = hproftest.NewWriter(&w.buf, hprof.Header{Format: hprof.Format103, IDSize: 4})
	for _, c := range hostileClasses {
		var fields []hprof.Field
		for f := range strings.FieldsSeq(c.fields) {
			t := hostileType(f[0])
			if t == 0 {
				t = hprof.Boolean
			}
			name, _ := split(f)
			fields = append(fields, w.field(name, t))
		}
		var statics []hprof.Static
		for f := range strings.FieldsSeq(c.statics) {
			name, kind := split(f)
			s := hprof.Static{Name: w.name(name), Type: hostileType(f[0])}
			if f[0] == 'i' {
				s.Value = b.number(1)
			} else {
				s.Value = b.ref(kind)
			}
			statics = append(statics, s)
		}
		w.class(c.name, c.super, fields, statics...)
	}
	h := hostileDump{w, &b, map[string]int64{}}
	w.next = hostileFirst - 8
	for class := range hostileClasses {
		for range hostileEach {
			h.instance(class, false)
		}
	}
	for _, kind := range hostileArrays {
		for range hostileEach {
			h.array(kind)
		}
	}
	for range 100 {
		if len(b) == 0 {
			break
		}
		switch kind := b.byte(); {
		case kind < 160:
			h.instance(int(kind)%len(hostileClasses), kind > 150)
		case kind < 220:
			h.array(hostileArrays[int(kind)%len(hostileArrays)])
		case kind < 230:
			w.w.PrimitiveArrayNoData(w.id(), 0, hprof.Char, uint32(b.number(4)))
		default:
			kinds := []hprof.SubTag{
				hprof.SubRootThreadObject, hprof.SubRootJavaFrame, hprof.SubRootJNILocal, hprof.SubRootJNIGlobal,
			}
			w.w.Root(hprof.Root{
				Kind: kinds[kind%4], Object: hprof.ID(b.ref("3")), Thread: uint32(b.byte() % 4),
				Trace: uint32(b.byte()),
			})
		}
	}
	return w.dump(tb), h.counts
}

// hostileDump is a dump that is being written.
type hostileDump struct {
	*world
	b      *bytesOf
	counts map[string]int64
}

func (h hostileDump) instance(class int, short bool) {
	c := hostileClasses[class]
	body := h.b.values(c.fields)
	for super := c.super; super != ""; {
		for _, s := range hostileClasses {
			if s.name == super {
				body = append(body, h.b.values(s.fields)...)
				super = s.super
				break
			}
		}
	}
	if short {
		body = body[:len(body)/2]
	}
	h.world.instance(c.name, body)
	h.counts[c.name]++
}

func (h hostileDump) array(kind string) {
	n := int(h.b.byte() % 8)
	var content []byte
	switch kind {
	case "chars":
		for range n {
			content = append(content, h.b.byte()%2, h.b.byte())
		}
		h.w.PrimitiveArray(h.id(), 0, hprof.Char, content)
	case "longs":
		for range n {
			content = binary.BigEndian.AppendUint64(content, uint64(h.b.byte()%4))
		}
		h.w.PrimitiveArray(h.id(), 0, hprof.Long, content)
	case "bytes":
		if n < 4 {
			// The header of the PNG declares a size of at most 3x3 pixels.
			content = append(content, "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00"...)
			content = append(content, byte(n), 0, 0, 0, h.b.byte()%4)
		}
		for range n {
			content = append(content, h.b.byte()%4)
		}
		h.w.PrimitiveArray(h.id(), 0, hprof.Byte, content)
	default:
		elements := make([]hprof.ID, n)
		for i := range elements {
			elements[i] = hprof.ID(h.b.ref(map[string]string{"refs": "24", "pictures": "bytes"}[kind]))
		}
		h.w.ObjectArray(h.id(), 0, h.classes["java.lang.Object"], elements)
	}
}

// FuzzHostile checks that, for any objects in a dump, the results are
// consistent and printable, and do not depend on the number of cores.
func FuzzHostile(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 40 {
		data := make([]byte, 200+r.IntN(3000))
		for i := range data {
			data[i] = byte(r.IntN(256))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dump, counts := hostile(t, data)
		var answers []string
		for _, workers := range []int{1, 3} {
			file, err := hprof.Open(context.Background(), bytes.NewReader(dump), int64(len(dump)))
			if err != nil {
				t.Fatal(err)
			}
			g, err := heap.Load(context.Background(), file, heap.Options{Snapshot: -1, Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			s := read(t, g, android.Options{Top: 5})
			answers = append(answers, text(t, s))
			checkHostile(t, s, counts)
			g.Close()
		}
		if answers[0] != answers[1] {
			t.Errorf("with one worker: %s\nwith three workers: %s", answers[0], answers[1])
		}
		checkTexts(t, answers[0])
		checkStrings(t, dump)
	})
}

// checkHostile checks the properties that must hold for any dump.
func checkHostile(t *testing.T, s *android.Survey, counts map[string]int64) {
	t.Helper()
	b, c := s.Bitmaps, s.Components
	for name, pair := range map[string][2]int64{
		"bitmaps":    {b.Count, counts["android.graphics.Bitmap"]},
		"strings":    {s.Strings.Count, counts["java.lang.String"]},
		"activities": {c.Activities.Count, counts["android.app.Activity"] + counts["com.shop.Main\x1b[31m"]},
		"services":   {c.Services.Count, counts["android.app.Service"]},
		"fragments":  {c.Fragments.Count, counts["android.app.Fragment"] + counts["androidx.fragment.app.Fragment"]},
		"databases":  {c.Databases.Count, counts["android.database.sqlite.SQLiteDatabase"]},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%d %s, want %d", pair[0], name, pair[1])
		}
	}
	states := int64(0)
	for _, n := range c.Activities.States {
		states += n
	}
	if states != c.Activities.Count {
		t.Errorf("%s", text(t, c.Activities))
	}
	for _, n := range []int64{
		b.Bytes, b.EstimatedBytes, b.WastedBytes, b.UnreachableBytes, b.LargerBytes, b.DumpBytes, b.Omitted,
		b.DuplicatesOmitted, s.Strings.WastedBytes, s.Strings.Omitted,
		s.Threads.Idle, s.Threads.Omitted, s.Finalizers.PendingBytes, c.Activities.Omitted, c.Databases.Omitted,
		s.Metadata.SDK,
	} {
		if n < 0 {
			t.Errorf("negative number in %s", text(t, s))
		}
	}
	if b.EstimatedBytes > b.Bytes || b.UnreachableBytes > b.Bytes || b.Unreachable > b.Count ||
		s.Strings.Distinct+s.Strings.WithoutText > s.Strings.Count ||
		s.Finalizers.Pending > s.Finalizers.Registered || s.Finalizers.Queued > s.Finalizers.Pending ||
		s.Exhaustion.Files.Distinct > s.Exhaustion.Files.Descriptors {
		t.Errorf("inconsistent numbers: %s", text(t, s))
	}
	for _, n := range []int{
		len(b.List), len(b.Duplicates), len(s.Strings.Repeated), len(s.Strings.Wasteful), len(c.Activities.List),
		len(c.Fragments.List), len(c.Databases.List), len(s.Finalizers.Classes), len(s.Exhaustion.Arrays),
	} {
		if n > 5 {
			t.Errorf("got a list of %d entries, want at most 5", n)
		}
	}
	if b.Omitted+int64(len(b.List)) != b.Count || c.Fragments.Omitted+
		int64(len(c.Fragments.List)) != c.Fragments.Count {
		t.Errorf("wrong number of omitted entries: %s", text(t, s))
	}
}

// checkTexts checks that all strings in the output are printable.
func checkTexts(t *testing.T, json string) {
	t.Helper()
	if !utf8.ValidString(json) {
		t.Error("invalid UTF-8")
	}
	for _, r := range json {
		if !unicode.IsPrint(r) {
			t.Errorf("%U in %s", r, json)
			return
		}
	}
	// JSON escapes other harmful characters.
	if strings.Contains(json, `\u00`) && strings.Contains(json, `\u001b`) {
		t.Error("the output contains an escape sequence")
	}
}

// checkStrings compares the counts of strings with those of an implementation
// that uses maps.
func checkStrings(t *testing.T, dump []byte) {
	t.Helper()
	plain, err := hproftest.ReadGraph(dump)
	if err != nil {
		return // the dump has an instance that is too short
	}
	distinct, without := map[string]bool{}, int64(0)
	for _, n := range plain.Nodes {
		if n.Kind != hprof.SubInstance || n.Class != "java.lang.String" {
			continue
		}
		s, ok := hostileText(plain, n)
		if ok {
			distinct[s] = true
		} else {
			without++
		}
	}
	got, err := android.ReadStrings(context.Background(), load(t, dump), android.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Compared && (got.Distinct != int64(len(distinct)) || got.WithoutText != without) {
		t.Errorf("got %d distinct strings and %d without text, want %d and %d", got.Distinct, got.WithoutText,
			len(distinct), without)
	}
}

// hostileText returns the characters of a String, prefixed with the type of its
// array, and whether they can be read, for any offset and count.
func hostileText(g *hproftest.Graph, n *hproftest.Node) (string, bool) {
	get := func(field string) int64 { return int64(int32(n.Fields["java.lang.String."+field])) }
	value, offset, count := hprof.ID(n.Fields["java.lang.String.value"]), get("offset"), get("count")
	v := g.Nodes[value]
	switch {
	case offset < 0 || count < 0:
		return "", false
	case v == nil:
		return "", value != 0 && count == 0
	case count == 0:
		return "", true
	case v.Kind != hprof.SubPrimitiveArray || v.Type != hprof.Byte && v.Type != hprof.Char:
		return "", false
	}
	size := int64(v.Type.Size(4))
	elements := int64(len(v.Data)) / size
	if offset > elements {
		return "", false
	}
	s := string(v.Data[offset*size : min(offset+count, elements)*size])
	if s == "" {
		return "", true
	}
	return v.Type.String() + s, true
}
