package android

import "github.com/leakgate/leakgate/internal/analysis/trace"

// Manufacturers as in android.os.Build.MANUFACTURER.
const (
	hmdGlobal = "HMD Global"
	huawei    = "HUAWEI"
	infinix   = "INFINIX"
	lenovo    = "LENOVO"
	lg        = "LGE"
	meizu     = "Meizu"
	motorola  = "motorola"
	nvidia    = "NVIDIA"
	onePlus   = "OnePlus"
	razer     = "Razer"
	realme    = "realme"
	samsung   = "samsung"
	sharp     = "SHARP"
	tes       = "TES"
	vivo      = "vivo"
	xiaomi    = "Xiaomi"
)

const clipboardStub = "Native code holds binder stubs of the clipboard, which are inner classes of SemClipboardManager."

// samsungLeaks are the leaks of Samsung's Android, in Shark's order.
var samsungLeaks = []trace.Matcher{
	leak(staticField("com.samsung.android.smartclip.SpenGestureManager", "mContext"),
		"A static field keeps the context of the activity.",
		sharkFile+"SPEN_GESTURE_MANAGER", by(at(19), samsung)),
	leak(instanceField("android.sec.clipboard.ClipboardUIManager", "mContext"),
		"A singleton keeps the context of the activity that requested it. Remedy: create it "+
			"by calling getInstance() in Application.onCreate().",
		"https://gist.github.com/cypressious/91c4fb1455470d803a602838dfcd5774", by(between(19, 21), samsung)),
	leak(jniGlobal("com.samsung.android.content.clipboard.SemClipboardManager$1"), clipboardStub,
		sharkFile+"SEM_CLIPBOARD_MANAGER__MCONTEXT", by(between(19, 28), samsung)),
	leak(jniGlobal("com.samsung.android.content.clipboard.SemClipboardManager$3"), clipboardStub,
		sharkFile+"SEM_CLIPBOARD_MANAGER__MCONTEXT", by(between(19, 28), samsung)),
	leak(instanceField("android.sec.clipboard.ClipboardExManager", "mContext"),
		"Native code holds the binder stub of a paste event, which keeps the ClipboardExManager and its activity.",
		sharkFile+"CLIPBOARD_EX_MANAGER", by(at(23), samsung)),
	leak(instanceField("android.sec.clipboard.ClipboardExManager", "mPersonaManager"),
		"Native code holds the binder stub of a paste event, which keeps the ClipboardExManager, its PersonaManager "+
			"and its activity.",
		sharkFile+"CLIPBOARD_EX_MANAGER", by(at(23), samsung)),
	leak(instanceField("android.widget.TextView$IClipboardDataPasteEventImpl", "this$0"),
		"Native code holds the binder stub of a paste event, which keeps a detached TextView.",
		sharkFile+"CLIPBOARD_EX_MANAGER", by(at(22), samsung)),
	leak(instanceField("com.samsung.android.emergencymode.SemEmergencyManager", "mContext"),
		"A singleton keeps the context of a decor view.",
		"https://gist.github.com/jankovd/a210460b814c04d500eb12025902d60d", by(between(19, 24), samsung)),
	leak(instanceField("com.samsung.android.knox.SemPersonaManager", "mContext"),
		"SemPersonaManager keeps the context that it was created with.",
		sharkFile+"SEM_PERSONA_MANAGER", by(at(24), samsung)),
	leak(instanceField("android.app.SemAppIconSolution", "mContext"),
		"SemAppIconSolution keeps the context that it was created with.",
		sharkFile+"SEM_APP_ICON_SOLUTION", by(between(28, 29), samsung)),
	leak(staticField("com.android.org.chromium.android_webview.AwResource", "sResources"),
		"A static field keeps resources that refer to the context of an activity.",
		sharkFile+"AW_RESOURCE__SRESOURCES", by(at(19), samsung)),
	leak(staticField("android.widget.TextView", "mLastHoveredView"),
		"A static field, not in AOSP, keeps the view that the pointer last hovered over.",
		sharkFile+"TEXT_VIEW__MLAST_HOVERED_VIEW", by(between(19, 31), samsung)),
	leak(instanceField("android.os.PersonaManager", "mContext"),
		"The resources of the app keep a PersonaManager, not in AOSP, whose context is an activity.",
		sharkFile+"PERSONA_MANAGER", by(at(19), samsung)),
	leak(instanceField("android.content.res.Resources", "mContext"),
		"A static field of ZygoteInit keeps Resources, which, unlike in AOSP, have a context: that of an activity.",
		"https://github.com/square/leakcanary/issues/1#issue-74450184", by(at(19), samsung)),
	leak(instanceField("android.view.ViewConfiguration", "mContext"),
		"A static field keeps ViewConfigurations, which, unlike in AOSP, have a context: that of an activity.",
		"https://github.com/square/leakcanary/issues/1#issuecomment-100324683", by(at(19), samsung)),
	leak(staticField("android.media.AudioManager", "mContext_static"),
		"A static field, not in AOSP, keeps the activity.",
		"https://github.com/square/leakcanary/issues/32", by(at(19), samsung)),
	leak(staticField("android.app.ActivityManager", "mContext"),
		"The field is static, unlike in AOSP, and keeps the activity.",
		"https://github.com/square/leakcanary/issues/177", by(between(22, 23), samsung)),
	leak(staticField("android.widget.TextView", "mTargetView"),
		"A static field, not in AOSP, keeps detached views.",
		sharkFile+"STATIC_MTARGET_VIEW", by(at(27), samsung)),
	leak(instanceField("com.android.internal.policy.MultiWindowDecorSupport", "mWindow"),
		"DecorView has a helper, not in AOSP, that keeps the window after it is destroyed.",
		"https://github.com/square/leakcanary/issues/1819", by(between(26, 29), samsung)),
	leak(instanceField(inputMethodManager, "mCurrentInputConnection"),
		"InputMethodManager keeps the input connection after the activity is destroyed.",
		"https://github.com/square/leakcanary/issues/2300", by(between(28, 30), samsung)),
}

// vendorLeaks are the leaks of other manufacturers, in Shark's order.
var vendorLeaks = []trace.Matcher{
	leak(staticField("android.gestureboost.GestureBoostManager", "mContext"),
		"A static field keeps the context of an activity.",
		"https://github.com/square/leakcanary/issues/696#issuecomment-296420756", by(between(24, 25), huawei)),
	leak(staticField("android.widget.BubblePopupHelper", "sHelper"),
		"The helper for bubbles of an EditText keeps the view that last had the focus.",
		sharkFile+"BUBBLE_POPUP_HELPER__SHELPER", by(between(19, 22), lg)),
	leak(instanceField("com.lge.systemservice.core.LGContext", "mContext"),
		"A singleton keeps the context of an activity.",
		sharkFile+"LGCONTEXT__MCONTEXT", by(at(21), lg)),
	leak(instanceField("com.lge.systemservice.core.SmartCoverManager", "mContext"),
		"Native code holds a callback that keeps the SmartCoverManager and its activity.",
		sharkFile+"SMART_COVER_MANAGER", by(at(27), lg)),
	leak(instanceField(inputMethodManager, "mLastFocusView"),
		"InputMethodManager keeps the view that last had the focus after it is detached.",
		sharkFile+"IMM_LAST_FOCUS_VIEW", by(at(29), lg)),
	leak(instanceField("com.nvidia.ControllerMapper.MapperClient$ServiceClient", "this$0"),
		"A handler keeps the MapperClient and with it the context of an activity.",
		sharkFile+"MAPPER_CLIENT", by(at(19), nvidia)),
	leak(staticField("android.hardware.SystemSensorManager", "mAppContextImpl"),
		"A static field keeps the context that the SensorManager was created with. Remedy: request the "+
			"SensorManager from the application context first.",
		sharkFile+"SYSTEM_SENSOR_MANAGER__MAPPCONTEXTIMPL", by(at(19), lenovo), by(at(22), vivo)),
	leak(staticField("android.app.Instrumentation", "mRecommendActivity"),
		"Since version 4.5, FlymeOS keeps an activity of its own, com.android.internal.app.RecommendActivity, in a "+
			"static field.",
		sharkFile+"INSTRUMENTATION_RECOMMEND_ACTIVITY", by(between(21, 22), meizu)),
	leak(instanceField("android.app.admin.DevicePolicyManager$SettingsObserver", "this$0"),
		"A content observer, not in AOSP, is held by its binder transport and keeps the DevicePolicyManager and the "+
			"context that requested it.",
		sharkFile+"DEVICE_POLICY_MANAGER__SETTINGS_OBSERVER", by(between(19, 22), motorola)),
	leak(instanceField("android.app.ExtendedStatusBarManager", "mContext"),
		"ExtendedStatusBarManager keeps the context of a decor view, which refers to a destroyed activity.",
		sharkFile+"EXTENDED_STATUS_BAR_MANAGER", by(from(30), sharp)),
	leak(staticField("com.oneplus.util.OemSceneCallBlocker", "sContext"),
		"A static field keeps an activity.",
		sharkFile+"OEM_SCENE_CALL_BLOCKER", by(at(28), onePlus)),
	leak(staticField("android.os.PerfMonitor", "mLastCallback"),
		"A static field keeps the View.PerformClick that was run last.",
		sharkFile+"PERF_MONITOR_LAST_CALLBACK", by(at(30), onePlus)),
	leak(instanceField("android.text.method.TextKeyListener", "mContext"),
		"A static array keeps all TextKeyListeners, which, unlike in AOSP, have a context: that of an activity.",
		sharkFile+"RAZER_TEXT_KEY_LISTENER__MCONTEXT", by(at(28), razer)),
	leak(staticField("android.content.res.ResourcesImpl", "mAppContext"),
		"A static field, not in AOSP, keeps a context that can be destroyed, such as a service. Several "+
			"manufacturers use the same sources.",
		sharkFile+"XIAMI__RESOURCES_IMPL", by(from(30), hmdGlobal, infinix, lenovo, xiaomi, tes, realme)),
}
