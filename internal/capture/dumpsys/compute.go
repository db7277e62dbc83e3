package dumpsys

import "github.com/leakgate/leakgate/internal/known"

// The rows whose private pages count as code (Debug.MemoryInfo.getSummaryCode,
// which on Android 10 and later also includes the JIT's caches).
var codeRows = []string{".so mmap", ".jar mmap", ".apk mmap", ".ttf mmap", ".dex mmap", ".oat mmap"}

// compute derives the dimensions of the App Summary from the rows, as Android
// does. It is used for releases that print no App Summary. Except for the two
// heaps, a missing row counts as zeros, because Android omits rows of zeros. If
// the table has no Private Clean column, as on Android 4.3, only the two heaps
// are computed.
func (b *Block) compute(c *columns) {
	b.Computed = true
	if !c.has(privateClean) {
		b.JavaHeap, b.NativeHeap = b.privateDirty("Dalvik"), b.privateDirty("Native")
		return
	}
	b.JavaHeap = plus(b.privateDirty("Dalvik Heap"), b.zeroed(".art mmap", b.private))
	b.NativeHeap = b.privateDirty("Native Heap")
	b.Stack = b.zeroed("Stack", b.privateDirty)
	b.Code = known.Of(0)
	for _, name := range codeRows {
		b.Code = plus(b.Code, b.zeroed(name, b.private))
	}
	b.Graphics = known.Of(0)
	for _, name := range []string{"Gfx dev", "EGL mtrack", "GL mtrack", "Graphics", "GL"} {
		b.Graphics = plus(b.Graphics, b.zeroed(name, b.private))
	}
	all := b.private("TOTAL")
	named := plus(plus(plus(plus(b.JavaHeap, b.NativeHeap), b.Code), b.Stack), b.Graphics)
	if all.Known && named.Known {
		b.PrivateOther = known.Of(all.N - named.N)
	}
	if all.Known && b.TotalPss.Known {
		b.System = known.Of(b.TotalPss.N - all.N)
	}
}

func (b *Block) privateDirty(name string) known.Int {
	r, _ := b.Row(name)
	return r.PrivateDirty
}

func (b *Block) private(name string) known.Int {
	r, _ := b.Row(name)
	return plus(r.PrivateDirty, r.PrivateClean)
}

func (b *Block) zeroed(name string, get func(string) known.Int) known.Int {
	if _, ok := b.Row(name); !ok {
		return known.Of(0)
	}
	return get(name)
}

func plus(x, y known.Int) known.Int {
	if !x.Known || !y.Known {
		return known.Int{}
	}
	return known.Of(x.N + y.N)
}
