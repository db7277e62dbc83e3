package dumpsys

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/known"
)

// Package is the output of dumpsys package about an installed app.
type Package struct {
	// VersionName is text chosen by the app's author, at most maxVersionName
	// bytes long; "" if there is none.
	VersionName string
	VersionCode known.Int
	Debuggable  Answer
	// CodePath is the directory that contains the app's APKs or, before Android
	// 5, the path of the APK itself; it is "" if unknown.
	CodePath string
}

// maxVersionName and maxCodePath are the maximum lengths of a version name and
// of a path, in bytes.
const (
	maxVersionName = 200
	maxCodePath    = 4096
)

// ParsePackage parses the block of an app in the output of dumpsys package NAME
// (com.android.server.pm.Settings, dumpPackageLPr, AOSP frameworks/base).
// versionCode and versionName are on separate lines, and flags=[ ... ] contains
// DEBUGGABLE. The first block with the name is used: the hidden system packages
// that an update has replaced come later. ParsePackage returns false if there
// is no such block.
func ParsePackage(text []byte, name string) (p Package, ok bool) {
	head := []byte("Package [" + name + "]")
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		switch {
		case bytes.HasPrefix(line, []byte("Package [")) && ok:
			return p, true
		case bytes.HasPrefix(line, head):
			ok = true
		case !ok:
		case bytes.HasPrefix(line, []byte("versionCode=")):
			// "versionCode=42 minSdk=21 targetSdk=34"
			code, _, _ := strings.Cut(strings.TrimPrefix(string(line), "versionCode="), " ")
			if n, err := strconv.ParseInt(code, 10, 64); err == nil && n >= 0 {
				p.VersionCode = known.Of(n)
			}
		case bytes.HasPrefix(line, []byte("versionName=")):
			version := strings.TrimPrefix(string(line), "versionName=")
			if version != "null" {
				p.VersionName = version[:min(len(version), maxVersionName)]
			}
		case bytes.HasPrefix(line, []byte("codePath=/")) && len(line) < maxCodePath:
			p.CodePath = strings.TrimPrefix(string(line), "codePath=")
		case bytes.HasPrefix(line, []byte("flags=[")):
			p.Debuggable = No
			if bytes.Contains(line, []byte(" DEBUGGABLE ")) {
				p.Debuggable = Yes
			}
		}
	}
	return p, ok
}
