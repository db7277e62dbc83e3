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

// Redactor redacts an app's strings in reports: keys of maps, names of threads,
// titles and tags may contain personal data. Each string is replaced by a keyed
// hash. In one report, equal strings have the same replacement. Without the
// key, a string cannot be found by trying candidates.
type Redactor struct{ key []byte }

const (
	sampledBlocks = 64
	sampledBlock  = 4 << 10
)

// NewRedactor returns a redactor whose key is computed from samples of a dump,
// including contents of its arrays. Reports about the same dump have the same
// replacements, and the key cannot be computed without the dump.
func NewRedactor(r io.ReaderAt, size int64) (*Redactor, error) {
	sum, block := sha256.New(), make([]byte, sampledBlock)
	for i := range int64(sampledBlocks) {
		n, err := r.ReadAt(block, size*i/sampledBlocks)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read dump: %w", err)
		}
		sum.Write(block[:n])
	}
	return &Redactor{sum.Sum(nil)}, nil
}

// NewRandomRedactor returns a redactor with a random key that is not stored: a
// name has the same replacement everywhere in one run, but not in other runs.
func NewRandomRedactor() *Redactor {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails since Go 1.24
	return &Redactor{key}
}

// Redact returns the replacement of a string. If h is nil, or if the string is
// already a replacement, it returns the string unchanged.
func (h *Redactor) Redact(text string) string {
	if h == nil || text == "" || IsRedacted(text) {
		return text
	}
	sum := hmac.New(sha256.New, h.key)
	sum.Write([]byte(text))
	// The replacement consists only of letters: digits would be mistaken for
	// the number of a thread.
	b := []byte("…#")
	for _, x := range sum.Sum(nil)[:3] {
		b = append(b, 'a'+x>>4, 'a'+x&15)
	}
	return string(b)
}

// IsRedacted reports whether a string is a replacement.
func IsRedacted(text string) bool { return redacted.MatchString(text) }

var redacted = regexp.MustCompile(`^…#[a-p]{6}$`)

// unless returns the string itself if it matches a form that cannot contain
// personal data; otherwise it returns the replacement.
func (h *Redactor) unless(form *regexp.Regexp, text string) string {
	if form.MatchString(text) {
		return text
	}
	return h.Redact(text)
}

// Thread returns the name of a thread, redacted if necessary. Names chosen by
// the platforms and their libraries are shown, because they describe the
// purpose of a thread.
func (h *Redactor) Thread(name string) string { return h.unless(platformThreads, name) }

var platformThreads = regexp.MustCompile(
	`^(?:main|Signal (?:Catcher|Dispatcher)|Compiler|GC|JDWP|ADB-JDWP Connection Control Thread|` +
		`Reference(?:QueueDaemon| Handler)|Finalizer(?:Daemon|WatchdogDaemon)?|` +
		`Heap(?:TaskDaemon|TrimmerDaemon)|Common-Cleaner|Attach Listener|Notification Thread|Service Thread|` +
		`Monitor Deflation Thread|RenderThread|queued-work-looper|ConnectivityThread|` +
		`Jit thread pool worker thread \d{1,3}|[Bb]inder[:_]\d{1,6}(?:_[0-9A-F]{1,3})?|hwuiTask\d{1,2}|` +
		`GLThread \d{1,5}|arch_disk_io_\d{1,2}|AsyncTask #\d{1,3}|Thread-\d{1,4}|pool-\d{1,4}-thread-\d{1,4}|` +
		`Timer-\d{1,4}|` +
		`(?:OkHttp|Okio|glide|LeakCanary)[A-Za-z -]{0,40}\d{0,3}|DefaultDispatcher-worker-\d{1,3}|` +
		`kotlinx\.coroutines\.[A-Za-z.]{1,40}|ForkJoinPool(?:\.commonPool|-\d{1,3})-worker-\d{1,4}|` +
		`Rx[A-Za-z]{1,40}-\d{1,4}|process reaper)$`)

// ThreadGroup returns the pattern of a group of threads, with asterisks for
// numbers. If the names of many threads differ only in a number, the name was
// chosen by a program: it identifies the pool that grows and does not contain
// personal data. A possible address or personal number is still redacted.
func (h *Redactor) ThreadGroup(pattern string, threads int) string {
	if h == nil || platformThreads.MatchString(stars.ReplaceAllString(pattern, "1")) ||
		threads >= sharedBy && poolName.MatchString(pattern) && len(constants.FindAllString(pattern, 2)) < 2 {
		return pattern
	}
	return h.Redact(pattern)
}

// sharedBy is the minimum number of threads that must share a name before it is
// considered the name of a pool.
const sharedBy = 5

var (
	stars     = regexp.MustCompile(`\*`)
	poolName  = regexp.MustCompile(`^[A-Za-z](?:[A-Za-z_ #:*-]+\d{0,2})*$`)
	constants = regexp.MustCompile(`\d+`)
)

// component returns the title of a window, redacted if necessary. The title of
// an activity's window is the activity's name, which is shown.
func (h *Redactor) component(title string) string { return h.unless(componentName, title) }

var componentName = regexp.MustCompile(`^[A-Za-z][\w.]*/[A-Za-z.][\w.$]*$`)

// identifier returns a name, redacted unless it looks like an identifier in
// source code.
func (h *Redactor) identifier(text string) string { return h.unless(identifiers, text) }

var identifiers = regexp.MustCompile(`^[A-Za-z_][A-Za-z_]*\d{0,2}$`)

// watchKey returns LeakCanary's key of a watched object, redacted if necessary;
// reason does the same for LeakCanary's description of the object.
func (h *Redactor) watchKey(text string) string { return h.unless(uuid, text) }

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func (h *Redactor) reason(text string) string { return h.unless(watchReason, text) }

var watchReason = regexp.MustCompile(
	`^(?:Unknown \(legacy\)|[A-Za-z_$][\w.$]* received [A-Za-z]+#[A-Za-z]+\(\) callback(?: and [A-Za-z ]+)?)$`)

// path returns the path of a database, redacted if necessary.
func (h *Redactor) path(path string) string { return h.unless(plainPath, path) }

var plainPath = regexp.MustCompile(`^(?::memory:|[A-Za-z_./-]*(?:/\d{1,2}/)?[A-Za-z_./-]*\d{0,2}(?:\.[a-z]{1,8})?)$`)

// Survey redacts the strings of a survey.
func (h *Redactor) Survey(s *Survey) {
	if h == nil {
		return
	}
	for i := range s.Threads.List {
		s.Threads.List[i].Name = h.Thread(s.Threads.List[i].Name)
	}
	if s.Strings != nil {
		for _, list := range [][]RepeatedString{s.Strings.Repeated, s.Strings.Wasteful} {
			for i := range list {
				list[i].Value = h.Redact(list[i].Value)
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
