package android

import (
	"slices"
	"strings"
)

// platforms are packages whose code an app's developer does not write.
var platforms = []string{
	"java.", "javax.", "jdk.", "sun.", "android.", "androidx.", "com.android.", "kotlin.", "kotlinx.", "dalvik.", "libcore.",
	"io.reactivex.", "rx.", "com.google.common.", "com.google.android.", "com.google.firebase.", "com.bumptech.glide.", "com.squareup.",
	"com.github.benmanes.caffeine.", "dagger.", "okhttp3.", "okio.", "org.greenrobot.", "org.reactivestreams.", "retrofit2.", "scala.",
}

// IsPlumbing reports whether objects of a class hold what others have put there: a class of
// IsPlatform, or an array.
func IsPlumbing(class string) bool { return IsPlatform(class) || strings.HasSuffix(class, "[]") }

// IsPlatform reports whether a class is of the runtime, of Android or of a common library.
func IsPlatform(class string) bool {
	return slices.ContainsFunc(platforms, func(p string) bool { return strings.HasPrefix(class, p) })
}
