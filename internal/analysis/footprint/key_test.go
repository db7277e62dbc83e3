package footprint

import (
	"strings"
	"testing"
)

// TestWithoutNumbers checks that names of the same thing in two runs become
// equal, and that deliberately different names stay different.
func TestWithoutNumbers(t *testing.T) {
	t.Parallel()
	same := [][]string{
		{"pool-3-thread-*", "pool-14-thread-*", "pool-*-thread-*", "pool-1-thread-7"},
		{"upload-*", "upload-12", "upload 3", "upload"},
		{"binder:1234_*", "binder:77_3", "binder:*_*"},
		{"Cart$$Lambda$14/0x00007f31c0001000", "Cart$$Lambda/0x00000008000c1a00", "Cart$$Lambda$7", "Cart$$Lambda"},
		{"com.sun.proxy.$Proxy12", "com.sun.proxy.$Proxy3"},
		{"HiddenClass/0x00007f31c0001000", "HiddenClass/0x1"},
		{"Worker@1a2b3c4d", "Worker@deadbee1", "Worker"},
		{"SurfaceView[com.shop/.Main]#12(BLAST Consumer)12", "SurfaceView[com.shop/.Main]#*(BLAST Consumer)*"},
		{"ActivityRecord{1a2b3c4 u0 com.shop/.Main t12}#34", "ActivityRecord{a1b2c3d u10 com.shop/.Main t7}#*"},
	}
	met := map[string]string{}
	for _, names := range same {
		want := WithoutNumbers(names[0])
		for _, name := range names {
			got := WithoutNumbers(name)
			if got != want || strings.ContainsAny(got, "0123456789*") || WithoutNumbers(got) != got {
				t.Errorf("%q becomes %q, want %q", name, got, want)
			}
		}
		if other := met[want]; other != "" {
			t.Errorf("%q and %q both become %q", other, names[0], want)
		}
		met[want] = names[0]
	}
	for _, name := range []string{
		"main", "RenderThread", "facade", "Cart$Added", "com.shop.feed/.Decaf", "decade-effaced",
	} {
		if got := WithoutNumbers(name); got != name {
			t.Errorf("%q becomes %q, want no change", name, got)
		}
	}
}

func TestKeyOf(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for _, kind := range []string{"threads", "graphics", "library"} {
		for _, name := range []string{"a", "b", "threads", ""} {
			key := KeyOf(kind, name)
			if len(key) != 40 || strings.Trim(key, "0123456789abcdef") != "" || keys[key] || key != KeyOf(kind, name) {
				t.Errorf("%s %q: %s", kind, name, key)
			}
			keys[key] = true
		}
	}
}
