package android

import "github.com/leakgate/leakgate/internal/analysis/trace"

// Classes that occur in several matchers.
const (
	inputMethodManager  = "android.view.inputmethod.InputMethodManager"
	connectivityManager = "android.net.ConnectivityManager"
	awContents          = "org.chromium.android_webview.AwContents"
	jobServiceStub      = "android.app.job.JobService$1"
	dreamServiceStub    = "android.service.dreams.DreamService$1"
)

// Descriptions that several matchers share.
const (
	spanCopied = "Editor adds a span to the text, and the span refers to the EditText. Up to Android 4.4, " +
		"TextView.onSaveInstanceState() copies that span too, so the saved state holds the view and its activity. " +
		"Remedy: override onSaveInstanceState() and remove the NoCopySpans."
	servedView = "The singleton InputMethodManager keeps the view that last had the keyboard, even if it is " +
		"detached, until another view requests the keyboard."
	lastPolicy = "ActivityChooserModel is held by a static field and keeps the last policy that was set, " +
		"which can be an activity."
	speechKept = "TextToSpeech.shutdown() does not release the context, and another process holds the TextToSpeech. " +
		"Remedy: create it with the application context."
	webViewTask = "A task that WebView posted keeps its AwContents, and with it the view and its activity. The names " +
		"are those of one release of WebView, " +
		"whose classes are obfuscated."
)

// platformLeaks are the leaks of AOSP, of WebView and of libraries, in Shark's
// order.
var platformLeaks = []trace.Matcher{
	leak(instanceField("android.permission.PermissionControllerManager", "mContext"),
		"PermissionControllerManager keeps the context that first requested it, which can be an activity. "+
			"Remedy: call getSystemService(\"permission_controller\") on the application context early.",
		"https://issuetracker.google.com/issues/318415056", from(29)),
	leak(instanceField("android.app.Activity$1", "this$0"),
		"The IRequestFinishCallback of an activity is a binder stub that another process holds "+
			"long after onDestroy(). "+
			"Remedy: call finishAfterTransition() in onBackPressed() where the activity is the root of its task.",
		"https://issuetracker.google.com/issues/139738913", at(29)),
	leak(instanceField("android.app.ActivityThread", "mNewActivities"),
		"ActivityThread keeps new activities until the main thread is idle.",
		"https://issuetracker.google.com/issues/258390457", from(19)),
	leak(instanceField("android.widget.Editor$SpanController", "this$0"), spanCopied,
		"https://github.com/android/platform_frameworks_base/commit/af7dcdf35a37d7a7dbaad7d9869c1c91bce2272b",
		until(19)),
	leak(instanceField("android.widget.Editor$EasyEditSpanController", "this$0"), spanCopied,
		"https://github.com/android/platform_frameworks_base/commit/af7dcdf35a37d7a7dbaad7d9869c1c91bce2272b",
		until(19)),
	leak(staticField("android.media.session.MediaSessionLegacyHelper", "sInstance"),
		"This singleton keeps the context of the first caller of getHelper(). Fixed in Android 5.1. "+
			"Remedy: call getHelper() with the application context in Application.onCreate().",
		"https://github.com/android/platform_frameworks_base/commit/9b5257c9c99c4cb541d8e8e78fb04f008b1a9091", at(21)),
	leak(staticField("android.text.TextLine", "sCached"),
		"This is a pool of three TextLines, and recycle() did not clear all of their fields.",
		"https://github.com/android/platform_frameworks_base/commit/893d6fe48d37f71e683f722457bea646994a10", until(22)),
	leak(instanceField("android.os.Message", "obj"),
		"A thread that waits on a queue keeps, in a local variable, the last message that it took. A dialog keeps "+
			"message templates that are never recycled, "+
			"and such a message can be one of them, with listeners that hold the activity. Fixed in Android 12. "+
			"Remedy: AndroidLeakFixes.FLUSH_HANDLER_THREADS of plumber-android.",
		"https://issuetracker.google.com/issues/146144484", until(30)),
	leak(instanceField(inputMethodManager, "mNextServedView"), servedView,
		"https://code.google.com/p/android/issues/detail?id=171190", between(15, 35)),
	leak(instanceField(inputMethodManager, "mServedView"), servedView,
		"https://code.google.com/p/android/issues/detail?id=171190", between(15, 28)),
	leak(instanceField(inputMethodManager, "mServedInputConnection"), servedView,
		"https://code.google.com/p/android/issues/detail?id=171190", between(15, 27)),
	leak(instanceField(inputMethodManager, "mLastSrvView"),
		"A field that HUAWEI added to InputMethodManager keeps the view that it served last.",
		sharkFile+"INPUT_METHOD_MANAGER_IS_TERRIBLE", by(between(23, 28), huawei)),
	leak(instanceField(inputMethodManager, "mCurRootView"),
		"The singleton InputMethodManager keeps the root view of the last window, even if its activity is destroyed.",
		"https://github.com/square/leakcanary/issues/1#issuecomment-100579429", between(15, 28)),
	leak(instanceField(inputMethodManager, "mImeInsetsConsumer"),
		"InputMethodManager keeps the consumer of the keyboard's insets after the activity is destroyed.",
		sharkFile+"INPUT_METHOD_MANAGER_IS_TERRIBLE", from(30)),
	leak(instanceField("android.hardware.input.InputManager", "mLateInitContext"),
		"The singleton InputManager keeps the context that it was initialized with, which is an activity.",
		sharkFile+"INPUT_MANAGER__M_LATE_INIT_CONTEXT", at(33)),
	leak(instanceField("android.animation.LayoutTransition$1", "val$parent"),
		"A pre-draw listener added by LayoutTransition keeps the parent view until its window is gone.",
		"https://code.google.com/p/android/issues/detail?id=171830", between(14, 22)),
	leak(instanceField("android.view.textservice.SpellCheckerSession$1", "this$0"),
		"The handler of a SpellCheckerSession keeps the activity if the session is closed before its service is "+
			"connected.",
		"https://code.google.com/p/android/issues/detail?id=172542", between(16, 24)),
	leak(instanceField("android.widget.SpellChecker$1", "this$0"),
		"A task posted by SpellChecker keeps a detached view if the session is closed too late or never.",
		sharkFile+"SPELL_CHECKER", at(22)),
	leak(instanceField("android.support.v7.internal.widget.ActivityChooserModel", "mActivityChoserModelPolicy"),
		lastPolicy,
		"https://code.google.com/p/android/issues/detail?id=172659", between(15, 22)),
	leak(instanceField("android.widget.ActivityChooserModel", "mActivityChoserModelPolicy"), lastPolicy,
		"https://code.google.com/p/android/issues/detail?id=172659"),
	leak(instanceField("android.media.projection.MediaProjection$MediaProjectionCallback", "this$0"),
		"Another process holds the callback, which holds the MediaProjection and its context, which is an activity.",
		sharkFile+"MEDIA_PROJECTION_CALLBACK", between(22, 28)),
	leak(instanceField("android.speech.SpeechRecognizer$InternalListener", "this$0"),
		"Before Android 5, the listener was a non-static inner class, so it kept the SpeechRecognizer and its "+
			"activity.",
		"https://github.com/android/platform_frameworks_base/commit/b37866db469e81aca534ff6186bdafd44352329b",
		until(20)),
	leak(jniGlobal("android.accounts.AccountManager$AmsTask$Response"),
		"This binder stub lives until the calling process collects its proxy.",
		"https://issuetracker.google.com/issues/318303120", from(5)),
	leak(instanceField("android.media.MediaScannerConnection", "mContext"),
		"The connection that MediaScannerConnection.scanFile() creates can outlive the activity passed to it. "+
			"Remedy: create a connection with the application context, and connect and disconnect it.",
		"https://code.google.com/p/android/issues/detail?id=173788", until(22)),
	leak(instanceField("android.os.UserManager", "mContext"),
		"A static field keeps the UserManager that the first UserManager.get() created, with the context of its "+
			"caller. "+
			"Remedy: call UserManager.get() in Application.onCreate().",
		"https://code.google.com/p/android/issues/detail?id=173789", between(18, 25)),
	leak(instanceField("android.appwidget.AppWidgetHost$Callbacks", "this$0"),
		"This binder stub did not release its context.",
		"https://github.com/android/platform_frameworks_base/commit/7a96f3c917e0001ee739b65da37b2fadec7d7765",
		until(21)),
	leak(instanceField("android.media.AudioManager$1", "this$0"),
		"AudioManager keeps the context that requested it, and VideoView requests audio focus without ever releasing "+
			"it. Fixed in Android 6.",
		"https://code.google.com/p/android/issues/detail?id=152173", until(22)),
	leak(instanceField("android.widget.Editor$Blink", "this$0"),
		"Delayed messages make the cursor of an EditText blink; one of them is posted after the dialog is gone. "+
			"Remedy: call setCursorVisible(false) when the dialog is dismissed.",
		"https://code.google.com/p/android/issues/detail?id=188551", until(23)),
	leak(staticField(connectivityManager, "sInstance"),
		"A static field keeps the first ConnectivityManager, with the context that requested it. "+
			"Remedy: request it from the application context first.",
		"https://code.google.com/p/android/issues/detail?id=198852", until(23)),
	leak(instanceField("android.view.accessibility.AccessibilityNodeInfo", "mOriginalText"),
		"clear() does not remove the original text from pooled AccessibilityNodeInfos, and its spans hold the view.",
		"https://android.googlesource.com/platform/frameworks/base/+/193520e3dff5248ddcf8435203bf99d2ba667219%5E%21/core/java/android/view/accessibility/AccessibilityNodeInfo.java",
		between(26, 27)),
	leak(instanceField("android.app.assist.AssistStructure$ViewNodeText", "mText"),
		"The structure for the assistant and autofill keeps text from the screen, whose spans hold the views.",
		sharkFile+"ASSIST_STRUCTURE", from(24)),
	leak(instanceField("android.widget.AccessibilityIterators$LineTextSegmentIterator", "mLayout"),
		"AccessibilityIterators keeps a text layout whose spans hold the view.",
		sharkFile+"ACCESSIBILITY_ITERATORS", at(27)),
	leak(instanceField("android.hardware.biometrics.BiometricPrompt", "mFingerprintManager"),
		"BiometricPrompt keeps a FingerprintManager, whose context is a destroyed activity.",
		sharkFile+"BIOMETRIC_PROMPT", at(28)),
	leak(instanceField("android.widget.Magnifier$InternalPopupWindow", "mCallback"),
		"Native code that draws the popup of a Magnifier holds it, and with it the callback of the editor, after the "+
			"activity is destroyed.",
		sharkFile+"MAGNIFIER", at(28)),
	leak(instanceField("com.android.internal.policy.BackdropFrameRenderer", "mDecorView"),
		"In a case that is not understood, releaseRenderer() does not end the thread of BackdropFrameRenderer, which "+
			"keeps the decor view.",
		sharkFile+"BACKDROP_FRAME_RENDERER__MDECORVIEW", between(24, 26)),
	leak(instanceField("android.view.ViewGroup$ViewLocationHolder", "mRoot"),
		"clear() does not reset the field mRoot, new in Android 9, of pooled ViewLocationHolders.",
		"https://issuetracker.google.com/issues/112792715", at(28)),
	leak(instanceField("android.view.accessibility.AccessibilityNodeIdManager", "mIdsToViews"),
		"Betas of Android 10 register a view when it is attached, and keep it if it was already detached.",
		sharkFile+"ACCESSIBILITY_NODE_ID_MANAGER", between(28, 29)),
	leak(instanceField("android.speech.tts.TextToSpeech", "mContext"), speechKept,
		"https://issuetracker.google.com/issues/129250419", at(24)),
	leak(instanceField("android.speech.tts.TtsEngines", "mContext"), speechKept,
		"https://issuetracker.google.com/issues/129250419", at(24)),
	leak(jniGlobal("android.view.inputmethod.InputMethodManager$ControlledInputConnectionWrapper"),
		"Native code holds the binder stub of an input connection.",
		sharkFile+"CONTROLLED_INPUT_CONNECTION_WRAPPER"),
	leak(jniGlobal("android.widget.Toast$TN"),
		"Native code holds the binder stub through which a toast is shown.",
		sharkFile+"TOAST_TN"),
	leak(instanceField("android.app.ApplicationPackageManager$HasSystemFeatureQuery", "this$0"),
		"In a preview of Android 11, the query of a static cache was a non-static inner class, so it kept its "+
			"PackageManager and its context.",
		"https://cs.android.com/android/_/android/platform/frameworks/base/+/1f771846c51148b7cb6283e6dc82a216ffaa5353",
		at(29)),
	leak(instanceField("android.companion.CompanionDeviceService$Stub", "this$0"),
		"The binder stub of a CompanionDeviceService refers to the service even after the service is destroyed.",
		"https://android.googlesource.com/platform/frameworks/base/+/df69bbaf29e41d9df105612500c27be730feedfc", at(31)),
	leak(jniGlobal("android.graphics.animation.RenderNodeAnimator"),
		"If a view is detached while a ripple plays on it, native code keeps the animator, which keeps the view.",
		"https://issuetracker.google.com/issues/229136453", between(31, 32)),
	leak(jniGlobal("android.media.PlayerBase$1"),
		"The callback of a player is an inner class and a binder stub, and keeps the player. Fixed in Android 9.",
		"https://cs.android.com/android/_/android/platform/frameworks/base/+/aee6ee94675d56e71a42d52b16b8d8e5fa6ea3ff",
		between(24, 27)),
	// This applies only to Developer Preview 2 of Android 13.
	leak(instanceField("android.window.WindowOnBackInvokedDispatcher$OnBackInvokedCallbackWrapper", "mCallback"),
		"Another process holds the binder stub of a back callback long after its view root is detached.",
		"https://issuetracker.google.com/issues/229007483",
		trace.Condition{MinSDK: 32, MaxSDK: 32, IDs: []string{"TPP2.220218.008"}}),
	leak(instanceField(connectivityManager+"$CallbackHandler", "this$0"),
		"Handlers of callbacks can be held by a static field and keep the ConnectivityManager that created them, "+
			"whose context can be an activity. Fixed in Android 14.",
		"https://issuetracker.google.com/issues/258053962", at(33)),
	leak(instanceField("android.nfc.cardemulation.HostApduService$MsgHandler", "this$0"),
		"The handler of a HostApduService outlives the service.",
		"https://github.com/square/leakcanary/issues/2390", between(29, 33)),
	leak(jniGlobal("android.app.AppOpsManager$3"),
		"The binder stub of a callback lives until the calling process collects its proxy. Remedy: androidx.core "+
			"1.10 or newer.",
		"https://github.com/androidx/androidx/pull/435", between(31, 32)),
	leak(instanceField("android.view.ViewGroup", "mPreSortedChildren"),
		"A list of children for a single drawing pass is not cleared afterwards.",
		"https://issuetracker.google.com/issues/178029590", at(30)),
	leak(instanceField("android.view.ViewGroup", "mCurrentDragChild"),
		"A ViewGroup keeps the dragged child after it is detached.",
		"https://issuetracker.google.com/issues/170276524", between(29, 30)),
	// Lambdas are renumbered in each release: 3 is the number in Android 13.
	leak(instanceField("android.view.View$$ExternalSyntheticLambda3", "f$0"),
		"The task that hides a tooltip keeps its view for 15 seconds after the pointer hovered over it.",
		"https://cs.android.com/android/_/android/platform/frameworks/base/+/708dbe80902b963388c412f670c56ae00953273a",
		between(26, 34)),
	leak(instanceField("android.app.ActivityTransitionState", "mExitingToView"),
		"A transition of shared elements keeps the view that it animated.",
		"https://issuetracker.google.com/issues/141132765", between(28, 29)),
	leak(instanceField("android.animation.AnimationHandler", "mAnimatorRequestors"),
		"The singleton AnimationHandler keeps the view root of a destroyed activity.",
		"https://issuetracker.google.com/issues/258534826", at(33)),
	leak(staticField("com.facebook.flipper.plugins.inspector.descriptors.ApplicationDescriptor", "editedDelegates"),
		"Flipper keeps root views after they are detached.",
		"https://github.com/facebook/flipper/issues/4270"),
	leak(staticField(awContents, "A0"),
		"WebView maps contexts to their windows in a WeakHashMap whose values hold the keys, so its entries are "+
			"never removed. "+
			"The name is that of one release of WebView, whose classes are obfuscated.",
		"https://github.com/square/leakcanary/issues/2538"),
	leak(instanceField("WV.R9", "e"), webViewTask, "https://bugs.chromium.org/p/chromium/issues/detail?id=1499154"),
	leak(instanceField("WV.a6", "c"), webViewTask, "https://bugs.chromium.org/p/chromium/issues/detail?id=1499154"),
	leak(instanceField("WV.H5", "c"), webViewTask, "https://bugs.chromium.org/p/chromium/issues/detail?id=1499154"),
	leak(instanceField("WV.Y9", "e"), webViewTask, "https://bugs.chromium.org/p/chromium/issues/detail?id=1499154"),
	leak(instanceField("WV.U4", "c"), webViewTask, "https://bugs.chromium.org/p/chromium/issues/detail?id=1499154"),
	leak(jniGlobal(jobServiceStub),
		"The binder stub of a JobService kept the service.",
		"https://cs.android.com/android/_/android/platform/frameworks/base/+/0796e9fb3dc2dd03fa5ff2053c63f14861cffa2f",
		until(23)),
	leak(jniGlobal(dreamServiceStub),
		"The binder stub of a DreamService keeps the service.",
		"https://github.com/square/leakcanary/issues/2534", from(33)),
	leak(jniGlobal("android.app.UiModeManager$1"),
		"The binder stub of a UiModeManager keeps its context. This applies to Android 14.0.0_r11 to r15.",
		"https://cs.android.com/android/_/android/platform/frameworks/base/+/2bc364179327022d0f60224a1f2420349074c5d2",
		at(34)),
}
