package androidsim

import (
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
)

// Screen is an Activity that `am start` opens and the BACK key closes (see
// App.Screens). The launch mode of a Screen is standard: each start creates a
// new instance.
type Screen struct {
	// Class is the class of the Activity: com.shop.CartActivity, or
	// .CartActivity for short.
	Class string
	// Leaks makes a static list hold each instance after it is destroyed.
	// HeldBy names the list; if empty, it is ScreenTracker.sScreens.
	Leaks  bool
	HeldBy string
	// Lingers is how long a delayed task (a Message in the queue of the main
	// thread) holds a destroyed instance. After this time, the instance is
	// garbage.
	Lingers time.Duration
	// Views is the number of views of an instance, at least 3; 0 means 40.
	Views int
	// JavaKB is the Java memory that each opening retains: in the leaked
	// instance if Leaks is set (0 means 2 MB), otherwise in a static list of
	// its class. NativeKB and Threads are how much native memory and how many
	// threads each opening leaks.
	JavaKB, NativeKB int64
	Threads          int
	// Crashes makes the app die of a Java exception in onCreate. ANR makes
	// onCreate block until the app is killed because it does not respond.
	Crashes, ANR bool
}

const (
	usualScreenViews = 40
	leastScreenViews = 3
	// screenKB is the Java memory of an instance that does not leak.
	screenKB = 600
	// leastScreenKB is the memory of an Activity without content.
	leastScreenKB = leastShown >> 10
	// anrAfter is how long an app may leave input unhandled
	// (com.android.server.am.ActivityManagerConstants,
	// KEY_DISPATCHING_TIMEOUT_MS).
	anrAfter = 5 * time.Second
)

func (a App) class(name string) string {
	switch {
	case strings.HasPrefix(name, "."):
		return a.Package + name
	case !strings.Contains(name, "."):
		return a.Package + "." + name
	}
	return name
}

// screen returns the index in Screens of the given class, or -1.
func (a App) screen(class string) int {
	return slices.IndexFunc(a.Screens, func(s Screen) bool { return a.class(s.Class) == class })
}

// holder returns the static field that holds leaked instances of a screen.
func (a App) holder(s Screen) (class, field string) {
	held := s.HeldBy
	if held == "" {
		held = usualHolder
	}
	dot := strings.LastIndexByte(held, '.')
	if dot < 0 {
		return a.class(s.Class), held
	}
	return a.class(held[:dot]), held[dot+1:]
}

// usualHolder is the list that holds the leaks of screens without HeldBy.
const usualHolder = "ScreenTracker.sScreens"

func (s Screen) views() int {
	if s.Views == 0 {
		return usualScreenViews
	}
	return max(s.Views, leastScreenViews)
}

func (s Screen) instanceKB() int64 {
	switch {
	case !s.Leaks:
		return screenKB
	case s.JavaKB == 0:
		return mbPerActivity << 10
	}
	return max(s.JavaKB, leastScreenKB)
}

// stack is the state of a process's screens, each identified by its index in
// App.Screens. Views share its slices, so each change copies them.
type stack struct {
	// open lists the screens from the bottom of the task to its top; stopped
	// means that none of them is in front.
	open    []int
	stopped bool
	// openings counts how often each screen was opened; leaked counts its
	// leaked instances.
	openings, leaked []int
	// closed lists destroyed instances that linger or are garbage.
	closed []closedScreen
	// hung is when the main thread blocked, or never; hungIn is the screen that
	// blocked it.
	hung   time.Duration
	hungIn int
}

// closedScreen is a destroyed instance that is held until a certain time.
type closedScreen struct {
	screen int
	until  time.Duration
}

func empty() stack { return stack{hung: never} }

// inFront reports whether a screen of the process is visible.
func (s stack) inFront() bool { return len(s.open) > 0 && !s.stopped }

// counted returns a copy of counts with the screen's counter increased by one.
func counted(counts []int, screen, screens int) []int {
	out := make([]int, screens)
	copy(out, counts)
	out[screen]++
	return out
}

func (s stack) opened(screen, screens int) stack {
	s.open = append(slices.Clone(s.open), screen)
	s.openings = counted(s.openings, screen, screens)
	s.stopped = false
	return s
}

// popped returns the stack after its top screen was destroyed at the given
// time.
func (s stack) popped(screens []Screen, at time.Duration) stack {
	last := len(s.open) - 1
	n := s.open[last]
	s.open = slices.Clone(s.open[:last])
	if screens[n].Leaks {
		s.leaked = counted(s.leaked, n, len(screens))
		return s
	}
	kept := slices.DeleteFunc(slices.Clone(s.closed),
		func(c closedScreen) bool { return at-c.until > collectionInterval })
	s.closed = append(kept, closedScreen{n, at + max(screens[n].Lingers, 0)})
	return s
}

// lingering returns the destroyed instances that are held at the given time.
func (s stack) lingering(at time.Duration) (out []int) {
	for _, c := range s.closed {
		if c.until > at {
			out = append(out, c.screen)
		}
	}
	return out
}

// garbage returns the instances that nothing holds and that no collection has
// freed: neither the collection forced at the given time nor one that the app
// runs by itself.
func (s stack) garbage(at, forced time.Duration) (out []int) {
	for _, c := range s.closed {
		if c.until <= at && c.until > forced && at-c.until < collectionInterval {
			out = append(out, c.screen)
		}
	}
	return out
}

func (s stack) held(at time.Duration) []int {
	out := append(slices.Clone(s.open), s.lingering(at)...)
	for n, times := range s.leaked {
		out = append(out, slices.Repeat([]int{n}, times)...)
	}
	return out
}

func (a App) shows(process int) bool {
	main := slices.IndexFunc(a.Processes, func(s ProcessSpec) bool { return s.Name == a.Package })
	return a.Screens != nil && process == max(main, 0)
}

// background reports whether the process has screens, none of which is visible.
func (v view) background() bool { return v.screens != nil && v.hidden && !v.stack.inFront() }

func (v view) addScreens(l *levels) {
	var java, native float64
	for _, n := range v.stack.held(v.up) {
		java += float64(v.screens[n].instanceKB())
	}
	for n, times := range v.stack.openings {
		s := v.screens[n]
		if !s.Leaks {
			java += float64(times) * float64(s.JavaKB)
		}
		native += float64(times) * float64(s.NativeKB)
		threads := min(times*max(s.Threads, 0), maxThreads)
		l.threads += threads
		l.mb[Stack] += float64(threads) * mbPerThread
	}
	l.mb[JavaHeap] = min(l.mb[JavaHeap]+java/1024, maxMB)
	l.mb[NativeHeap] = min(l.mb[NativeHeap]+native/1024, maxMB)
}

// counts holds the numbers of Activities, ViewRootImpls and views in dumpsys
// meminfo and gfxinfo.
type counts struct{ activities, roots, views int }

// counts returns the object counts of the process, including leaked Activities
// and their views. Only instances that are not destroyed have a window and
// therefore a ViewRootImpl.
func (v view) counts(m memory) counts {
	c := counts{
		activities: v.activities() + m.leakedActivities, roots: v.activities(),
		views: v.views() + 25*m.leakedActivities,
	}
	for _, n := range v.stack.held(v.up) {
		c.activities++
		c.views += v.screens[n].views()
	}
	c.roots += len(v.stack.open)
	return c
}

// window returns the class of the Activity on top.
func (v view) window() string {
	if n := len(v.stack.open); n > 0 {
		return v.app.class(v.screens[v.stack.open[n-1]].Class)
	}
	return v.pkg() + ".MainActivity"
}

// uiProcess returns the process that has a package's screens, or nil.
func (p *Phone) uiProcess(pkg string) *process {
	for _, proc := range p.procs {
		if proc.ui && proc.app.Package == pkg {
			return proc
		}
	}
	return nil
}

// front returns the process whose screen is visible, or nil. The caller must
// hold the lock.
func (p *Phone) front() *process {
	for _, proc := range p.procs {
		if proc.alive() && proc.stack.inFront() {
			return proc
		}
	}
	return nil
}

// leaveFront stops the screens in front, as HOME and other apps do. The caller
// must hold the lock.
func (p *Phone) leaveFront() {
	if proc := p.front(); proc != nil {
		proc.stack.stopped = true
	}
}

// opening is how a screen came to the front.
type opening uint8

const (
	opensNew opening = iota
	// deliversToTop means that the instance on top receives the intent.
	deliversToTop
	opensCrash
)

// open brings a screen of a running process to the front. The caller must hold
// the lock.
func (p *Phone) open(proc *process, screen int, flags uint32, up time.Duration) opening {
	screens := proc.app.Screens
	if p.front() != proc {
		p.leaveFront()
	}
	proc.stack.stopped = false
	for flags&clearTask != 0 && len(proc.stack.open) > 0 {
		proc.stack = proc.stack.popped(screens, up)
	}
	if at := lastIndex(proc.stack.open, screen); flags&clearTop != 0 && at >= 0 {
		least := at
		if flags&singleTop != 0 {
			least++
		}
		for len(proc.stack.open) > least {
			proc.stack = proc.stack.popped(screens, up)
		}
	}
	if n := len(proc.stack.open); flags&singleTop != 0 && n > 0 && proc.stack.open[n-1] == screen {
		return deliversToTop
	}
	proc.stack = proc.stack.opened(screen, len(screens))
	return p.create(proc, screen, up)
}

func lastIndex(s []int, v int) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == v {
			return i
		}
	}
	return -1
}

// create runs onCreate of the instance on top. The app dies in onCreate if the
// screen is specified to crash or if the heap has no room for the instance.
func (p *Phone) create(proc *process, screen int, up time.Duration) opening {
	s := proc.app.Screens[screen]
	why := crashed
	why.class = proc.app.class(s.Class)
	v := p.view(proc, up)
	why.exhausted = v.memory().summarize().JavaHeap > int64(p.heapLimit(v))<<10
	if s.Crashes || why.exhausted {
		p.recordExit(proc, up, why)
		proc.die(up, proc.backAfter())
		return opensCrash
	}
	if s.ANR && proc.stack.hung == never {
		proc.stack.hung, proc.stack.hungIn = up, screen
	}
	return opensNew
}

// stopResponding kills a process whose main thread has blocked for too long, as
// if the user had chosen to (com.android.server.am.AppErrors, killed by
// FORCE_QUIT). The caller must hold the lock.
func (p *Phone) stopResponding(proc *process, at time.Duration) {
	class := proc.app.class(proc.app.Screens[proc.stack.hungIn].Class)
	p.recordExit(proc, at,
		cause{
			reason: androidtext.ANR, description: "user request after error: Input dispatching timed out (" +
				proc.app.Package + "/" + class + " is not responding. Waited 5001ms for KeyEvent)", class: class,
		})
	proc.die(at, proc.backAfter())
}

// toFront brings an app to the front as its icon does: with its open screens,
// or else with its first screen.
func (p *Phone) toFront(pkg string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	p.advance(up)
	proc := p.uiProcess(pkg)
	switch {
	case proc == nil:
		p.leaveFront()
	case !proc.alive():
	case len(proc.stack.open) == 0:
		p.open(proc, 0, 0, up)
	case p.front() != proc:
		p.leaveFront()
		proc.stack.stopped = false
	}
}

// The keys that close or leave screens (android.view.KeyEvent).
const (
	keyBack = "BACK"
	keyHome = "HOME"
)

func keyOf(text string) string {
	switch name := strings.TrimPrefix(text, "KEYCODE_"); name {
	case "3":
		return keyHome
	case "4":
		return keyBack
	default:
		return name
	}
}

// press applies a key. An app that does not respond does not handle the key.
func (p *Phone) press(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	p.advance(up)
	proc := p.front()
	switch {
	case proc == nil:
	case key == keyHome:
		p.leaveFront()
	case key == keyBack && proc.stack.hung == never:
		proc.stack = proc.stack.popped(proc.app.Screens, up)
	}
}

func (p *Phone) showsScreen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(p.clock.up())
	return p.front() != nil
}
