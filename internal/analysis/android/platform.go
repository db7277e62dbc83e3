package android

import (
	"slices"
	"strings"
)

// platforms lists packages whose code was not written by the developer of the
// app. If a vendor's apps are in packages with the same prefix as its libraries
// (com.google.android.apps, com.android.dialer, com.squareup.cash), only the
// packages of the libraries are listed.
var platforms = []string{
	"java.", "javax.", "jdk.", "sun.", "com.sun.", "android.", "androidx.", "kotlin.", "kotlinx.", "dalvik.",
	"libcore.",
	"com.android.billingclient.", "com.android.internal.", "com.android.okhttp.", "com.android.org.",
	"com.android.volley.", "com.android.webview.",
	"com.google.android.datatransport.", "com.google.android.exoplayer2.", "com.google.android.gms.",
	"com.google.android.material.", "com.google.android.play.",
	"com.google.common.", "com.google.firebase.", "com.google.gson.", "com.google.protobuf.",
	"com.squareup.coordinators.", "com.squareup.moshi.", "com.squareup.okhttp.", "com.squareup.otto.",
	"com.squareup.picasso.", "com.squareup.sqldelight.", "com.squareup.wire.",
	"com.bumptech.glide.", "com.github.benmanes.caffeine.", "dagger.", "io.reactivex.", "okhttp3.", "okio.",
	"org.greenrobot.", "org.reactivestreams.", "retrofit2.", "rx.", "scala.",
}

// IsContainer reports whether objects of a class only hold what other code
// stores in them: a class for which IsPlatform returns true, or an array.
func IsContainer(class string) bool { return IsPlatform(class) || strings.HasSuffix(class, "[]") }

// IsPlatform reports whether a class belongs to the runtime, to Android or to a
// common library.
func IsPlatform(class string) bool {
	return slices.ContainsFunc(platforms, func(p string) bool { return strings.HasPrefix(class, p) })
}
