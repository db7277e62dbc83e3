package androidsim

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/ksh"
)

// The first API levels at which dumpheap supports -g and -b, and at which it
// waits for the end of the dump.
const (
	heapGC      = 28
	heapBitmaps = 35
	heapWaits   = 30
	// heapErases is the first API level whose ART empties an incomplete dump.
	heapErases = 23
)

// dumpTakes is the device time that a heap dump takes.
const dumpTakes = 2 * time.Second

type heapOptions struct {
	native, collect bool
	bitmaps         string
}

// dumpHeap implements am dumpheap (ActivityManagerShellCommand.runDumpHeap).
func (c *call) dumpHeap(args []string) int {
	var o heapOptions
	api := c.phone.opt.API
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch option := args[0]; {
		case option == "-n":
			o.native = true
		case option == "-g" && api >= heapGC:
			o.collect = true
		case option == "-b" && api >= heapBitmaps && len(args) > 1:
			args = args[1:]
			o.bitmaps = args[0]
		case option == "--user" && len(args) > 1:
			args = args[1:]
		default:
			fmt.Fprintf(c.Errs, "Error: Unknown option: %s\n", option)
			return 255
		}
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(c.Errs, "Error: Argument expected after \"dumpheap\"")
		return 255
	}
	name := "/data/local/tmp/heapdump-" + c.phone.wall().UTC().Format("20060102-150405") + ".prof"
	if len(args) > 1 {
		name = args[1]
	}
	var w *fileWriter
	if at := clean(c.Dir, name); strings.HasPrefix(at, "/data/local/tmp/") {
		w, _ = c.phone.openWrite(at, c.Cred, 0o666, false, false)
	}
	if w == nil {
		fmt.Fprintf(c.Errs, "Error: Unable to open file: %s\nConsider using a file under /data/local/tmp/\n", name)
		return 255
	}
	if len(args) < 2 || api >= 26 {
		c.Printf("File: %s\n", name)
	}
	found := c.phone.wanted(args[0], false)
	if len(found) == 0 || found[0].native {
		fmt.Fprintf(c.Errs,
			"\nException occurred while executing 'dumpheap':\njava.lang.IllegalArgumentException: Unknown process: "+
				"%s\n\tat com.android.server.am.ActivityManagerService.dumpHeap(ActivityManagerService.java:16012)\n",
			args[0])
		return 255
	}
	v := found[0]
	if c.phone.opt.BuildType == "user" && (v.app == nil || !v.app.Debuggable) {
		c.Out.Flush()
		fmt.Fprintf(c.Errs, "Security exception: Process not debuggable: ProcessRecord{%x %d:%s/%s}\n",
			hashText(v.name)&0xfffffff, v.pid, v.name, userName(v.uid))
		return 255
	}
	return c.writeHeap(w, v, o)
}

func (c *call) writeHeap(w *fileWriter, v view, o heapOptions) int {
	if o.collect {
		c.phone.collect(v)
	}
	server, up := c.phone.server(), c.phone.Uptime()
	w.growing(up, up+maxWait)
	// Only the log of the app says whether the dump was written: am is only
	// notified that the app has finished (ActivityThread.handleDumpHeap). If
	// the dump failed, the file is empty (art/runtime/hprof/hprof.cc,
	// DumpToFile, FdFile::Erase) or truncated.
	err := c.fillHeap(w, v, o)
	if !o.native {
		c.phone.logDump(v, w.name, w.length(), err)
	}
	if err != nil && !o.native && c.phone.opt.API >= heapErases {
		w.erase()
	}
	for _, f := range c.phone.faults() {
		if f.cut != nil {
			w.cut(*f.cut)
		}
	}
	if v.frozen {
		w.growing(up, up+maxWait) // the app writes the file once it is thawed
	} else {
		w.growing(up, up+dumpTakes)
		c.phone.watchDump(w, v)
	}
	if c.phone.opt.API < heapWaits {
		return 0 // the file grows after the command has returned
	}
	c.Printf("Waiting for dump to finish...\n")
	c.Out.Flush()
	if !v.frozen && c.phone.now().wait(c.Ctx, dumpTakes) == nil {
		now, ok := c.phone.find(v.pid)
		switch {
		case c.phone.server() != server:
			// system_server has died (frameworks/native, cmds/cmd/cmd.cpp).
			fmt.Fprintf(c.Errs, "cmd: Failure calling service activity: Broken pipe (32)\n")
			return 224
		case ok && now.start == v.start:
			return 0
		}
		// A process that has died does not report the end of the dump.
	}
	<-c.Ctx.Done()
	return ksh.Status(c.Ctx)
}

// collect runs System.gc in a process.
func (p *Phone) collect(v view) {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	for _, proc := range p.procs {
		if proc.pid == v.pid && proc.start == v.start {
			proc.gc = proc.age(up)
			p.logCollection(proc, up, false)
		}
	}
}

func (c *call) fillHeap(w *fileWriter, v view, o heapOptions) error {
	api := c.phone.opt.API
	if o.native {
		_, err := io.WriteString(w, nativeHeap(api))
		return err
	}
	m := v.memory()
	h := Heap{
		Process: v.name, PID: v.pid, Up: v.up, Age: v.age, API: api, Java: m.summarize().JavaHeap << 10,
		Leaked: int64(m.leaked*(1<<20)) + v.heldBytes(), Collected: o.collect, Bitmaps: o.bitmaps,
	}
	if c.phone.opt.DumpHeap != nil {
		return c.phone.opt.DumpHeap(w, h)
	}
	form := hproftest.Form{Time: c.phone.wall()}
	size, err := c.phone.describe(h, v).Measure(form)
	if err != nil {
		return err
	}
	// Only the request is stored, not the larger description built from it.
	return w.fill(made{open: func() io.Reader { return c.phone.describe(h, v).Reader(form) }, size: size})
}

// nativeHeap returns the content of the file if libc does not record
// allocations; it records them only on request (bionic,
// malloc_common_dynamic.cpp, WriteMallocLeakInfo; android_os_Debug.cpp before
// Android 7).
func nativeHeap(api int) string {
	const head = "Native heap dump not available. To enable, run these commands (requires root):\n"
	if api < 24 {
		return head + "$ adb shell setprop libc.debug.malloc 1\n$ adb shell stop\n$ adb shell start\n"
	}
	return head + "# adb shell stop\n# adb shell setprop libc.debug.malloc.options backtrace\n# adb shell start\n"
}

// Limits on the content of a dump: it contains all that the leaked objects
// retain, and a part of the rest of the heap.
const (
	maxBallast = 4 << 20
	// maxShown bounds the leaked bytes: no heap is larger (dalvik.vm.heapsize).
	maxShown = 1 << 30
	// leastShown is the smallest leak, in bytes, that a dump contains; it is
	// smaller than an empty Activity.
	leastShown = 16 << 10
	// photo is the size in bytes of the arrays that leaked Activities hold.
	photo = 256 << 10
)

// describe builds the heap of a process. It contains the app's foreground
// Activity or screens, and the leaked Activities, which dumpsys meminfo also
// counts. In the dump, the leaked Activities retain h.Leaked bytes.
func (p *Phone) describe(h Heap, v view) *hproftest.Heap {
	heap := hproftest.Android(hproftest.Phone{
		SDK: h.API, Seed: mix(hashText(v.name), 1), Process: h.Process, Manufacturer: p.opt.Manufacturer,
		Model: p.opt.Model,
	})
	modelled := min(h.Leaked-v.heldBytes(), maxShown)
	held := v.declare(heap, modelled >= leastShown)
	if v.activities() > 0 {
		addViews(heap, heap.Activity(v.pkg()+".MainActivity", hproftest.Attached), frontViews)
	}
	images(heap, v.pkg())
	if h.Bitmaps == "png" {
		heap.DumpBitmaps()
	}
	heap.Hold(v.pkg()+".Http", "HEADERS", heap.Duplicates("application/json", 24).Ref)
	for n := threadsOf(v); n < v.memory().threads; n++ {
		heap.Thread(v.poolThread(n))
	}
	leak(heap, held, held.classes[v.leakClass()], v.usualField(), modelled)
	holdActivities(heap, held.classes, v.held)
	v.dumpScreens(heap, held, h.Collected)
	if v.spec != nil {
		pad(heap, v.pkg(), v.spec.DumpBytes)
	}
	heap.Fill(hproftest.Ballast{
		Package: v.pkg() + ".data", Bytes: min(max(h.Java-h.Leaked, 0)/2, maxBallast), Seed: hashText(v.name),
		Clean: h.Collected,
	})
	return heap
}

const (
	// maxPadded bounds ProcessSpec.DumpBytes: 16 GB.
	maxPadded = 16 << 30
	// padding is the size of the arrays that enlarge a dump, in bytes.
	padding = 16 << 20
)

// pad adds arrays to a cache until the dump has the given size in bytes.
func pad(h *hproftest.Heap, pkg string, bytes int64) {
	bytes = min(bytes, maxPadded) - h.Shallow(0)
	var pages []hproftest.Ref
	for ; bytes > 0; bytes -= padding {
		pages = append(pages, h.Padding(uint32(min(bytes, padding))))
	}
	if pages != nil {
		h.Hold(pkg+".PageCache", "sPages", h.ArrayList(pages...).Ref)
	}
}

// addViews adds views to an Activity until it has n, including the three that
// it has initially.
func addViews(h *hproftest.Heap, a hproftest.Activity, n int) {
	for range n - 3 {
		h.AddView(a.Content,
			h.New(h.Class("android.widget.ImageView"), hproftest.Fields{"mContext": a.Ref, "mWindowAttachCount": 1}))
	}
}

// images builds a cache of images, two of which are identical.
func images(h *hproftest.Heap, pkg string) {
	var pairs []hproftest.Ref
	for i, p := range []hproftest.Picture{
		{Width: 48, Height: 48, Content: 1}, {Width: 48, Height: 48, Content: 1}, {Width: 96, Height: 64, Content: 2},
	} {
		pairs = append(pairs, h.String(fmt.Sprintf("https://shop.example/%d.png", i)), h.Bitmap(p))
	}
	h.Hold(pkg+".ImageCache", "sImages", h.LinkedHashMap(pairs...))
}

func threadsOf(v view) int {
	if v.spec != nil && v.spec.Threads != 0 {
		return v.spec.Threads
	}
	return defaultThreads
}

// leak builds destroyed Activities that a static list still holds. When the
// leak grows, the existing Activities do not change.
func leak(h *hproftest.Heap, held *holders, detail *hproftest.Class, field staticField, bytes int64) {
	if bytes < leastShown {
		return
	}
	// The last Activity holds the remainder.
	const each = bytesPerActivity
	screens := held.list(field)
	for n := max(bytes/each, 1); n > 0; n-- {
		screens.Add(page(h, detail, hproftest.Destroyed, leakedViews, map[bool]int64{true: bytes, false: each}[n == 1]).
			Ref)
		bytes -= each
	}
}

// bytesPerActivity is the retained size of a leaked Activity in bytes.
const bytesPerActivity = mbPerActivity << 20

func (v view) leakClass() string { return v.pkg() + ".DetailActivity" }

// holdActivities builds the destroyed Activities that tests have leaked, held
// by a static list of their class.
func holdActivities(h *hproftest.Heap, classes map[string]*hproftest.Class, held []LeakedActivities) {
	left := maxHeldActivities
	for _, l := range held {
		instances := h.ArrayList()
		for range min(l.Count, left) {
			instances.Add(page(h, classes[l.Class], hproftest.Destroyed, leakedViews, bytesPerActivity).Ref)
			left--
		}
		h.SetStatic(classes[l.Class], "sInstances", instances.Ref)
	}
}

// leakedViews is the number of views of an Activity that a model or a test has
// leaked.
const leakedViews = leastScreenViews + 22

// page builds an Activity that retains the given number of bytes, or more if an
// Activity without content already retains more.
func page(h *hproftest.Heap, class *hproftest.Class, s hproftest.State, views int, bytes int64) hproftest.Activity {
	mark := h.Len()
	a := h.Activity(class.Name(), s)
	addViews(h, a, views)
	photos := make([]hproftest.Ref, bytes/photo+1)
	list := h.ArrayList(photos...)
	h.Set(a.Ref, "mPhotos", list.Ref)
	left := bytes - h.Shallow(mark)
	for i := range photos {
		if left <= 0 {
			break
		}
		h.SetElement(list.Array(), i, h.Padding(uint32(min(left, photo))))
		left -= photo
	}
	return a
}

type dumping struct {
	node         *node
	since, until time.Duration
	proc         *process
	instance     int
}

// growing makes the file grow between the two given times.
func (w *fileWriter) growing(since, until time.Duration) {
	if w.node == nil {
		return
	}
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.node.since, w.node.until = since, until
}

// watchDump stops the growth of w's file when the process that writes the dump
// ends.
func (p *Phone) watchDump(w *fileWriter, v view) {
	if w.node == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endDumps(p.clock.up(), false)
	p.files.mu.Lock()
	defer p.files.mu.Unlock()
	for _, proc := range p.procs {
		if proc.pid == v.pid && proc.start == v.start {
			p.dumps = append(p.dumps, dumping{w.node, w.node.since, w.node.until, proc, proc.instance})
		}
	}
}

// fileTime returns the device time, after it has updated the dumps in progress.
func (p *Phone) fileTime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	if len(p.dumps) > 0 {
		p.advance(up)
		p.endDumps(up, false)
	}
	return up
}

// endDumps truncates the dumps whose process has died, or all incomplete dumps
// if all is set, to the part that has been written. The caller must hold the
// lock.
func (p *Phone) endDumps(up time.Duration, all bool) {
	p.files.mu.Lock()
	defer p.files.mu.Unlock()
	p.dumps = slices.DeleteFunc(p.dumps, func(d dumping) bool {
		if n := d.node; n.since != d.since || n.until != d.until {
			return true // the path names a new file
		}
		at, died := up, all
		if !d.proc.alive() || d.proc.instance != d.instance {
			at, died = min(d.proc.died, up), true
		}
		if died && at < d.until {
			p.files.cut(d.node, d.node.size(at))
		}
		if died || up >= d.until {
			d.node.until = 0
			return true
		}
		return false
	})
}

// fill makes m the content of the file, truncated to the free space.
func (w *fileWriter) fill(m made) error {
	if w.node == nil {
		return nil
	}
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	if err := w.store.fill(w.node, m); err != nil {
		return pathError("write", w.name, err)
	}
	return nil
}

func (w *fileWriter) cut(size int64) {
	if w.node == nil {
		return
	}
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.store.cut(w.node, size)
}

// length returns the final size of the file in bytes.
func (w *fileWriter) length() int64 {
	if w.node == nil {
		return 0
	}
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	return w.node.length()
}

func (w *fileWriter) erase() {
	if w.node == nil {
		return
	}
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.store.empty(w.node)
}
