package android

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// Hider keeps texts of an app out of reports: keys of maps, names of threads, titles and
// tags may be about people. What stands for one is a hash with a key, so that two that are
// the same look the same in one report, and nobody can try what they may be.
type Hider struct{ key []byte }

const (
	hiderBlocks = 64
	hiderBlock  = 4 << 10
)

// NewHider makes a hider whose key are samples of a dump, contents of its arrays among them:
// one report is like another of the same dump, and whoever has not the dump has not the key.
func NewHider(r io.ReaderAt, size int64) (*Hider, error) {
	sum, block := sha256.New(), make([]byte, hiderBlock)
	for i := range int64(hiderBlocks) {
		n, err := r.ReadAt(block, size*i/hiderBlocks)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read dump: %w", err)
		}
		sum.Write(block[:n])
	}
	return &Hider{sum.Sum(nil)}, nil
}

// NewRandomHider makes a hider with a key that nobody keeps: the names of one run are alike
// in all its texts, and those of two runs are not.
func NewRandomHider() *Hider {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails since Go 1.24
	return &Hider{key}
}

// Hide returns what stands for a text: itself where h is nil, or where it stands for one.
func (h *Hider) Hide(text string) string {
	if h == nil || text == "" || IsHidden(text) {
		return text
	}
	sum := hmac.New(sha256.New, h.key)
	sum.Write([]byte(text))
	// Letters alone: digits would be taken for the number of a thread.
	b := []byte("…#")
	for _, x := range sum.Sum(nil)[:3] {
		b = append(b, 'a'+x>>4, 'a'+x&15)
	}
	return string(b)
}

// IsHidden reports whether a text stands for a hidden one.
func IsHidden(text string) bool { return hidden.MatchString(text) }

var hidden = regexp.MustCompile(`^…#[a-p]{6}$`)

// unless shows a text that says nothing of people, by its form.
func (h *Hider) unless(form *regexp.Regexp, text string) string {
	if form.MatchString(text) {
		return text
	}
	return h.Hide(text)
}

// Thread is the name of a thread: those that the platforms and their libraries give say
// what a thread is for.
func (h *Hider) Thread(name string) string { return h.unless(platformThreads, name) }

var platformThreads = regexp.MustCompile(`^(?:main|Signal (?:Catcher|Dispatcher)|Compiler|GC|JDWP|ADB-JDWP Connection Control Thread|Reference(?:QueueDaemon| Handler)|Finalizer(?:Daemon|WatchdogDaemon)?|` +
	`Heap(?:TaskDaemon|TrimmerDaemon)|Common-Cleaner|Attach Listener|Notification Thread|Service Thread|Monitor Deflation Thread|RenderThread|queued-work-looper|ConnectivityThread|` +
	`Jit thread pool worker thread \d{1,3}|[Bb]inder[:_]\d{1,6}(?:_[0-9A-F]{1,3})?|hwuiTask\d{1,2}|GLThread \d{1,5}|arch_disk_io_\d{1,2}|AsyncTask #\d{1,3}|Thread-\d{1,4}|pool-\d{1,4}-thread-\d{1,4}|Timer-\d{1,4}|` +
	`(?:OkHttp|Okio|glide|LeakCanary)[A-Za-z -]{0,40}\d{0,3}|DefaultDispatcher-worker-\d{1,3}|kotlinx\.coroutines\.[A-Za-z.]{1,40}|ForkJoinPool(?:\.commonPool|-\d{1,3})-worker-\d{1,4}|Rx[A-Za-z]{1,40}-\d{1,4}|process reaper)$`)

// ThreadGroup is the pattern of a group of threads, with * for numbers. A name that many
// threads share but for a number was made by a program: it says which pool grows and
// nothing of people. What may be an address or a number of somebody's stays hidden.
func (h *Hider) ThreadGroup(pattern string, threads int) string {
	if h == nil || platformThreads.MatchString(stars.ReplaceAllString(pattern, "1")) ||
		threads >= sharedBy && poolName.MatchString(pattern) && len(constants.FindAllString(pattern, 2)) < 2 {
		return pattern
	}
	return h.Hide(pattern)
}

// sharedBy is how many threads have a name before it counts as that of a pool.
const sharedBy = 5

var (
	stars     = regexp.MustCompile(`\*`)
	poolName  = regexp.MustCompile(`^[A-Za-z](?:[A-Za-z_ #:*-]+\d{0,2})*$`)
	constants = regexp.MustCompile(`\d+`)
)

// component is the title of a window: that of an activity is its name.
func (h *Hider) component(title string) string { return h.unless(componentName, title) }

var componentName = regexp.MustCompile(`^[A-Za-z][\w.]*/[A-Za-z.][\w.$]*$`)

// identifier is what a programmer wrote.
func (h *Hider) identifier(text string) string { return h.unless(identifiers, text) }

var identifiers = regexp.MustCompile(`^[A-Za-z_][A-Za-z_]*\d{0,2}$`)

// watchKey is LeakCanary's key of a watched object; reason is what it says of it.
func (h *Hider) watchKey(text string) string { return h.unless(uuid, text) }

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func (h *Hider) reason(text string) string { return h.unless(watchReason, text) }

var watchReason = regexp.MustCompile(`^(?:Unknown \(legacy\)|[A-Za-z_$][\w.$]* received [A-Za-z]+#[A-Za-z]+\(\) callback(?: and [A-Za-z ]+)?)$`)

// path is that of a database.
func (h *Hider) path(path string) string { return h.unless(plainPath, path) }

var plainPath = regexp.MustCompile(`^(?::memory:|[A-Za-z_./-]*(?:/\d{1,2}/)?[A-Za-z_./-]*\d{0,2}(?:\.[a-z]{1,8})?)$`)

// Survey hides what a survey says of texts.
func (h *Hider) Survey(s *Survey) {
	if h == nil {
		return
	}
	for i := range s.Threads.List {
		s.Threads.List[i].Name = h.Thread(s.Threads.List[i].Name)
	}
	if s.Strings != nil {
		for _, list := range [][]RepeatedString{s.Strings.Repeated, s.Strings.Wasteful} {
			for i := range list {
				list[i].Value = h.Hide(list[i].Value)
			}
		}
	}
	if s.Components != nil {
		for i := range s.Components.Databases.List {
			d := &s.Components.Databases.List[i]
			d.Path = h.path(d.Path)
		}
	}
	if s.Exhaustion != nil {
		for i := range s.Exhaustion.ThreadGroups {
			g := &s.Exhaustion.ThreadGroups[i]
			g.Pattern = h.ThreadGroup(g.Pattern, int(g.Threads))
		}
	}
}
