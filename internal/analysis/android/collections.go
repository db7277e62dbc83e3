package android

import (
	"context"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// Collections returns descriptions of how Android's collections hold their
// elements (Shark, AndroidReferenceReaders.kt).
func (i *Inspector) Collections() []trace.Collection {
	return []trace.Collection{
		// Activities that are kept until the main thread is idle are a known
		// leak. The other path to these activities leads through the records of
		// live activities, and is not informative.
		{
			Classes: []string{"android.app.ActivityThread"}, Shape: trace.First,
			Head: trace.Member{Class: "android.app.ActivityThread", Name: "mNewActivities"},
			Matcher: &trace.Matcher{
				Pattern: trace.Pattern{
					Kind: trace.InstanceField, Class: "android.app.ActivityThread", Name: "mNewActivities",
				},
				Description: "ActivityThread keeps new activities until the main thread is idle, " +
					"which may never happen.",
				Source: "https://issuetracker.google.com/issues/258390457",
			},
		},
		{
			Classes: []string{activityRecordClass}, Shape: trace.FirstChain, Only: i.isDestroyed,
			Nodes: []trace.Node{{Class: activityRecordClass, Next: "nextIdle", Value: "activity"}},
		},
		{
			Classes: []string{"android.os.MessageQueue"}, Shape: trace.Chain,
			Head:  trace.Member{Class: "android.os.MessageQueue", Name: "mMessages"},
			Nodes: []trace.Node{{Class: "android.os.Message", Next: "next"}},
		},
		// An animator keeps running after its target is gone; before API 33, it
		// also holds the target.
		{
			Classes: []string{"android.animation.ObjectAnimator"}, Shape: trace.Referent,
			Head: trace.Member{Class: "android.animation.ObjectAnimator", Name: "mTarget"},
		},
		{
			Classes: []string{
				"androidx.arch.core.internal.SafeIterableMap", "androidx.arch.core.internal.FastSafeIterableMap",
			}, Shape: trace.Pairs,
			Head: trace.Member{Class: "androidx.arch.core.internal.SafeIterableMap", Name: "mStart"}, Name: "key()",
			Nodes: []trace.Node{
				{
					Class: "androidx.arch.core.internal.SafeIterableMap$Entry", Next: "mNext", Key: "mKey",
					Value: "mValue",
				},
			},
		},
		{
			Classes: []string{"android.util.ArraySet"}, Shape: trace.Array,
			Head: trace.Member{Class: "android.util.ArraySet", Name: "mArray"}, Name: "element()",
		},
	}
}

const activityRecordClass = "android.app.ActivityThread$ActivityClientRecord"

// isDestroyed reports whether an object is a destroyed activity.
func (i *Inspector) isDestroyed(o heap.Object) bool {
	value, known := i.flag(o, activityDestroyed)
	return known && value
}

// ThreadName returns the name of a thread, or "" if it is unknown.
func (i *Inspector) ThreadName(o heap.Object) string {
	name, _ := i.textOf(o, threadName)
	return name
}

// Text returns the contents of a String, truncated. It returns false for other
// objects, and for a String that was not prepared or was stripped.
func (i *Inspector) Text(o heap.Object) (string, bool) {
	if !i.graph.InstanceOf(o, "java.lang.String") {
		return "", false
	}
	return i.text(o)
}

// Prepare makes the contents of some strings readable; the strings of an
// Android dump are always readable.
func (i *Inspector) Prepare(ctx context.Context, objects []heap.Object) error {
	if i.located != nil {
		return nil
	}
	var wanted, arrays []heap.Object
	for _, o := range objects {
		if _, known := i.kept[o]; !known && i.graph.InstanceOf(o, "java.lang.String") {
			wanted = append(wanted, o)
		}
	}
	if err := i.keep(ctx, wanted); err != nil {
		return err
	}
	for _, o := range wanted {
		arrays = append(arrays, i.charsOf(o)...)
	}
	return i.keep(ctx, arrays)
}

// Follow sets the reader of references. Without a reader, the contexts in
// fields are not labeled. The reader must stay open as long as the inspector is
// in use.
func (i *Inspector) Follow(b *heap.Outbound) { i.outbound, i.valued = b, nil }

// Number returns the value of an integer field. It does not support dumps of a
// JVM.
func (i *Inspector) Number(o heap.Object, m trace.Member) (int64, bool) {
	if i.located == nil {
		return 0, false
	}
	f := i.numbers[m]
	if f == nil {
		f = i.graph.Field(m.Class, m.Name)
		if i.numbers == nil {
			i.numbers = map[trace.Member]*heap.Field{}
		}
		i.numbers[m] = f
	}
	r, ok := i.record(o)
	if !ok {
		return 0, false
	}
	return r.IntOf(f)
}
