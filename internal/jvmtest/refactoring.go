package jvmtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// marketMain is the main class of the refactored program.
const marketMain = "com.example.market.Market"

// Refactoring is a change to Market, which is a program with six leaking
// screens.
type Refactoring struct {
	Name string
	// Added lists the simple names of the screens that leak only after the
	// change. Renamed maps the old name of each renamed screen to its new name.
	Added   []string
	Renamed map[string]string
	// Joins is a screen that leaks into the same holder as other screens after
	// the change.
	Joins string
	// Changed lists the leaks that differ after the change, except those in
	// Added. Each entry is a status and the simple name of a screen; the
	// entries are sorted.
	Changed []string
	// Made is a class that has more objects after the change, or "".
	Made string
	// Reached is a screen to which several paths of equal length lead, or "".
	// After the change, a different one of these paths is found first.
	Reached string
	// Few is set for the changes that a short test run covers.
	Few bool

	// edits are pairs of a string in the source and its replacement.
	edits   []string
	visits  int
	options []string
	// names is the seed of ProGuard's dictionaries; 0 for a program that is not
	// renamed.
	names uint64
}

// marketVisits is the number of times that each screen is opened: eleven
// colliding keys convert a bin into a tree (java.util.HashMap, treeifyBin).
const marketVisits = 12

// The parts of Market that are replaced.
const (
	listOfScreens = "static final Collection<Object> screens = new ArrayList<>();"
	addOfScreen   = "screens.add(screen);"
	mapOfProfiles = "final Map<Id, Object> profiles = new HashMap<>();"
	lambdaOfCart  = "EventBus.listeners.add(what -> changed(what));"
	taskOfPhoto   = `Worker.tasks.add(
                    new Runnable() {
                        @Override
                        public void run() {
                            uploads++;
                        }
                    });`
	someLambda    = "Runnable some = () -> System.getProperty(\"a\");\nsome.run();\n"
	someAnonymous = "new Object() { int i; }.hashCode();\n"
)

// wishes adds a screen that leaks into a list of its own.
var wishes = []string{
	"//@visit", "Wishes.all.add(new WishScreen());", "//@class",
	"static final class WishScreen { final byte[] pixels = new byte[3200]; }\nstatic final class Wishes { static " +
		"final List<Object> all = new ArrayList<>(); }",
}

// wishInBus adds a screen that registers a lambda in the bus.
var wishInBus = []string{
	"//@visit", "new WishScreen().open();", "//@class",
	"static final class WishScreen { final byte[] pixels = new byte[3200]; Object seen; void open() { " +
		"EventBus.listeners.add(what -> seen = what); } }",
}

// Refactorings returns the changes to Market. Some changes keep the leaks of
// Market; others add a leak. The first entry does not change anything.
func Refactorings() []Refactoring {
	edit := func(name string, edits ...string) Refactoring { return Refactoring{Name: name, edits: edits} }
	moves := func(screen, name string, edits ...string) Refactoring {
		return Refactoring{Name: name, edits: edits, Changed: []string{"moved " + screen}}
	}
	few := func(r Refactoring) Refactoring { r.Few = true; return r }
	list := []Refactoring{
		few(edit("nothing")),
		{
			Name: "five times as many visits", visits: 5 * marketVisits,
			Changed: []string{
				"grown CartScreen", "grown ListScreen", "grown OrderScreen", "grown PhotoScreen", "grown ProfileScreen",
			},
		},
		edit("an additional lambda before the leak", "//@cart", someLambda, "//@visit", someLambda),
		edit("an additional anonymous class before the leak", "//@photo", someAnonymous, "//@visit", someAnonymous),
		edit("a method reference instead of a lambda", lambdaOfCart, "EventBus.listeners.add(this::changed);"),
		{
			Name: "the leaking class is renamed", edits: []string{"ListScreen", "CatalogScreen"},
			Renamed: map[string]string{"ListScreen": "CatalogScreen"},
		},
		{Name: "another garbage collector", options: []string{"-XX:-UseSerialGC", "-XX:+UseG1GC"}},
		{
			Name: "bins become trees", Made: "java.util.HashMap$TreeNode",
			edits: []string{
				"return number;\n        }\n\n        @Override\n        public boolean",
				"return 1;\n        }\n\n        @Override\n        public boolean",
			},
		},
		few(Refactoring{
			Name: "classes are loaded in a different order", Reached: "HelpScreen",
			edits: []string{"Console.serve(", "About.last = null;\nConsole.serve("},
		}),
		edit("a second anonymous class that holds as much memory", taskOfPhoto, taskOfPhoto+"\n"+taskOfPhoto),
		few(Refactoring{
			Name: "a second anonymous class that holds more memory", Changed: []string{"grown PhotoScreen"},
			edits: []string{
				"int uploads;",
				"int uploads;\nvoid again() { Worker.tasks.add(new Runnable() { @Override public void run() { " +
					"uploads--; } }); }", "//@visit", "new PhotoScreen().again();",
			}}),
		few(moves("CartScreen", "an anonymous class instead of a lambda", lambdaOfCart,
			"EventBus.listeners.add(new Listener() { @Override public void changed(Object what) { "+
				"CartScreen.this.changed(what); } });")),
		moves("PhotoScreen", "a lambda instead of an anonymous class", taskOfPhoto,
			"Worker.tasks.add(() -> uploads++);"),
		moves("PhotoScreen", "a class instead of an anonymous class", taskOfPhoto,
			"Worker.tasks.add(new Upload(this));",
			"//@class",
			"static final class Upload implements Runnable { final PhotoScreen of; Upload(PhotoScreen of) { this.of "+
				"= of; } @Override public void run() { of.uploads++; } }"),
		moves("PhotoScreen", "an inner class instead of an anonymous class", taskOfPhoto,
			"Worker.tasks.add(new Upload());",
			"int uploads;",
			"int uploads;\nfinal class Upload implements Runnable { @Override public void run() { uploads++; } }"),
		few(Refactoring{
			Name: "the class around a lambda is renamed", Changed: []string{"moved BasketScreen"},
			edits: []string{"CartScreen", "BasketScreen"}, Renamed: map[string]string{"CartScreen": "BasketScreen"},
		}),
		few(moves("ListScreen", "a field is renamed", "screens", "visited")),
		moves("ListScreen", "a holder is renamed", "Tracker", "Register"),
		moves("ListScreen", "a field moves to another class", listOfScreens, "", addOfScreen,
			"Archive.screens.add(screen);", "//@class", "static final class Archive { "+listOfScreens+" }"),
		moves("ListScreen", "a singleton instead of a static field", listOfScreens,
			"static final Tracker TRACKER = new Tracker();\nfinal Collection<Object> screens = new ArrayList<>();",
			addOfScreen, "TRACKER.screens.add(screen);"),
		few(moves("ProfileScreen", "a field is pulled up", mapOfProfiles, "", "//@shared", mapOfProfiles)),
		moves("ListScreen", "an array instead of a list", listOfScreens,
			"static Object[] screens = new Object[100];\nstatic int count;", addOfScreen, "screens[count++] = screen;"),
		few(moves("ListScreen", "a map instead of a list", listOfScreens,
			"static final Map<Integer, Object> screens = new HashMap<>();", addOfScreen,
			"screens.put(screens.size(), screen);")),
		moves("ListScreen", "a priority queue instead of a list", "new ArrayList<>();\n\n        static void opened",
			"new PriorityQueue<>(Comparator.comparingInt(System::identityHashCode));\n\n        static void opened"),
		moves("ListScreen", "a synchronized list", "new ArrayList<>();\n\n        static void opened",
			"Collections.synchronizedList(new ArrayList<>());\n\n        static void opened"),
		moves("ListScreen", "an entry object around each element", addOfScreen, "screens.add(new Entry(screen));",
			"//@class",
			"static final class Entry { final Object screen; Entry(Object screen) { this.screen = screen; } }"),
		few(Refactoring{Name: "different names", names: 3}),
		few(Refactoring{Name: "different names from another seed", names: 4}),
		few(Refactoring{Name: "a new screen has its own holder", Added: []string{"WishScreen"}, edits: wishes}),
		few(Refactoring{
			Name:    "three leaks have other holders, and a new screen has its own holder",
			Added:   []string{"WishScreen"},
			Changed: []string{"moved CartScreen", "moved ListScreen", "moved OrderScreen"},
			edits:   slices.Concat(wishes, []string{"Tracker", "Register", "EventBus", "Signals", "Orders", "History"}),
		}),
		{
			Name: "one leak is fixed, and a new screen has its own holder", Added: []string{"WishScreen"},
			Changed: []string{"gone CartScreen"}, edits: slices.Concat(wishes, []string{lambdaOfCart, ""}),
		},
		{Name: "a new screen registers a lambda in a known bus", Added: []string{"WishScreen"}, edits: wishInBus},
		few(Refactoring{
			Name:  "one leak is fixed, and another screen registers a lambda in the same bus",
			Added: []string{"WishScreen"}, Changed: []string{"gone CartScreen"},
			edits: slices.Concat(wishInBus, []string{lambdaOfCart, ""}),
		}),
		few(Refactoring{
			Name: "a new screen joins a known list", Joins: "WishScreen", Changed: []string{"grown ListScreen"},
			edits: []string{
				"//@visit", "Tracker.opened(new WishScreen());", "//@class",
				"static final class WishScreen { final byte[] pixels = new byte[3200]; }",
			}}),
		few(Refactoring{
			Name:    "a screen replaces another in the bus",
			Renamed: map[string]string{"CartScreen": "WishScreen"}, Changed: []string{"moved WishScreen"},
			edits: slices.Concat(wishInBus, []string{"new CartScreen().open();", ""}),
		}),
		few(Refactoring{
			Name:    "the leaking class is renamed, and another screen joins its list",
			Renamed: map[string]string{"ListScreen": "CatalogScreen"}, Joins: "WishScreen",
			Changed: []string{"grown CatalogScreen"},
			edits: []string{
				"ListScreen", "CatalogScreen", "//@visit",
				"Tracker.opened(new WishScreen());\nTracker.opened(new WishScreen());", "//@class",
				"static final class WishScreen { final byte[] pixels = new byte[3200]; }",
			},
		}),
		{
			Name: "a second, shorter path to the newest screen", Added: []string{"OrderScreen"},
			Changed: []string{"shrunk OrderScreen"},
			edits: []string{
				"first = order;", "first = order;\nHelp.newest = screen;", "static Object last;",
				"static Object last;\nstatic Object newest;",
			},
		},
	}
	for _, kind := range []string{
		"LinkedList", "Vector", "CopyOnWriteArrayList", "HashSet", "LinkedHashSet", "ArrayDeque",
		"ConcurrentLinkedQueue",
	} {
		list = append(list,
			moves("ListScreen", kind+" instead of ArrayList", "new ArrayList<>();\n\n        static void opened",
				"new "+kind+"<>();\n\n        static void opened"))
	}
	for _, kind := range []string{"LinkedHashMap", "TreeMap", "ConcurrentHashMap", "Hashtable"} {
		list = append(list,
			moves("ProfileScreen", kind+" instead of HashMap", "profiles = new HashMap<>()", "profiles = new "+kind+
				"<>()"))
	}
	return list
}

// source returns Market after the change.
func (r Refactoring) source(tb testing.TB) Files {
	tb.Helper()
	s := read("Console.java", "Market.java")
	for i := 0; i < len(r.edits); i += 2 {
		if !strings.Contains(s["Market.java"], r.edits[i]) {
			tb.Fatalf("%s: Market has no %q", r.Name, r.edits[i])
		}
		s["Market.java"] = strings.ReplaceAll(s["Market.java"], r.edits[i], r.edits[i+1])
	}
	return s
}

// leaking returns the classes of the screens that leak after the change, with
// their names in the source code.
func (r Refactoring) leaking() []string {
	screens := []string{"CartScreen", "ListScreen", "ProfileScreen", "PhotoScreen", "HelpScreen", "OrderScreen"}
	for i, name := range screens {
		if other := r.Renamed[name]; other != "" {
			screens[i] = other
		}
	}
	for _, name := range append(slices.Clone(r.Added), r.Joins) {
		if name != "" && !slices.Contains(screens, name) {
			screens = append(screens, name)
		}
	}
	for i := range screens {
		screens[i] = marketMain + "$" + screens[i]
	}
	return screens
}

// refactored builds and runs one changed program.
func (s *shrinker) refactored(ctx context.Context, dir string, r Refactoring, program Files, loops int) (Variant,
	error) {
	v := Variant{Name: r.Name, Leaking: r.leaking(), Iterations: cmp.Or(r.visits, marketVisits)}
	of := recipe{source: program, main: marketMain, names: r.names}
	if r.names != 0 {
		of.rules = []string{"-repackageclasses"}
	}
	jar, err := s.build(ctx, dir, of, &v)
	if err == nil {
		err = s.jdk.visited(ctx, dir, r.options, jar, &v, loops, marketMain)
	}
	return v, err
}

// Refactored builds Market after each change, and runs each build once. Each
// run consists of the given number of loops, at most marketVisits; its heap is
// dumped after each loop.
func (j *JDK) Refactored(tb testing.TB, list []Refactoring, loops int) []Variant {
	tb.Helper()
	proguard := j.shrinker(tb)
	var programs []Files
	for _, r := range list {
		programs = append(programs, r.source(tb))
	}
	if err := j.compileTogether(tb.Context(), slices.Clone(programs)); err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	variants, failures := make([]Variant, len(list)), make([]error, len(list))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i, r := range list {
		all.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			var err error
			if variants[i], err = proguard.refactored(tb.Context(), filepath.Join(dir, strconv.Itoa(i)), r, programs[i],
				loops); err != nil {
				failures[i] = fmt.Errorf("refactor %s: %w", r.Name, err)
			}
		})
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		tb.Fatal(err)
	}
	return variants
}
