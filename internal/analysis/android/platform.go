package android

import (
	"slices"
	"strings"
)

// platforms are packages whose code an app's developer does not write.
var platforms = []string{"java.", "javax.", "jdk.", "sun.", "android.", "androidx.", "com.android.", "kotlin.", "kotlinx.", "dalvik.", "libcore."}

// IsPlatform reports whether a class is of the runtime, of Android or of its libraries.
func IsPlatform(class string) bool {
	return slices.ContainsFunc(platforms, func(p string) bool { return strings.HasPrefix(class, p) })
}
