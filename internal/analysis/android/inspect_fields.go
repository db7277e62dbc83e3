package android

import "github.com/leakgate/leakgate/internal/analysis/heap"

// field identifies a field that inspectors read, by its index in fieldPlaces.
type field uint8

const (
	threadName field = iota
	threadID
	stringHash
	stringHashCode
	referent
	watchKey
	watchDescription
	watchName
	watchedAt
	retainedAt
	legacyKey
	legacyDescription
	legacyName
	viewParent
	viewContext
	viewAttachInfo
	viewAttachCount
	viewID
	editorView
	activityDestroyed
	threadServices
	mapArray
	wrapperBase
	decorWindow
	windowContext
	windowDestroyed
	managerContext
	outerContext
	dialogDecor
	frameworkManager
	frameworkCalled
	frameworkTag
	supportManager
	supportCalled
	supportTag
	androidxManager
	androidxCalled
	androidxTag
	androidxMaxState
	androidxRegistry
	registryState
	registryOldState
	enumName
	enumOrdinal
	queueQuitting
	queueQuiting
	queueMessages
	messageTarget
	messageWhat
	messageWhen
	messageObject
	messageCallback
	handlerLooper
	looperThread
	daemonThread
	triggerHandler
	executorHandler
	apkReceivers
	presenterView
	scopeDead
	scopeName
	coordinatorAttached
	rootView
	rootContext
	rootAttributes
	attributesTitle
	attributesType
	toastTN
	tnManager
	tnView
	recomposerState
	flowState
	flowVolatileState
	compositionDisposed
	compositionState
	animatorListeners
	listElements
	listArray
	listSize
	animatorPropertyName
	animatorProperty
	propertyName
	propertyType
	animatorInitialized
	animatorStarted
	animatorRunning
	animatorEndRequested
	animatorDuration
	animatorStartDelay
	animatorRepeatCount
	animatorRepeatMode
	viewModelCleared
	viewModelImpl
	viewModelImplCleared
	resourceIDs
	resourceTexts
	jobPlainState
	jobVolatileState
	completedCause
	finishingPlainCause
	finishingCause
	finishingVolatileCause
	atomicValue
	contextLeft
	contextElement
	scopeContext
	viewModelScopeContext
	oldViewModelScopeContext
	fieldCount
)

const (
	finishingClass = "kotlinx.coroutines.JobSupport$Finishing"
	scopeClass     = "kotlinx.coroutines.internal.ContextScope"
	// viewModelScope is the class of a ViewModel's scope in androidx.lifecycle
	// 2.8 and later.
	viewModelScope    = "androidx.lifecycle.viewmodel.internal.CloseableCoroutineScope"
	oldViewModelScope = "androidx.lifecycle.CloseableCoroutineScope"

	supportFragment  = "android.support.v4.app.Fragment"
	valueAnimator    = "android.animation.ValueAnimator"
	registryClass    = "androidx.lifecycle.LifecycleRegistry"
	layoutParameters = "android.view.WindowManager$LayoutParams"
	resourceClass    = "shark.AndroidResourceIdNames"
	// referenceClass is the class of the references with which LeakCanary 2 and
	// 3 watch objects; legacyClass is the corresponding class in LeakCanary 1.
	referenceClass = "leakcanary.KeyedWeakReference"
	legacyClass    = "com.squareup.leakcanary.KeyedWeakReference"
	// triggerClass declares the field that holds the thread of LeakCanary 2;
	// executorClass declares the field for LeakCanary 1.
	triggerClass  = "leakcanary.internal.HeapDumpTrigger"
	executorClass = "com.squareup.leakcanary.AndroidWatchExecutor"
)

// fieldPlaces holds the class and the name of each field.
var fieldPlaces = [fieldCount]struct{ class, name string }{
	threadName:           {threadClass, "name"},
	threadID:             {threadClass, "tid"},
	stringHash:           {"java.lang.String", "hash"},
	stringHashCode:       {"java.lang.String", "hashCode"},
	referent:             {"java.lang.ref.Reference", "referent"},
	watchKey:             {referenceClass, "key"},
	watchDescription:     {referenceClass, "description"},
	watchName:            {referenceClass, "name"},
	watchedAt:            {referenceClass, "watchUptimeMillis"},
	retainedAt:           {referenceClass, "retainedUptimeMillis"},
	legacyKey:            {legacyClass, "key"},
	legacyDescription:    {legacyClass, "description"},
	legacyName:           {legacyClass, "name"},
	viewParent:           {viewClass, "mParent"},
	viewContext:          {viewClass, "mContext"},
	viewAttachInfo:       {viewClass, "mAttachInfo"},
	viewAttachCount:      {viewClass, "mWindowAttachCount"},
	viewID:               {viewClass, "mID"},
	editorView:           {"android.widget.Editor", "mTextView"},
	activityDestroyed:    {activityClass, "mDestroyed"},
	threadServices:       {"android.app.ActivityThread", "mServices"},
	mapArray:             {"android.util.ArrayMap", "mArray"},
	wrapperBase:          {wrapperClass, "mBase"},
	decorWindow:          {decorClass, "mPhoneWindow"},
	windowContext:        {"android.view.Window", "mContext"},
	windowDestroyed:      {"android.view.Window", "mDestroyed"},
	managerContext:       {"android.app.ApplicationPackageManager", "mContext"},
	outerContext:         {"android.app.ContextImpl", "mOuterContext"},
	dialogDecor:          {"android.app.Dialog", "mDecor"},
	frameworkManager:     {"android.app.Fragment", "mFragmentManager"},
	frameworkCalled:      {"android.app.Fragment", "mCalled"},
	frameworkTag:         {"android.app.Fragment", "mTag"},
	supportManager:       {supportFragment, "mFragmentManager"},
	supportCalled:        {supportFragment, "mCalled"},
	supportTag:           {supportFragment, "mTag"},
	androidxManager:      {androidxFragment, "mFragmentManager"},
	androidxCalled:       {androidxFragment, "mCalled"},
	androidxTag:          {androidxFragment, "mTag"},
	androidxMaxState:     {androidxFragment, "mMaxState"},
	androidxRegistry:     {androidxFragment, "mLifecycleRegistry"},
	registryState:        {registryClass, "state"},
	registryOldState:     {registryClass, "mState"},
	enumName:             {"java.lang.Enum", "name"},
	enumOrdinal:          {"java.lang.Enum", "ordinal"},
	queueQuitting:        {"android.os.MessageQueue", "mQuitting"},
	queueQuiting:         {"android.os.MessageQueue", "mQuiting"},
	queueMessages:        {"android.os.MessageQueue", "mMessages"},
	messageTarget:        {"android.os.Message", "target"},
	messageWhat:          {"android.os.Message", "what"},
	messageWhen:          {"android.os.Message", "when"},
	messageObject:        {"android.os.Message", "obj"},
	messageCallback:      {"android.os.Message", "callback"},
	handlerLooper:        {"android.os.Handler", "mLooper"},
	looperThread:         {"android.os.Looper", "mThread"},
	daemonThread:         {"java.lang.Daemons$Daemon", "thread"},
	triggerHandler:       {triggerClass, "backgroundHandler"},
	executorHandler:      {executorClass, "backgroundHandler"},
	apkReceivers:         {"android.app.LoadedApk", "mReceivers"},
	presenterView:        {"mortar.Presenter", "view"},
	scopeDead:            {"mortar.MortarScope", "dead"},
	scopeName:            {"mortar.MortarScope", "name"},
	coordinatorAttached:  {"com.squareup.coordinators.Coordinator", "attached"},
	rootView:             {"android.view.ViewRootImpl", "mView"},
	rootContext:          {"android.view.ViewRootImpl", "mContext"},
	rootAttributes:       {"android.view.ViewRootImpl", "mWindowAttributes"},
	attributesTitle:      {layoutParameters, "mTitle"},
	attributesType:       {layoutParameters, "type"},
	toastTN:              {"android.widget.Toast", "mTN"},
	tnManager:            {"android.widget.Toast$TN", "mWM"},
	tnView:               {"android.widget.Toast$TN", "mView"},
	recomposerState:      {"androidx.compose.runtime.Recomposer", "_state"},
	flowState:            {"kotlinx.coroutines.flow.StateFlowImpl", "_state"},
	flowVolatileState:    {"kotlinx.coroutines.flow.StateFlowImpl", "_state$volatile"},
	compositionDisposed:  {"androidx.compose.runtime.CompositionImpl", "disposed"},
	compositionState:     {"androidx.compose.runtime.CompositionImpl", "state"},
	animatorListeners:    {"android.animation.Animator", "mListeners"},
	listElements:         {listClass, "elementData"},
	listArray:            {listClass, "array"},
	listSize:             {listClass, "size"},
	animatorPropertyName: {"android.animation.ObjectAnimator", "mPropertyName"},
	animatorProperty:     {"android.animation.ObjectAnimator", "mProperty"},
	propertyName:         {"android.util.Property", "mName"},
	propertyType:         {"android.util.Property", "mType"},
	animatorInitialized:  {valueAnimator, "mInitialized"},
	animatorStarted:      {valueAnimator, "mStarted"},
	animatorRunning:      {valueAnimator, "mRunning"},
	animatorEndRequested: {valueAnimator, "mAnimationEndRequested"},
	animatorDuration:     {valueAnimator, "mDuration"},
	animatorStartDelay:   {valueAnimator, "mStartDelay"},
	animatorRepeatCount:  {valueAnimator, "mRepeatCount"},
	animatorRepeatMode:   {valueAnimator, "mRepeatMode"},
	viewModelCleared:     {"androidx.lifecycle.ViewModel", "mCleared"},
	viewModelImpl:        {"androidx.lifecycle.ViewModel", "impl"},
	viewModelImplCleared: {"androidx.lifecycle.viewmodel.internal.ViewModelImpl", "isCleared"},
	resourceIDs:          {resourceClass, "resourceIds"},
	resourceTexts:        {resourceClass, "names"},

	jobPlainState:            {jobClass, "_state"},
	jobVolatileState:         {jobClass, "_state$volatile"},
	completedCause:           {"kotlinx.coroutines.CompletedExceptionally", "cause"},
	finishingPlainCause:      {finishingClass, "rootCause"},
	finishingCause:           {finishingClass, "_rootCause"},
	finishingVolatileCause:   {finishingClass, "_rootCause$volatile"},
	atomicValue:              {"kotlinx.atomicfu.AtomicRef", "value"},
	contextLeft:              {"kotlin.coroutines.CombinedContext", "left"},
	contextElement:           {"kotlin.coroutines.CombinedContext", "element"},
	scopeContext:             {scopeClass, "coroutineContext"},
	viewModelScopeContext:    {viewModelScope, "coroutineContext"},
	oldViewModelScopeContext: {oldViewModelScope, "coroutineContext"},
}

// field returns a field, which it looks up on first use.
func (i *Inspector) field(f field) *heap.Field {
	if i.fields[f] == nil {
		i.fields[f] = i.graph.Field(fieldPlaces[f].class, fieldPlaces[f].name)
	}
	return i.fields[f]
}

// described returns a field and its value, such as "Activity#mDestroyed is
// true".
func described(f field, value any) (format string, args []any) {
	return "%s#%s is %v", []any{simple(fieldPlaces[f].class), fieldPlaces[f].name, value}
}

// nullity describes whether a reference is null.
func nullity(null bool) string {
	if null {
		return "null"
	}
	return "not null"
}
