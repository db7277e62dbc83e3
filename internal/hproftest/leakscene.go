package hproftest

import (
	"fmt"
	"math/rand/v2"
)

// scene is the heap of an app to which leaks are added.
type scene struct {
	*Heap
	rng *rand.Rand
	// legacy selects the KeyedWeakReferences of LeakCanary 1 for watched
	// objects. A heap contains either these or the KeyedWeakReferences of later
	// versions.
	legacy bool
	// watched is the number of keys assigned so far.
	watched int
	// dead is a destroyed activity and live is an activity that is not
	// destroyed; both are held only by contexts.
	dead, live Activity
}

// newScene creates the heap. The seed determines all random choices in the
// heap.
func newScene(p Phone) *scene {
	s := &scene{Heap: Android(p), rng: rand.New(rand.NewPCG(p.Seed, 0x1ea4))}
	// Everything that Shark's inspectors read must exist, because Shark fails
	// if a class or field is missing.
	s.Set(s.android.apk, "mReceivers", s.arrayMap().ref)
	s.widgets()
	s.animators()
	s.libraries()
	s.member(s.Class("android.app.ActivityThread$ActivityClientRecord"), "object nextIdle")
	return s
}

// widgets declares classes with views and contexts, in addition to the classes
// that every heap has.
func (s *scene) widgets() {
	s.Declare("android.app.Dialog", nil, "object mContext", "object mDecor", "object mWindow",
		"object mOnDismissListener", "boolean mShowing")
	s.Declare("android.widget.Editor", nil, "object mTextView", "object mUndoManager")
	s.Declare("android.widget.Toast", nil, "object mContext", "object mTN", "object mNextView", "int mDuration")
	s.Declare("android.widget.Toast$TN", s.Class("android.os.Binder"), "object mWM", "object mView", "object mNextView")
	s.Declare("android.view.inputmethod.InputMethodManager", nil, "object mH", "object mNextServedView",
		"object mServedView", "object mCurRootView", "object mLastSrvView",
		"object mImeInsetsConsumer", "object mCurrentInputConnection", "object mLastFocusView",
		"static object sInstance")
	s.Declare("android.os.HandlerThread", s.Class("java.lang.Thread"), "object mLooper", "object mHandler")
	s.Declare("android.app.ApplicationPackageManager", nil, "object mContext", "object mUserManager")
	s.Declare("android.view.Choreographer$FrameDisplayEventReceiver", nil, "object mMessageQueue")
}

func (s *scene) animators() {
	animator := s.Declare("android.animation.Animator", nil, "abstract", "object mListeners", "object mPauseListeners",
		"boolean mPaused")
	value := s.Declare("android.animation.ValueAnimator", animator, "boolean mInitialized", "boolean mStarted",
		"boolean mRunning", "boolean mAnimationEndRequested",
		"long mDuration", "long mStartDelay", "int mRepeatCount", "int mRepeatMode", "object mUpdateListeners")
	s.Declare("android.animation.ObjectAnimator", value, "object mTarget", "object mPropertyName", "object mProperty",
		"boolean mAutoCancel")
	s.Declare("android.util.Property", nil, "object mName", "object mType")
}

func (s *scene) libraries() {
	s.Declare("androidx.lifecycle.ViewModel", nil, "abstract", "boolean mCleared", "object mBagOfTags")
	s.Declare("mortar.Presenter", nil, "object view", "object delegate")
	s.Declare("mortar.MortarScope", nil, "object name", "object parent", "object children", "boolean dead")
	s.Declare("com.squareup.coordinators.Coordinator", nil, "boolean attached", "object binder")
	s.Declare("androidx.arch.core.internal.SafeIterableMap", nil, "object mStart", "object mEnd", "object mIterators",
		"int mSize")
	s.Declare("androidx.arch.core.internal.SafeIterableMap$Entry", nil, "object mKey", "object mValue", "object mNext",
		"object mPrevious")
	s.Declare("androidx.arch.core.internal.FastSafeIterableMap", s.Class("androidx.arch.core.internal.SafeIterableMap"),
		"object mHashMap")
}

// rename changes the name of a class, or of one of its fields, to the name that
// another version of its library uses.
func (s *scene) rename(class, field, to string) {
	c := s.Class(class)
	if field == "" {
		delete(s.byName, class)
		c.name = to
		s.byName[to] = c
		return
	}
	for i := range c.fields {
		if c.fields[i].name == field {
			c.fields[i].name = to
			return
		}
	}
	s.fail("%s has no field %q to rename", class, field)
}

// class returns the class with the given name, and declares it if necessary.
func (s *scene) class(name, super string, members ...string) *Class {
	if c := s.byName[name]; c != nil {
		return c
	}
	var parent *Class
	if super != "" {
		parent = s.Class(super)
	}
	return s.Declare(name, parent, members...)
}

// node creates an object of an app class with one field, which holds the given
// object.
func (s *scene) node(class, field string, held Ref) Ref {
	return s.New(s.class(class, "", "object "+field), Fields{field: held})
}

// gone returns a destroyed activity.
func (s *scene) gone() Activity {
	if s.dead.Ref == 0 {
		s.dead = s.Activity("com.example.GoneActivity", Destroyed)
	}
	return s.dead
}

// here returns an activity that is not destroyed.
func (s *scene) here() Activity {
	if s.live.Ref == 0 {
		s.live = s.Activity("com.example.MainActivity", Attached)
	}
	return s.live
}

// leak returns the simplest leaking object: a new destroyed activity. It has no
// views, so nothing else leaks.
func (s *scene) leak() Ref {
	c := s.class("com.example.LeakedActivity", "android.app.Activity")
	r := s.New(c, Fields{"mDestroyed": true, "mFinished": true, "mApplication": s.android.application})
	s.Set(r, "mBase", s.application())
	return r
}

// application returns the Application as a context.
func (s *scene) application() Ref { return s.android.application }

// watch makes LeakCanary watch an object.
func (s *scene) watch(object Ref, description string, retained bool) Ref {
	s.watched++
	at := int64(-1)
	if retained {
		at = 3_590_000 + int64(s.watched)
	}
	return s.Watch(object, Watched{
		Key: fmt.Sprintf("key-%d", s.watched), Description: description, WatchedAt: 3_580_000 + int64(s.watched),
		RetainedAt: at, Legacy: s.legacy,
	})
}

// thread creates a thread of a class that extends java.lang.Thread.
func (s *scene) thread(class *Class, name string, f Fields) Thread {
	t := Thread{Serial: uint32(len(s.threads) + 1)}
	t.Ref = s.New(class, Fields{"name": name, "tid": int(t.Serial), "contextClassLoader": s.loader})
	for field, v := range f {
		s.Set(t.Ref, field, v)
	}
	s.threads = append(s.threads, thread{Thread: t})
	return t
}

// hold creates an app class whose static field holds an object.
func (s *scene) hold(held Ref) {
	s.Hold(fmt.Sprintf("com.example.Registry%d", len(s.classes)), "sHeld", held)
}

// payload creates a list of strings and arrays, which nothing else references.
func (s *scene) payload() Ref {
	l := s.ArrayList(s.String("payload"), s.Bytes(make([]byte, 100)), s.Integer(7))
	return l.Ref
}
