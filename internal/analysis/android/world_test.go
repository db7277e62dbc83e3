package android_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// world is a dump of a few classes, in which the test chooses the bytes of the
// objects.
type world struct {
	buf     bytes.Buffer
	w       *hproftest.Writer
	names   map[string]hprof.ID
	classes map[string]hprof.ID
	next    hprof.ID
}

func newWorld() *world {
	w := &world{names: map[string]hprof.ID{}, classes: map[string]hprof.ID{}, next: 0x1000}
	w.w = hproftest.NewWriter(&w.buf, hprof.Header{Format: hprof.Format103, IDSize: 4})
	w.class("java.lang.Object", "", nil)
	w.class("java.lang.String", "java.lang.Object",
		[]hprof.Field{w.field("value", hprof.Object), w.field("offset", hprof.Int), w.field("count", hprof.Int)})
	return w
}

func (w *world) name(s string) hprof.ID {
	id, ok := w.names[s]
	if !ok {
		id = hprof.ID(0x400000 + len(w.names))
		w.names[s] = id
		w.w.String(id, s)
	}
	return id
}

func (w *world) field(name string, t hprof.Type) hprof.Field {
	return hprof.Field{Name: w.name(name), Type: t}
}

func (w *world) id() hprof.ID {
	w.next += 8
	return w.next
}

func (w *world) class(name, super string, fields []hprof.Field, statics ...hprof.Static) hprof.ID {
	id := w.id()
	w.classes[name] = id
	w.w.LoadClass(hprof.LoadedClass{Serial: uint32(len(w.classes)), Class: id, Name: w.name(name)})
	w.w.Class(&hprof.Class{ID: id, Super: w.classes[super], Fields: fields, Statics: statics, InstanceSize: 16})
	w.w.Root(hprof.Root{Kind: hprof.SubRootStickyClass, Object: id})
	return id
}

func (w *world) chars(units []uint16) hprof.ID {
	var b []byte
	for _, u := range units {
		b = binary.BigEndian.AppendUint16(b, u)
	}
	id := w.id()
	w.w.PrimitiveArray(id, 0, hprof.Char, b)
	return id
}

func (w *world) dalvikString(value hprof.ID, offset, count int32) hprof.ID {
	b := binary.BigEndian.AppendUint32(nil, uint32(value))
	b = binary.BigEndian.AppendUint32(b, uint32(offset))
	b = binary.BigEndian.AppendUint32(b, uint32(count))
	return w.instance("java.lang.String", b)
}

func (w *world) instance(class string, body []byte) hprof.ID {
	id := w.id()
	w.w.Instance(id, 0, w.classes[class], body)
	return id
}

func (w *world) dump(tb testing.TB) []byte {
	tb.Helper()
	w.w.EndHeap()
	if err := w.w.Close(); err != nil {
		tb.Fatal(err)
	}
	return w.buf.Bytes()
}

// bytes encodes the values of fields. Each letter of kinds is the type of one
// value: i for int, l for long, b for byte, o for object.
func (w *world) bytes(kinds string, values ...uint64) (b []byte) {
	for i, k := range kinds {
		switch k {
		case 'b':
			b = append(b, byte(values[i]))
		case 'l':
			b = binary.BigEndian.AppendUint64(b, values[i])
		default:
			b = binary.BigEndian.AppendUint32(b, uint32(values[i]))
		}
	}
	return b
}
