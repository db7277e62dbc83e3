package trace_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// stable are names of classes as compilers and runtimes write them, and what is the same
// from build to build.
var stable = []struct{ name, want string }{
	// javac's lambdas at run time: JDK 8 to 14, hidden classes since 15, without a number
	// since 21; as class names of a dump and with its slashes made dots.
	{"com.shop.Foo$$Lambda$14", "com.shop.Foo$$Lambda"},
	{"com.shop.Foo$$Lambda$14.1234567890", "com.shop.Foo$$Lambda"},
	{"com.shop.Foo$$Lambda$14+0x00007f0123456789", "com.shop.Foo$$Lambda"},
	{"com.shop.Foo$$Lambda$14.0x0000000800c01000", "com.shop.Foo$$Lambda"},
	// No class is called so, but a damaged dump may say it.
	{"com.shop.Foo$$Lambda$14[].7", "com.shop.Foo$$Lambda[].7"},
	{"com.shop.Foo$$Lambda/0x0000000800c01000", "com.shop.Foo$$Lambda"},
	{"com.shop.Foo$$Lambda+0x0000000800c01000", "com.shop.Foo$$Lambda"},
	{"com.shop.Foo$Bar$$Lambda.0x0000000800c01000", "com.shop.Foo$Bar$$Lambda"},
	{"com.shop.Foo$1$$Lambda$2", "com.shop.Foo$#$$Lambda"},
	{"com.shop.Foo$$$Lambda$2", "com.shop.Foo$$$Lambda"},
	{"com.shop.Foo$$Lambda$14[]", "com.shop.Foo$$Lambda[]"},
	{"com.shop.Foo$$Lambda$14+0x00007f01[][]", "com.shop.Foo$$Lambda[][]"},
	{"java.lang.invoke.LambdaForm$MH+0x00000008000c1000", "java.lang.invoke.LambdaForm$MH"},
	{"java.lang.invoke.LambdaForm$DMH.0x00000008000c1000", "java.lang.invoke.LambdaForm$DMH"},
	{"java.lang.invoke.LambdaForm$BMH.1123559518", "java.lang.invoke.LambdaForm$BMH"},
	{"java.lang.String$$StringConcat.0x00000008000c1000", "java.lang.String$$StringConcat"},
	{"com.shop.Hidden.0x00000008000c1000", "com.shop.Hidden"},
	{"com.shop.Hidden+0x00000008000c1000", "com.shop.Hidden"},
	// D8, numbered and by hash, R8's groups.
	{"com.shop.Foo$$ExternalSyntheticLambda0", "com.shop.Foo$$Lambda"},
	{"com.shop.Foo$$ExternalSyntheticLambda12", "com.shop.Foo$$Lambda"},
	{"com.shop.Foo$Bar$$ExternalSyntheticLambda12[]", "com.shop.Foo$Bar$$Lambda[]"},
	{"com.shop.Foo$1$$ExternalSyntheticLambda0", "com.shop.Foo$#$$Lambda"},
	{"com.shop.Foo$$InternalSyntheticLambda$1$8aefc3a1b2$0", "com.shop.Foo$$Lambda"},
	{"com.shop.Foo$$ExternalSyntheticOutline0", "com.shop.Foo$$Outline"},
	{"com.shop.Foo$$InternalSyntheticOutline$3$0b1c$1", "com.shop.Foo$$Outline"},
	{"com.shop.Foo$$ExternalSyntheticApiModelOutline0", "com.shop.Foo$$ApiModelOutline"},
	{"com.shop.Foo$$ExternalSyntheticThrowCCEIfNotNull0", "com.shop.Foo$$ThrowCCEIfNotNull"},
	{"com.shop.Foo$$ExternalSyntheticBackport3", "com.shop.Foo$$Backport"},
	{"com.shop.-$$Lambda$Foo$AbC-123", "com.shop.Foo$$Lambda"},
	{"com.shop.-$$Lambda$Foo$Bar$jQz0_-8wRAbCdEfGhIjKlMnOpQr", "com.shop.Foo$Bar$$Lambda"},
	{"com.shop.-$$Lambda$Foo$Bar$OnlyLetters", "com.shop.Foo$Bar$$Lambda"},
	{"com.shop.-$$Lambda$Foo$1$AbC-123", "com.shop.Foo$#$$Lambda"},
	{"com.shop.$$Lambda$Foo$AbC-123[]", "com.shop.Foo$$Lambda[]"},
	{"-$$Lambda$Foo$AbC-123", "Foo$$Lambda"},
	{"android.app.-$Lambda$aS31cHIhRx41653CMnd4gZqshIQ", "android.app.-$Lambda"},
	{"android.app.-$Lambda$aS31cHIhRx41653CMnd4gZqshIQ$1", "android.app.-$Lambda$#"},
	{"com.shop.-$$LambdaGroup$ks$AbC123", "com.shop.-$$LambdaGroup"},
	{"com.shop.Foo$-void_onCreate_android_os_Bundle_state_LambdaImpl0", "com.shop.Foo$-void_onCreate_android_os_Bundle_state_LambdaImpl"},
	{"R8$$REMOVED$$CLASS$$42", "R8$$REMOVED$$CLASS$$#"},
	// javac's anonymous and local classes.
	{"com.shop.Foo$1", "com.shop.Foo$#"},
	{"com.shop.Foo$12$3", "com.shop.Foo$#$#"},
	{"com.shop.Foo$1Local", "com.shop.Foo$#Local"},
	{"com.shop.Foo$1Local$2", "com.shop.Foo$#Local$#"},
	{"com.shop.Foo$1[]", "com.shop.Foo$#[]"},
	// Kotlin.
	{"com.shop.Foo$onCreate$1", "com.shop.Foo$onCreate$#"},
	{"com.shop.Foo$onCreate$1$2", "com.shop.Foo$onCreate$#$#"},
	{"com.shop.Foo$sam$i$java_lang_Runnable$0", "com.shop.Foo$sam$i$java_lang_Runnable$#"},
	{"com.shop.Foo$special$$inlined$viewModels$default$3", "com.shop.Foo$special$$inlined$viewModels$default$#"},
	{"com.shop.ComposableSingletons$MainKt$lambda-1$1", "com.shop.ComposableSingletons$MainKt$lambda$#"},
	{"com.shop.ComposableSingletons$MainKt$lambda$-1043247461$1", "com.shop.ComposableSingletons$MainKt$lambda$#"},
	{"com.shop.ComposableSingletons$MainKt$lambda$1043247461$1", "com.shop.ComposableSingletons$MainKt$lambda$#$#"},
	// What runtimes and libraries make.
	{"com.sun.proxy.$Proxy12", "com.sun.proxy.$Proxy"},
	{"jdk.proxy2.$Proxy12", "jdk.proxy.$Proxy"},
	{"$Proxy3", "$Proxy"},
	{"$Proxy3[]", "$Proxy[]"},
	{"sun.reflect.GeneratedMethodAccessor12", "sun.reflect.GeneratedMethodAccessor"},
	{"jdk.internal.reflect.GeneratedConstructorAccessor1", "jdk.internal.reflect.GeneratedConstructorAccessor"},
	{"jdk.internal.reflect.GeneratedSerializationConstructorAccessor7", "jdk.internal.reflect.GeneratedSerializationConstructorAccessor"},
	{"com.shop.Foo$$EnhancerBySpringCGLIB$$a1b2c3d4", "com.shop.Foo$$EnhancerBySpringCGLIB"},
	{"com.shop.Foo$$SpringCGLIB$$0", "com.shop.Foo$$SpringCGLIB"},
	{"com.shop.Foo$ByteBuddy$zAbCdEfG", "com.shop.Foo$ByteBuddy"},
	{"com.shop.Foo$MockitoMock$1234567", "com.shop.Foo$MockitoMock"},
}

// names are those that a programmer gave, or that say the same in each build.
var names = []string{
	"com.shop.Foo", "com.shop.Foo$Bar", "A1$B2", "com.shop2.Foo3", "com.shop.R$id", "com.shop.Foo[]", "int[]", "byte[][]", "",
	"com.shop.Foo$WhenMappings", "com.shop.Foo$Companion", "com.shop.Foo$DefaultImpls", "com.shop.Foo$$serializer", "com.shop.Foo$-CC",
	"com.shop.Foo$$SyntheticClass", "com.shop.Foo$$ViewBinder", "com.shop.Foo$Stub$Proxy", "com.shop.Foo$Stub$Proxy2", "com.shop.Foo$Proxy7",
	"com.shop.GeneratedMethodAccessor1", "com.shop.Lambda2", "com.shop.Foo$Lambda2", "com.shop.Base64", "com.shop.v2.Api", "com.shop.Foo$V2",
	"com.shop.Foo_ViewBinding", "com.shop.Hilt_Foo", "com.shop.Foo$Utf8", "java.util.HashMap$Node", "java.lang.Object[]",
	"com.shop.FooKt$main$job", "com.shop.proxy12.Foo", "com.shop.Foo$ByteBuddy", "com.shop.A-1",
}

func TestStableClass(t *testing.T) {
	for _, c := range stable {
		if got := trace.StableClass(c.name); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		// Arrays are as their elements are.
		if got, want := trace.StableClass(c.name+"[]"), c.want+"[]"; got != want {
			t.Errorf("%s[]: %s, want %s", c.name, got, want)
		}
	}
	for _, name := range names {
		if got := trace.StableClass(name); got != name {
			t.Errorf("%s: %s, want no change", name, got)
		}
	}
}

// The search for parts of a name skips no expression that matches.
func TestStableClassByExpressions(t *testing.T) {
	var pieces []string
	for _, c := range stable {
		pieces = append(pieces, regexp.MustCompile(`[A-Za-z]+|[0-9]+|[^A-Za-z0-9]+`).FindAllString(c.name, -1)...)
	}
	pieces = append(pieces, "-$", "_$$", "$$")
	random := rand.New(rand.NewPCG(3, 5))
	changed := 0
	for range 20_000 {
		name := ""
		for range 1 + random.IntN(9) {
			name += pieces[random.IntN(len(pieces))]
		}
		want := trace.StableClassByExpressions(name)
		if got := trace.StableClass(name); got != want {
			t.Fatalf("%s: %s, want %s", name, got, want)
		}
		if want != name {
			changed++
		}
	}
	if changed < 2000 {
		t.Errorf("only %d names change", changed)
	}
}

// TestStableAgain: what is stable stays so.
func TestStableAgain(t *testing.T) {
	for _, c := range stable {
		if got := trace.StableClass(c.want); got != c.want {
			t.Errorf("%s, which is stable, becomes %s", c.want, got)
		}
	}
}

// TestStableApart: the members of what is numbered have one name, but those of different
// classes, or of different kinds, do not.
func TestStableApart(t *testing.T) {
	for _, kind := range []string{"$1", "$$Lambda$1", "$$ExternalSyntheticLambda0", "$$ExternalSyntheticOutline0", "$onCreate$1", "$1Local", "$sam$i$java_lang_Runnable$0",
		"$$InternalSyntheticLambda$1$8a$0"} {
		met := map[string]string{}
		for _, class := range []string{"a.Foo", "a.Fo", "b.Foo", "a.Foo$Bar", "a.Foo$Baz", "a.Foo2"} {
			got := trace.StableClass(class + kind)
			if other, ok := met[got]; ok {
				t.Errorf("%s and %s are both %s", class+kind, other, got)
			}
			met[got] = class + kind
			if !strings.HasPrefix(got, class) {
				t.Errorf("%s becomes %s", class+kind, got)
			}
		}
	}
	for _, pair := range [][2]string{
		{"a.-$$Lambda$Foo$Bar$h1", "a.-$$Lambda$Foo$Baz$h2"}, {"a.Foo$$ExternalSyntheticLambda0", "a.Foo$$ExternalSyntheticOutline0"},
		{"a.Foo$1", "a.Foo$1Local"}, {"a.Foo$1A", "a.Foo$1B"}, {"a.Foo$onCreate$1", "a.Foo$onStop$1"}, {"a.Foo$1", "a.Foo$$Lambda$1"},
		{"a.Foo$Proxy1", "a.Foo$Proxy2"},
	} {
		if trace.StableClass(pair[0]) == trace.StableClass(pair[1]) {
			t.Errorf("%s and %s are both %s", pair[0], pair[1], trace.StableClass(pair[0]))
		}
	}
}

func TestStableField(t *testing.T) {
	for _, c := range [][2]string{
		{"f$0", "<captured>"}, {"f$12", "<captured>"}, {"arg$1", "<captured>"}, {"this$0", "this$"}, {"this$1", "this$"}, {"L$0", "<spilled>"}, {"L$12", "<spilled>"},
		{"$r8$lambda$AbC-123_x", "$r8$lambda"}, {"lambda-1", "lambda"}, {"lambda$-1043247461", "lambda"},
		// Names of the source.
		{"mContext", "mContext"}, {"val$activity", "val$activity"}, {"$activity", "$activity"}, {"this$0$inline_fun", "this$0$inline_fun"}, {"f$", "f$"}, {"f0", "f0"},
		{"$this_apply", "$this_apply"}, {"$$delegate_0", "$$delegate_0"}, {"foo$delegate", "foo$delegate"}, {"[x]", "[x]"}, {"<Java Local>", "<Java Local>"},
		{"INSTANCE", "INSTANCE"}, {"$VALUES", "$VALUES"}, {"LL$0", "LL$0"}, {"", ""},
	} {
		if got := trace.StableField(c[0]); got != c[1] {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
	}
}

// FuzzStable: whatever a name is, it keeps its dimensions and the beginning that has
// nothing of a compiler in it, and gets no longer.
func FuzzStable(f *testing.F) {
	for _, c := range stable {
		f.Add(c.name)
	}
	for _, name := range names {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := trace.StableClass(name)
		if strings.HasSuffix(name, "[]") != strings.HasSuffix(got, "[]") || len(got) > len(name) {
			t.Errorf("%q becomes %q", name, got)
		}
		if begin := plainStart.FindString(name); !strings.HasPrefix(got, begin) {
			t.Errorf("%q, which begins with %q, becomes %q", name, begin, got)
		}
		if !strings.ContainsAny(name, "0123456789$") && got != name {
			t.Errorf("%q becomes %q", name, got)
		}
		if field := trace.StableField(name); !strings.ContainsAny(name, "$-") && field != name {
			t.Errorf("field %q becomes %q", name, field)
		}
	})
}

// plainStart is the packages and the outermost class of a name, or less.
var plainStart = regexp.MustCompile(`^(?:[a-ik-z]+\.)*[A-Z][a-z]*`)
