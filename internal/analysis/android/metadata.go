package android

import (
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// The runtimes that write dumps.
const (
	RuntimeAndroid = "android"
	RuntimeJVM     = "jvm"
)

// Metadata describes the origin of a dump. Values that the dump does not
// contain are absent.
type Metadata struct {
	// Runtime is RuntimeAndroid or RuntimeJVM. It is determined by the classes
	// and not by the format, because hprof-conv changes the format.
	Runtime string `json:"runtime"`
	// SDK is the API level; Release is the version of Android.
	SDK          int64  `json:"sdk,omitempty"`
	Release      string `json:"release,omitempty"`
	Manufacturer string `json:"manufacturer,omitempty"`
	Model        string `json:"model,omitempty"`
	Fingerprint  string `json:"fingerprint,omitempty"`
	// Process is the process that the application declares; Bound is the actual
	// process. They differ for a component with its own android:process, such
	// as com.shop:push.
	Process string `json:"process,omitempty"`
	Bound   string `json:"bound_process,omitempty"`
	Package string `json:"package,omitempty"`
	// TargetSDK is the target API level of the application. Debuggable and
	// LargeHeap are flags of the application (AOSP ApplicationInfo.java); a
	// large heap has a higher limit.
	TargetSDK  int64 `json:"target_sdk,omitempty"`
	Debuggable bool  `json:"debuggable,omitempty"`
	LargeHeap  bool  `json:"large_heap,omitempty"`
	// LeakCanary reports whether LeakCanary was in the process.
	// LeakCanaryVersion is set if the version is known.
	LeakCanary        bool   `json:"leakcanary"`
	LeakCanaryVersion string `json:"leakcanary_version,omitempty"`
	// Screen is nil if no display was found.
	Screen   *Screen `json:"screen,omitempty"`
	Warnings []error `json:"-"`
}

// Screen is the size of a display in pixels.
type Screen struct {
	Width  int64 `json:"width"`
	Height int64 `json:"height"`
}

// longestSide is larger than the longest side of any display, in pixels; a
// larger DisplayMetrics is ignored.
const longestSide = 1 << 15

const (
	flagDebuggable = 1 << 1
	flagLargeHeap  = 1 << 20
)

const (
	askActivityThread uint8 = iota
	askBindData
	askApplication
	askDisplay
)

// metadataTopic reads Metadata.
type metadataTopic struct {
	Metadata

	activityThreads, displays heap.Family
	boundApplication          *heap.Field
	appInfo, boundName        *heap.Field
	processName, packageName  *heap.Field
	flags, targetSDK          *heap.Field
	width, height             *heap.Field
	// texts maps the destination of each requested string to the number of its
	// request.
	texts map[*string]int
}

// mostDisplays is the maximum number of DisplayMetrics that are read.
const mostDisplays = 4096

func (m *metadataTopic) families() []*heap.Family {
	m.activityThreads = heap.Family{Class: "android.app.ActivityThread", Limit: 2}
	m.displays = heap.Family{Class: "android.util.DisplayMetrics", Limit: mostDisplays}
	return []*heap.Family{&m.activityThreads, &m.displays}
}

func (m *metadataTopic) begin(p *plan) {
	m.texts = map[*string]int{}
	m.Runtime = runtime(p.graph)
	m.LeakCanary = p.graph.HasClass("leakcanary.KeyedWeakReference") ||
		p.graph.HasClass("com.squareup.leakcanary.KeyedWeakReference")
	m.static(p, &m.LeakCanaryVersion, "leakcanary.internal.InternalLeakCanary", "version")
	if m.Runtime == RuntimeJVM {
		return
	}
	m.SDK, _ = p.graph.StaticInt("android.os.Build$VERSION", "SDK_INT")
	m.SDK = max(m.SDK, 0)
	m.static(p, &m.Release, "android.os.Build$VERSION", "RELEASE")
	m.static(p, &m.Manufacturer, "android.os.Build", "MANUFACTURER")
	m.static(p, &m.Model, "android.os.Build", "MODEL")
	m.static(p, &m.Fingerprint, "android.os.Build", "FINGERPRINT")
	m.boundApplication = p.graph.Field("android.app.ActivityThread", "mBoundApplication")
	m.appInfo = p.graph.Field("android.app.ActivityThread$AppBindData", "appInfo")
	m.boundName = p.graph.Field("android.app.ActivityThread$AppBindData", "processName")
	m.processName = p.graph.Field("android.content.pm.ApplicationInfo", "processName")
	m.packageName = p.graph.Field("android.content.pm.PackageItemInfo", "packageName")
	m.flags = p.graph.Field("android.content.pm.ApplicationInfo", "flags")
	m.targetSDK = p.graph.Field("android.content.pm.ApplicationInfo", "targetSdkVersion")
	m.width = p.graph.Field("android.util.DisplayMetrics", "widthPixels")
	m.height = p.graph.Field("android.util.DisplayMetrics", "heightPixels")
	if o, ok := activityThread(p.graph, &m.activityThreads); ok {
		p.ask(o, askActivityThread, 0)
	}
	for _, o := range m.displays.Objects {
		p.ask(o, askDisplay, 0)
	}
}

// static requests the string in a static field.
func (m *metadataTopic) static(p *plan, to *string, class, field string) {
	if o, ok := p.graph.Static(class, field); ok {
		m.texts[to] = p.text(o)
	}
}

// ref requests the string in an instance field.
func (m *metadataTopic) ref(p *plan, to *string, r *heap.Record, f *heap.Field) {
	if o, ok := r.RefOf(f); ok {
		m.texts[to] = p.text(o)
	}
}

// runtime returns the runtime that wrote the dump. A process without an app,
// such as dalvikvm, does not have an ActivityThread, but its classes have
// fields that only ART and Dalvik write (runtime/hprof/hprof.cc).
func runtime(g *heap.Graph) string {
	if g.HasClass("android.app.ActivityThread") || g.HasClass("dalvik.system.VMRuntime") {
		return RuntimeAndroid
	}
	for _, class := range []string{"java.lang.Object", "java.lang.String", "java.lang.Thread"} {
		for _, field := range []string{"$class$superClass", "$classOverhead", "$staticOverhead"} {
			if g.HasStatic(class, field) {
				return RuntimeAndroid
			}
		}
	}
	return RuntimeJVM
}

// activityThread returns the current ActivityThread or, if that is unknown, the
// only one in the dump.
func activityThread(g *heap.Graph, instances *heap.Family) (heap.Object, bool) {
	if o, ok := g.Static("android.app.ActivityThread", "sCurrentActivityThread"); ok {
		return o, true
	}
	if instances.Count == 1 {
		return instances.Objects[0], true
	}
	return 0, false
}

func (m *metadataTopic) visit(p *plan, r *heap.Record, tag uint8, _ uint32) {
	switch tag {
	case askActivityThread:
		if o, ok := r.RefOf(m.boundApplication); ok {
			p.ask(o, askBindData, 0)
		}
	case askBindData:
		m.ref(p, &m.Bound, r, m.boundName)
		if o, ok := r.RefOf(m.appInfo); ok {
			p.ask(o, askApplication, 0)
		}
	case askApplication:
		m.ref(p, &m.Process, r, m.processName)
		m.ref(p, &m.Package, r, m.packageName)
		flags, _ := r.IntOf(m.flags)
		m.Debuggable, m.LargeHeap = flags&flagDebuggable != 0, flags&flagLargeHeap != 0
		sdk, _ := r.IntOf(m.targetSDK)
		m.TargetSDK = max(sdk, 0)
	case askDisplay:
		m.display(r)
	}
}

// display records a display if it is larger than all previous ones, or equally
// large but narrower.
func (m *metadataTopic) display(r *heap.Record) {
	width, _ := r.IntOf(m.width)
	height, _ := r.IntOf(m.height)
	if width <= 0 || height <= 0 || width > longestSide || height > longestSide {
		return
	}
	if s := m.Screen; s == nil || width*height > s.Width*s.Height || width*height == s.Width*s.Height &&
		width < s.Width {
		m.Screen = &Screen{width, height}
	}
}

func (m *metadataTopic) advance(*plan) {}

func (m *metadataTopic) finish(p *plan) {
	for to, n := range m.texts {
		*to = p.texts.at(n)
	}
	// In a stripped dump, strings consist of question marks or NULs.
	for to := range m.texts {
		if strings.Trim(*to, "?\uFFFD") == "" {
			*to = ""
		}
	}
}

// area returns the area of the screen in pixels, or 0 if it is unknown.
func (m *metadataTopic) area() int64 {
	if m == nil || m.Screen == nil {
		return 0
	}
	return m.Screen.Width * m.Screen.Height
}
