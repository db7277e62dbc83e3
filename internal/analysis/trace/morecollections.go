package trace

// moreCollections are collections that Shark reads like any other object: a
// path through ten thousand nodes of a queue is not more informative than a
// path through the queue itself. Field names are those of OpenJDK, which
// Android has used since 7.0, of RxJava 2 and 3, Kotlin and kotlinx.coroutines.
var moreCollections = []Collection{
	chained("java.util.concurrent.LinkedBlockingQueue", "head", "item"),
	chained("java.util.concurrent.LinkedBlockingDeque", "first", "item"),
	chained("java.util.concurrent.ConcurrentLinkedQueue", "head", "item"),
	chained("java.util.concurrent.ConcurrentLinkedDeque", "head", "item"),
	chained("java.util.concurrent.LinkedTransferQueue", "head", "item"),
	arrayed("java.util.ArrayDeque", "elements"),
	arrayed("java.util.PriorityQueue", "queue"),
	arrayed("java.util.Vector", "elementData"),
	arrayed("java.util.IdentityHashMap", "table"),
	arrayed("java.util.concurrent.ArrayBlockingQueue", "items"),
	arrayed("java.util.concurrent.PriorityBlockingQueue", "queue"),
	arrayed("io.reactivex.internal.util.OpenHashSet", "keys"),
	arrayed("io.reactivex.rxjava3.internal.util.OpenHashSet", "keys"),
	arrayed("kotlin.collections.ArrayDeque", "elementData"),
	{Classes: []string{
		"kotlinx.coroutines.internal.ThreadSafeHeap", "kotlinx.coroutines.EventLoopImplBase$DelayedTaskQueue",
	}, Shape: Array,
		Head: Member{"kotlinx.coroutines.internal.ThreadSafeHeap", "a"}},
	{Classes: []string{"java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue"}, Shape: Array,
		Head: Member{"java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue", "queue"}},
	{Classes: []string{"java.util.Hashtable"}, Shape: Table, Head: Member{"java.util.Hashtable", "table"},
		Name: "key()",
		Nodes: []Node{
			{Class: "java.util.Hashtable$Entry", Next: "next", Key: "key", Value: "value"},
			{Class: "java.util.Hashtable$HashtableEntry", Next: "next", Key: "key", Value: "value"},
		}},
}

func chained(class, head, value string) Collection {
	return Collection{Classes: []string{class}, Shape: Chain, Head: Member{class, head},
		Nodes: []Node{{Class: class + "$Node", Next: "next", Value: value}}}
}

func arrayed(class, head string) Collection {
	return Collection{Classes: []string{class}, Shape: Array, Head: Member{class, head}}
}
