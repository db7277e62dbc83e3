package androidsim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/internal/ksh"
)

// The UIDs that matter here (system/core android_filesystem_config.h).
const (
	uidRoot   = 0
	uidSystem = 1000
	uidShell  = 2000
)

// cred identifies who accesses a file.
type cred = ksh.Cred

// Limits on the files in memory.
const (
	maxFile  = 128 << 20
	maxFiles = 256 << 20
	maxNodes = 4096
	maxPath  = 4096
)

// node is a stored file or directory. Nodes are guarded by store.mu.
type node struct {
	mode fs.FileMode
	uid  int
	data []byte
	mod  time.Time
	// counted means that the data counts toward store.used until the node is
	// removed.
	counted bool
	// If until is set, the system is still writing the file, which grows
	// linearly between the device times since and until.
	since, until time.Duration
	// made, if set, generates the content; data is then unused.
	made *made
}

// made is content that is generated on each read and never stored. open returns
// the same bytes each time; the file consists of the first size bytes.
type made struct {
	open func() io.Reader
	size int64
}

// reader returns a reader for the first n bytes.
func (m *made) reader(n int64) io.Reader { return io.LimitReader(m.open(), n) }

// store holds the phone's files and directories, except the files in /proc and
// /dev.
type store struct {
	phone *Phone
	mu    sync.Mutex
	nodes map[string]*node
	// used is the total size of all file contents in bytes, room is the maximum
	// of used, and made is the part of used that is generated.
	used, room, made int64
}

// info describes a file; it implements fs.FileInfo and ksh.FileInfo.
type info struct {
	name string
	size int64
	mode fs.FileMode
	mod  time.Time
	uid  int
	// link is the target of a symbolic link.
	link string
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.mod }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
func (i info) Owner() int         { return i.uid }
func (i info) Target() string     { return i.link }

func newStore(p *Phone) *store {
	s := &store{phone: p, nodes: map[string]*node{}, room: maxFiles}
	dir := func(name string, mode fs.FileMode, uid int) {
		s.nodes[name] = &node{mode: fs.ModeDir | mode, uid: uid, mod: p.wall()}
	}
	file := func(name, text string) {
		s.nodes[name] = &node{mode: 0o644, data: []byte(text), mod: p.wall()}
	}
	for _, name := range []string{
		"/", "/dev", "/system", "/system/bin", "/system/xbin", "/system/etc", "/system/framework", "/vendor",
		"/storage",
	} {
		dir(name, 0o755, uidRoot)
	}
	dir("/data", 0o771, uidSystem)
	dir("/data/local", 0o751, uidRoot)
	dir("/data/local/tmp", 0o771, uidShell)
	dir("/data/data", 0o771, uidSystem)
	dir("/data/app", 0o771, uidSystem)
	dir("/sdcard", 0o777, uidShell)
	dir("/sdcard/Download", 0o777, uidShell)
	file("/system/etc/hosts", "127.0.0.1       localhost\n::1             ip6-localhost\n")
	var props strings.Builder
	for _, kv := range p.properties() {
		if strings.HasPrefix(kv.name, "ro.") && !strings.HasPrefix(kv.name, "ro.boot.") {
			props.WriteString(kv.name + "=" + kv.value + "\n")
		}
	}
	file("/system/build.prop", props.String())
	for i, app := range p.opt.Apps {
		code := appCode(app.Package, p.opt.API)
		for at := code; at != "/data/app"; at = path.Dir(at) {
			dir(at, 0o755, uidSystem)
		}
		file(code+"/base.apk", fmt.Sprintf("PK\x03\x04 %s 1.%d", app.Package, i))
		home := appHome(app)
		for _, above := range []string{"/data/user", path.Dir(home)} {
			if s.nodes[above] == nil {
				dir(above, 0o711, uidSystem)
			}
		}
		for _, name := range []string{"", "/cache", "/code_cache", "/files"} {
			dir(home+name, 0o700, app.UID)
		}
	}
	return s
}

// appHome returns the private directory of an app. Each user other than the
// owner has a separate directory for the app.
func appHome(app App) string {
	if app.User == 0 {
		return "/data/data/" + app.Package
	}
	return "/data/user/" + strconv.Itoa(app.User) + "/" + app.Package
}

// clean makes a path absolute and resolves the symbolic links of the phone.
func clean(dir, name string) string {
	if !strings.HasPrefix(name, "/") {
		name = dir + "/" + name
	}
	name = path.Clean("/" + name)
	for _, l := range links {
		if rest, ok := strings.CutPrefix(name, l.from); ok && (rest == "" || rest[0] == '/') {
			return l.to + rest
		}
	}
	return name
}

var links = []struct{ from, to string }{
	{"/etc", "/system/etc"}, {"/bin", "/system/bin"}, {"/data/user/0", "/data/data"},
	{"/storage/emulated/0", "/sdcard"},
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// allowed reports whether uid has the permissions in bits: 4 read, 2 write, 1
// search.
func (n *node) allowed(uid int, bits fs.FileMode) bool {
	perm := n.mode.Perm()
	if uid == n.uid {
		perm >>= 6
	}
	return uid == uidRoot || perm&bits == bits
}

// length returns the final size of the file in bytes.
func (n *node) length() int64 {
	if n.made != nil {
		return n.made.size
	}
	return int64(len(n.data))
}

// size returns the number of bytes of the file that are visible now.
func (n *node) size(up time.Duration) int64 {
	all := n.length()
	if n.until == 0 || up >= n.until {
		return all
	}
	if up <= n.since {
		return 0
	}
	return int64(float64(all) * float64(up-n.since) / float64(n.until-n.since))
}

// walk checks that every directory above name may be searched. The caller must
// hold the lock.
func (s *store) walk(name string, uid int) error {
	if len(name) > maxPath {
		return syscall.ENAMETOOLONG
	}
	for i := 1; i < len(name); i++ {
		if name[i] != '/' {
			continue
		}
		n := s.nodes[name[:i]]
		switch {
		case n == nil:
			return fs.ErrNotExist
		case !n.mode.IsDir():
			return syscall.ENOTDIR
		case !n.allowed(uid, 1):
			return fs.ErrPermission
		}
	}
	return nil
}

// find returns the node at a path. The caller must hold the lock.
func (s *store) find(name string, uid int) (*node, error) {
	if err := s.walk(name, uid); err != nil {
		return nil, err
	}
	n := s.nodes[name]
	if n == nil {
		return nil, fs.ErrNotExist
	}
	return n, nil
}

func (s *store) info(name string, n *node, up time.Duration) info {
	i := info{name: path.Base(name), mode: n.mode, mod: n.mod, uid: n.uid, size: n.size(up)}
	if n.mode.IsDir() {
		i.size = 4096
	}
	return i
}

func (p *Phone) stat(name string, c cred) (info, error) {
	if p.broken(name) == FileMissing {
		return info{}, fs.ErrNotExist
	}
	if proc, ok := procPath(name); ok {
		i, _, err := p.procEntry(proc, c)
		return i, err
	}
	if i, ok := devices[name]; ok {
		return i, nil
	}
	if tool, ok := p.toolAt(name); ok {
		return info{name: tool, mode: 0o755, size: 1 << 18}, nil
	}
	up := p.fileTime()
	p.files.mu.Lock()
	defer p.files.mu.Unlock()
	n, err := p.files.find(name, c.UID)
	if err != nil {
		return info{}, err
	}
	return p.files.info(name, n, up), nil
}

// readAll returns the current content of a file.
func (p *Phone) readAll(name string, c cred) (io.Reader, error) {
	if err, ok := p.broken(name).read(); ok {
		return strings.NewReader(""), err
	}
	if proc, ok := procPath(name); ok {
		data, err := p.procRead(proc, c)
		return bytes.NewReader(data), err
	}
	switch name {
	case "/dev/null":
		return strings.NewReader(""), nil
	case "/dev/zero":
		return zeros{}, nil
	}
	if _, ok := p.toolAt(name); ok {
		return strings.NewReader("\x7fELF\x02\x01\x01"), nil
	}
	up := p.fileTime()
	p.files.mu.Lock()
	defer p.files.mu.Unlock()
	n, err := p.files.find(name, c.UID)
	switch {
	case err != nil:
		return nil, err
	case n.mode.IsDir():
		return nil, syscall.EISDIR
	case !n.allowed(c.UID, 4):
		return nil, fs.ErrPermission
	}
	end := n.size(up)
	if n.made != nil {
		return n.made.reader(end), nil
	}
	// Appending to the file may write beyond this slice, but never changes the
	// bytes inside it.
	return bytes.NewReader(n.data[:end:end]), nil
}

// readDir lists a directory, sorted by name.
func (p *Phone) readDir(name string, c cred) ([]info, error) {
	if err, ok := p.broken(name).read(); ok {
		return nil, err
	}
	list, err := p.listDir(name, c)
	if p.wrong.Load() != nil {
		list = slices.DeleteFunc(list, func(i info) bool { return p.broken(path.Join(name, i.name)) == FileMissing })
	}
	return list, err
}

func (p *Phone) listDir(name string, c cred) ([]info, error) {
	if proc, ok := procPath(name); ok {
		return p.procDir(proc, c)
	}
	up := p.fileTime()
	p.files.mu.Lock()
	defer p.files.mu.Unlock()
	n, err := p.files.find(name, c.UID)
	switch {
	case err != nil:
		return nil, err
	case !n.mode.IsDir():
		return nil, syscall.ENOTDIR
	case !n.allowed(c.UID, 4):
		return nil, fs.ErrPermission
	}
	var out []info
	for child, n := range p.files.nodes {
		if child != "/" && path.Dir(child) == name {
			out = append(out, p.files.info(child, n, up))
		}
	}
	switch name {
	case "/":
		out = append(out, info{name: "proc", mode: fs.ModeDir | 0o555, mod: n.mod})
	case "/dev":
		for _, i := range devices {
			out = append(out, i)
		}
	case "/system/bin", "/system/xbin":
		for _, tool := range p.tools() {
			if p.folder(tool) != name+"/" {
				continue
			}
			out = append(out, info{name: tool, mode: 0o755, size: 1 << 18, mod: n.mod})
		}
	}
	slices.SortFunc(out, func(a, b info) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// place checks that uid may create name. The caller must hold the lock.
func (s *store) place(name string, uid int) error {
	if err := s.walk(name, uid); err != nil {
		return err
	}
	if _, ok := procPath(name); ok || strings.HasPrefix(name, "/dev/") {
		return fs.ErrPermission
	}
	parent := s.nodes[path.Dir(name)]
	switch {
	case parent == nil:
		return fs.ErrNotExist
	case strings.HasPrefix(name, "/system"):
		return syscall.EROFS
	case !parent.allowed(uid, 2):
		return fs.ErrPermission
	case len(s.nodes) >= maxNodes:
		return syscall.ENOSPC
	}
	return nil
}

// openWrite opens a file for writing, and truncates it unless add is set. A
// staged file appears only on commit.
func (p *Phone) openWrite(name string, c cred, mode fs.FileMode, add, staged bool) (*fileWriter, error) {
	if _, ok := devices[name]; ok {
		return &fileWriter{}, nil
	}
	s := p.files
	s.mu.Lock()
	defer s.mu.Unlock()
	old, err := s.find(name, c.UID)
	switch {
	case err == nil && old.mode.IsDir():
		return nil, syscall.EISDIR
	case err == nil && !old.allowed(c.UID, 2):
		return nil, fs.ErrPermission
	case err == nil && strings.HasPrefix(name, "/system"):
		return nil, syscall.EROFS
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err != nil:
		if err := s.place(name, c.UID); err != nil {
			return nil, err
		}
	}
	if old != nil && !staged {
		if add && old.made != nil {
			return nil, syscall.EFBIG
		}
		if !add {
			s.empty(old)
		}
		old.mod, old.until = p.wall(), 0
		return &fileWriter{store: s, node: old, name: name}, nil
	}
	n := &node{mode: mode.Perm(), uid: c.UID, mod: p.wall(), counted: !staged}
	if !staged {
		s.nodes[name] = n
	}
	return &fileWriter{store: s, node: n, name: name, staged: staged}, nil
}

// counts returns the number of bytes that the node contributes to store.used.
func (n *node) counts() int64 {
	if !n.counted {
		return 0
	}
	return n.length()
}

// empty removes the content of a file. The caller must hold the lock.
func (s *store) empty(n *node) {
	s.forget(n)
	// A new slice is used, because readers may still hold the old one.
	n.data, n.made = nil, nil
}

// forget subtracts the content of a file from the used space. The caller must
// hold the lock.
func (s *store) forget(n *node) {
	s.used -= n.counts()
	if n.made != nil {
		s.made -= n.counts()
	}
}

// fill makes m the content of an empty file, truncated to the available space.
// The caller must hold the lock.
func (s *store) fill(n *node, m made) error {
	space := int64(dataSpace)<<10 - s.used
	if _, filled := s.limit(); filled {
		space = s.free()
	}
	var err error
	if m.size > space {
		m.size, err = max(space, 0), syscall.ENOSPC
	}
	n.made = &m
	s.used += n.counts()
	s.made += n.counts()
	return err
}

// cut truncates a file. The caller must hold the lock.
func (s *store) cut(n *node, size int64) {
	if n.length() <= size {
		return
	}
	data, m := n.data, n.made
	s.empty(n)
	if m != nil {
		s.fill(n, made{m.open, size})
		return
	}
	n.data = data[:size:size]
	s.used += n.counts()
}

// fileWriter writes one file; without a node, it discards the data.
type fileWriter struct {
	store *store
	node  *node
	name  string
	// staged means that the file does not exist under its name yet and does not
	// count toward store.used.
	staged bool
}

func (w *fileWriter) Write(b []byte) (int, error) {
	if w.node == nil {
		return len(b), nil
	}
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.node.counted && !w.staged {
		// The file was removed, so nobody can read it.
		return len(b), nil
	}
	// Like the kernel, write the part that fits.
	space := s.free()
	if w.staged {
		space -= int64(len(w.node.data))
		if old := s.nodes[w.name]; old != nil {
			space += old.counts()
		}
	}
	n := int(max(0, min(space, maxFile-int64(len(w.node.data)), int64(len(b)))))
	w.node.data = append(w.node.data, b[:n]...)
	if !w.staged {
		s.used += int64(n)
	}
	if n < len(b) {
		return n, pathError("write", w.name, syscall.ENOSPC)
	}
	return n, nil
}

// free returns the number of available bytes. The caller must hold the lock.
func (s *store) free() int64 {
	limit, _ := s.limit()
	return max(0, limit-s.used)
}

// limit returns the maximum total size of all files in bytes, and whether a
// fault sets it.
func (s *store) limit() (bytes int64, filled bool) {
	bytes = s.room + s.made
	for _, f := range s.phone.faults() {
		if f.full != nil {
			bytes, filled = min(bytes, *f.full), true
		}
	}
	return bytes, filled
}

// commit puts a staged file in place, replacing any existing file.
func (w *fileWriter) commit(c cred) error {
	if w.node == nil || !w.staged {
		return nil
	}
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.nodes[w.name]
	free := s.free()
	var err error
	if old != nil {
		free += old.counts()
	} else {
		err = s.place(w.name, c.UID)
	}
	if err == nil && int64(len(w.node.data)) > free {
		err = syscall.ENOSPC
	}
	if err != nil {
		return pathError("close", w.name, err)
	}
	if old != nil {
		s.drop(w.name)
	}
	w.staged, w.node.counted = false, true
	s.used += w.node.counts()
	s.nodes[w.name] = w.node
	return nil
}

// drop removes a node. The caller must hold the lock.
func (s *store) drop(name string) {
	n := s.nodes[name]
	s.forget(n)
	n.counted = false
	delete(s.nodes, name)
}

// remove deletes a file or an empty directory or, with all, a directory and
// everything in it.
func (p *Phone) remove(name string, c cred, dirs, all bool) error {
	s := p.files
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.find(name, c.UID)
	if err != nil {
		return err
	}
	parent := s.nodes[path.Dir(name)]
	if strings.HasPrefix(name, "/system") {
		return syscall.EROFS
	}
	if name == "/" || !parent.allowed(c.UID, 2) {
		return fs.ErrPermission
	}
	if !n.mode.IsDir() {
		s.drop(name)
		return nil
	}
	if !dirs {
		return syscall.EISDIR
	}
	var below []string
	for child := range s.nodes {
		if !strings.HasPrefix(child, name+"/") {
			continue
		}
		if above := s.nodes[path.Dir(child)]; !above.allowed(c.UID, 3) {
			return fs.ErrPermission
		}
		below = append(below, child)
	}
	if len(below) > 0 && !all {
		return syscall.ENOTEMPTY
	}
	for _, child := range below {
		s.drop(child)
	}
	s.drop(name)
	return nil
}

// mkdir creates a directory.
func (p *Phone) mkdir(name string, c cred) error {
	s := p.files
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.find(name, c.UID); err == nil {
		return fs.ErrExist
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.place(name, c.UID); err != nil {
		return err
	}
	s.nodes[name] = &node{mode: fs.ModeDir | 0o771, uid: c.UID, mod: p.wall(), counted: true}
	return nil
}

// procPath returns the elements of a path below /proc, or false for any other
// path.
func procPath(name string) ([]string, bool) {
	if name == "/proc" {
		return nil, true
	}
	rest, ok := strings.CutPrefix(name, "/proc/")
	if !ok {
		return nil, false
	}
	return strings.Split(rest, "/"), true
}

// procView returns the process of a path below /proc if c may see it: since
// Android 7 /proc is mounted with hidepid=2, and the shell is in readproc.
func (p *Phone) procView(part string, c cred) (view, error) {
	pid, err := strconv.Atoi(part)
	if part == "self" {
		pid, err = c.PID, nil
	}
	if err != nil || pid <= 0 {
		return view{}, fs.ErrNotExist
	}
	v, ok := p.find(pid)
	if !ok || !p.sees(c, v) {
		return view{}, fs.ErrNotExist
	}
	return v, nil
}

func (p *Phone) sees(c cred, v view) bool {
	return p.opt.API < 24 || c.UID == uidRoot || c.UID == uidShell || c.UID == uidSystem || c.UID == v.uid
}

// traces reports whether c may read files that require ptrace access.
func traces(c cred, v view) bool { return c.UID == uidRoot || c.UID == v.uid && !v.kernel }

func (v view) thread(part string) (int, bool) {
	tid, err := strconv.Atoi(part)
	if err != nil || tid < v.pid || tid >= v.pid+v.memory().threads {
		return 0, false
	}
	return tid - v.pid, true
}

func (p *Phone) hasProcFile(name string) bool {
	_, ok := procNames[name]
	return ok && (name != "smaps_rollup" || *p.opt.SmapsRollup)
}

func holdsGlobal(dir string) bool {
	for name := range globalFiles {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// procEntry describes a path below /proc and returns the process to which it
// belongs, if any.
func (p *Phone) procEntry(parts []string, c cred) (info, view, error) {
	if len(parts) == 0 {
		return p.procDirInfo("proc", uidRoot), view{}, nil
	}
	switch whole := strings.Join(parts, "/"); {
	case globalFiles[whole] != nil:
		return p.procFileInfo(parts[len(parts)-1], uidRoot), view{}, nil
	case holdsGlobal(whole):
		return p.procDirInfo(parts[len(parts)-1], uidRoot), view{}, nil
	}
	v, err := p.procView(parts[0], c)
	if err != nil {
		return info{}, view{}, err
	}
	if len(parts) > 2 && parts[1] == "fd" && !traces(c, v) {
		return info{}, view{}, fs.ErrPermission
	}
	i, err := p.procStatOf(v, parts)
	return i, v, err
}

func (p *Phone) procDirInfo(name string, uid int) info {
	return info{name: name, mode: fs.ModeDir | 0o555, mod: p.wall(), uid: uid}
}

func (p *Phone) procFileInfo(name string, uid int) info {
	return info{name: name, mode: 0o444, mod: p.wall(), uid: uid}
}

// fdInfo describes an open file of a process.
func (p *Phone) fdInfo(v view, fd int) info {
	return info{
		name: strconv.Itoa(fd), mode: fs.ModeSymlink | 0o700, mod: p.wall(), uid: v.uid, size: 64, link: v.fdTarget(fd),
	}
}

// labeled reports whether SELinux, since Android 9, denies the shell a file in
// /proc despite its mode (system/sepolicy, private/genfs_contexts: pid_max has
// a label that the shell may read, threads-max has the default one).
func (p *Phone) labeled(name string) bool {
	return p.opt.API >= 28 && name == "sys/kernel/threads-max"
}

func (p *Phone) procStatOf(v view, parts []string) (info, error) {
	dir := func(name string, uid int) (info, error) { return p.procDirInfo(name, uid), nil }
	file := func(name string, uid int) (info, error) { return p.procFileInfo(name, uid), nil }
	switch last := parts[len(parts)-1]; {
	case len(parts) == 1:
		return dir(last, v.uid)
	case len(parts) == 2 && last == "task":
		return dir(last, v.uid)
	case len(parts) == 2 && last == "fd":
		i := info{name: last, mode: fs.ModeDir | 0o500, mod: p.wall(), uid: v.uid}
		if countsFDs(p.opt.API) {
			i.size = int64(v.memory().files)
		}
		return i, nil
	case len(parts) == 3 && parts[1] == "fd":
		if fd, err := strconv.Atoi(last); err == nil && fd >= 0 && fd < v.memory().files {
			return p.fdInfo(v, fd), nil
		}
	case len(parts) == 2 && p.hasProcFile(last):
		return file(last, v.uid)
	case parts[1] == "task" && len(parts) > 2:
		if _, ok := v.thread(parts[2]); !ok {
			break
		}
		if len(parts) == 3 {
			return dir(last, v.uid)
		}
		if len(parts) == 4 && (last == "comm" || last == "stat") {
			return file(last, v.uid)
		}
	}
	return info{}, fs.ErrNotExist
}

func (p *Phone) procRead(parts []string, c cred) ([]byte, error) {
	for _, f := range p.faults() {
		if f.dies == nil || len(parts) < 2 {
			continue
		}
		pid, _ := strconv.Atoi(parts[0])
		if err, ok := f.dies.readFault(pid).read(); ok {
			return nil, err
		}
	}
	i, v, err := p.procEntry(parts, c)
	if err != nil {
		return nil, err
	}
	if i.IsDir() {
		return nil, syscall.EISDIR
	}
	if i.link != "" {
		return nil, fs.ErrNotExist // the target does not exist
	}
	if whole := strings.Join(parts, "/"); p.labeled(whole) && c.UID != uidRoot {
		return nil, fs.ErrPermission
	}
	if text := globalFiles[strings.Join(parts, "/")]; text != nil {
		return []byte(text(p)), nil
	}
	if parts[1] == "task" {
		n, ok := v.thread(parts[2])
		switch {
		case !ok:
			return nil, fs.ErrNotExist
		case parts[3] == "comm":
			return []byte(v.threadName(n) + "\n"), nil
		}
		return []byte(v.statText(v.pid+n, v.threadName(n), v.memory())), nil
	}
	if procNames[parts[1]] && !traces(c, v) {
		return nil, fs.ErrPermission
	}
	text := p.procText(v, parts[1])
	for _, f := range p.faults() {
		if f.dies != nil {
			f.dies.countRead(p, v)
		}
	}
	return []byte(text), nil
}

func (p *Phone) procDir(parts []string, c cred) ([]info, error) {
	i, v, err := p.procEntry(parts, c)
	if err != nil {
		return nil, err
	}
	if !i.IsDir() {
		return nil, syscall.ENOTDIR
	}
	var out []info
	entry := func(name string, dir bool, uid int) {
		mode := fs.FileMode(0o444)
		if dir {
			mode = fs.ModeDir | 0o555
		}
		out = append(out, info{name: name, mode: mode, mod: i.mod, uid: uid})
	}
	if len(parts) == 0 {
		for _, v := range p.views() {
			if p.sees(c, v) {
				entry(strconv.Itoa(v.pid), true, v.uid)
			}
		}
		for name := range globalFiles {
			if !strings.Contains(name, "/") {
				entry(name, false, uidRoot)
			}
		}
		entry("sys", true, uidRoot)
		sort.Slice(out, func(i, j int) bool { return out[i].name < out[j].name })
		return out, nil
	}
	if whole := strings.Join(parts, "/") + "/"; holdsGlobal(whole[:len(whole)-1]) {
		for name := range globalFiles {
			if rest, ok := strings.CutPrefix(name, whole); ok {
				child, _, more := strings.Cut(rest, "/")
				if !slices.ContainsFunc(out, func(i info) bool { return i.name == child }) {
					entry(child, more, uidRoot)
				}
			}
		}
		slices.SortFunc(out, func(a, b info) int { return strings.Compare(a.name, b.name) })
		return out, nil
	}
	switch {
	case len(parts) == 1:
		for name := range procNames {
			if p.hasProcFile(name) {
				entry(name, false, v.uid)
			}
		}
		entry("task", true, v.uid)
		entry("fd", true, v.uid)
	case parts[1] == "fd":
		if !traces(c, v) {
			return nil, fs.ErrPermission
		}
		for fd := range v.memory().files {
			out = append(out, p.fdInfo(v, fd))
		}
	case len(parts) == 2:
		for n := range v.memory().threads {
			entry(strconv.Itoa(v.pid+n), true, v.uid)
		}
	default:
		entry("comm", false, v.uid)
		entry("stat", false, v.uid)
	}
	slices.SortFunc(out, func(a, b info) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// syncCred identifies the user of the sync protocol: adbd itself.
func (p *Phone) syncCred() cred { return cred{UID: p.shellUID()} }

func (p *Phone) shellUID() int {
	for _, f := range p.faults() {
		if f.rootless {
			return uidShell
		}
	}
	if p.opt.Root {
		return uidRoot
	}
	return uidShell
}

// Stat describes a file as adbd sees it.
func (p *Phone) Stat(name string) (fs.FileInfo, error) {
	if !p.answers(Request{StatRequest, name, 0}) {
		return nil, pathError("stat", name, syscall.ENODEV)
	}
	i, err := p.stat(clean("/", name), p.syncCred())
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return i, nil
}

// Open opens a file for reading, with its current content.
func (p *Phone) Open(name string) (io.ReadCloser, error) {
	if !p.answers(Request{PullRequest, name, 0}) {
		return nil, pathError("open", name, syscall.ENODEV)
	}
	r, err := p.readAll(clean("/", name), p.syncCred())
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &pull{Reader: r, phone: p, name: name}, nil
}

// Create creates a file and, like adbd, the directories above it. The file
// appears when Close returns nil.
func (p *Phone) Create(name string, mode fs.FileMode) (io.WriteCloser, error) {
	if !p.answers(Request{PushRequest, name, 0}) {
		return nil, pathError("create", name, syscall.ENODEV)
	}
	at, c := clean("/", name), p.syncCred()
	for i := 1; i < len(at) && len(at) <= maxPath; i++ {
		if at[i] != '/' {
			continue
		}
		if err := p.mkdir(at[:i], c); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, pathError("create", name, err)
		}
	}
	w, err := p.openWrite(at, c, mode, false, true)
	if err != nil {
		return nil, pathError("create", name, err)
	}
	return &pushed{w, c}, nil
}

type pushed struct {
	*fileWriter
	cred
}

// Close puts the file in place.
func (f *pushed) Close() error { return f.commit(f.cred) }

// Abort removes the incomplete file and the file that it was to replace: adbd
// unlinks the old file before it writes, and the incomplete one afterwards
// (file_sync_service.cpp, do_send and handle_send_file).
func (f *pushed) Abort() error {
	if f.node == nil {
		return nil
	}
	err := f.store.phone.remove(f.name, f.cred, false, false)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pathError("remove", f.name, err)
	}
	return nil
}

// ReadDir lists a directory.
func (p *Phone) ReadDir(name string) ([]fs.FileInfo, error) {
	if !p.answers(Request{ListRequest, name, 0}) {
		return nil, pathError("readdir", name, syscall.ENODEV)
	}
	entries, err := p.readDir(clean("/", name), p.syncCred())
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	out := make([]fs.FileInfo, len(entries))
	for i, e := range entries {
		out[i] = e
	}
	return out, nil
}
