package dumpsys

import (
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/known"
)

// packageText is shortened output for an updated system app, as Android 14
// prints it.
const packageText = `Activity Resolver Table:
  Schemes:
      package:
        1a2b3c4 com.shop/.Main filter 5d6e7f
Packages:
  Package [com.shop.other] (aaaaaaa):
    versionCode=7 minSdk=21 targetSdk=34
  Package [com.shop] (5b3c2d1):
    appId=10123
    pkg=Package{8a9b0c1 com.shop}
    codePath=/data/app/~~Qx9w==/com.shop-8Zk2==
    versionCode=42 minSdk=26 targetSdk=34
    versionName=4.2.0-debug
    flags=[ DEBUGGABLE HAS_CODE ALLOW_CLEAR_USER_DATA ]
    privateFlags=[ PRIVATE_FLAG_ACTIVITIES_RESIZE_MODE_RESIZEABLE ]

Hidden system packages:
  Package [com.shop] (7777777):
    versionCode=1 minSdk=26 targetSdk=30
    versionName=1.0
    flags=[ SYSTEM HAS_CODE ]
`

func TestParsePackage(t *testing.T) {
	whole := Package{"4.2.0-debug", known.Of(42), Yes, "/data/app/~~Qx9w==/com.shop-8Zk2=="}
	for name, c := range map[string]struct {
		text, of string
		want     Package
		ok       bool
	}{
		"Android 14":    {packageText, "com.shop", whole, true},
		"CRLF":          {strings.ReplaceAll(packageText, "\n", "\r\n"), "com.shop", whole, true},
		"other package": {packageText, "com.shop.other", Package{VersionCode: known.Of(7)}, true},
		"none":          {"Unable to find package: com.x\n", "com.x", Package{}, false},
		"name prefix":   {packageText, "com.sho", Package{}, false},
		"no version": {
			"  Package [com.x] (1):\n    versionName=null\n    versionCode=x\n    flags=[ HAS_CODE ]\n", "com.x",
			Package{Debuggable: No}, true,
		},
	} {
		if got, ok := ParsePackage([]byte(c.text), c.of); got != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

func FuzzParsePackage(f *testing.F) {
	f.Add([]byte(packageText), "com.shop")
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		p, ok := ParsePackage(text, name)
		if !ok && p != (Package{}) {
			t.Errorf("%+v without a package", p)
		}
		if len(p.VersionName) > maxVersionName || p.VersionCode.Known && p.VersionCode.N < 0 {
			t.Errorf("%+v", p)
		}
		if p.CodePath != "" &&
			(p.CodePath[0] != '/' || len(p.CodePath) > maxCodePath ||
				!strings.Contains(string(text), "codePath="+p.CodePath)) {
			t.Errorf("%q", p.CodePath)
		}
		if p.VersionName != "" && !strings.Contains(string(text), "versionName="+p.VersionName) {
			t.Errorf("the input does not contain the version name %q", p.VersionName)
		}
	})
}
