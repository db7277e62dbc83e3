package jvmtest

// Shape is one way in which the memory of Gallery or Libraries grows.
type Shape struct {
	Name string
	// Place is a part of the name, or of the path, of the growing objects in
	// the report.
	Place string
	// Bytes is the growth per iteration; 0 if the growth is not proportional to
	// the iterations, as with a buffer that doubles.
	Bytes int64
}

const payload = 20_000

// LeakingShapes returns the shapes that leak.
func LeakingShapes() []Shape {
	return []Shape{
		{"thread-local", "ThreadLocal", payload}, {"thread-local-self", "ThreadLocal", payload},
		{"class-loader", "Redeploy.LISTENERS", 10 * payload}, {"weak-map", "WeakRegistry.BY_SCREEN", payload},
		{"no-equals", "NoEquals.CACHE", payload}, {"undo", "History.undo", payload},
		{"futures", "Futures.LOGIN", payload},
		{"delete-on-exit", "DeleteOnExitHook.files", payload},
		{"shutdown-hooks", "ApplicationShutdownHooks.hooks", payload},
		{"sub-list", "SubLists.HEADS", payload}, {"intern", "Interned.WORDS", payload},
		{"soft-cache", "SoftCache.ENTRIES", payload},
		{"deque", "BackStack.SCREENS", payload}, {"lru", "UnboundedLru.RECENT", payload},
		{"concurrent-map", "Sessions.OPEN", payload},
		{"timer", "TaskQueue.queue", payload}, {"user-history", "UserHistory.BY_USER", payload},
		{"event-bus", "EventBus.LISTENERS", payload},
		{"executor-queue", "ThreadPoolExecutor.workQueue", payload}, {"cancelled-tasks", "DelayedWorkQueue", 85},
		{"message-chain", "Messages.head", 500 * 16},
		{"disposables", "CartViewModel.DISPOSABLES", payload}, {"pending-queue", "Reports.PENDING", payload},
		{"threads", "THREAD_OBJECT", payload},
		{"trie", "Trie", payload}, {"statements", "Connection.statements", payload}, {"direct", "Buffers.ALL", payload},
		{"finalizer", "finalizer queue", payload}, {"main-local", "Java Local", payload}, {"buffer", "Journal.TEXT", 0},
		{"same", "Repeats.all", payload}, {"inner-class", "Feed.WATCHERS", payload},
		{"hash-set", "Watchers.ALL", payload},
		{"properties", "System.props", payload}, {"big-value", "Settings.VALUES", payload},
		{"singleton-list", "Catalog.pages", payload},
	}
}

// SteadyShapes returns the names of the shapes that do not grow.
func SteadyShapes() []string {
	return []string{
		"steady-lru", "steady-strings", "steady-sessions", "steady-screens", "steady-weak", "steady-proxies",
	}
}

// FillingShapes returns the names of the shapes that grow more and more slowly
// until they stop.
func FillingShapes() []string { return []string{"fills-lru", "fills-ring", "fills-keys", "fills-pool"} }

// LibraryShapes returns the shapes that leak through libraries; the Place of
// each contains a field or a class of the program.
func LibraryShapes() []Shape {
	return []Shape{
		{"rx-disposables", "CartViewModel.DISPOSABLES", payload}, {"rx-subject", "Prices.CHANGES", payload},
		{"rx-interval", "Clock$Tick", payload},
		{"coroutine-children", "Screens.SCOPE", payload}, {"coroutine-delay", "Retry$Upload", payload},
		{"guava-cache", "Users.CACHE", payload}, {"guava-event-bus", "Bus.BUS", payload},
	}
}
