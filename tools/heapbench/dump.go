package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// seed is the random seed of every heap.
const seed = 1

// dump is a heap dump that the tools read while they are measured.
type dump struct {
	name, path string
	// asked is the requested number of objects in a dump that is generated
	// here; 0 for a recorded dump.
	asked int64
	// objects is the number of objects in the dump; bytes is its size.
	objects, bytes int64
	// missing is the reason why the dump is missing, or "" if it exists.
	missing string
}

// manifest describes how a dump was generated. If the manifest differs, the
// dump is generated again.
type manifest struct {
	Asked   int64  `json:"asked"`
	Seed    int64  `json:"seed"`
	Maker   string `json:"maker"`
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"`
}

// get finds a dump in the cache, or generates it there.
func (d *dump) get(ctx context.Context, c cache, log io.Writer) error {
	_, hash, err := source("HeapMaker")
	if err != nil {
		return err
	}
	dir, err := c.folder("dumps")
	if err != nil {
		return err
	}
	d.path = filepath.Join(dir, d.name+".hprof")
	want := manifest{Asked: d.asked, Seed: seed, Maker: hash}
	if d.known(want) {
		return nil
	}
	fmt.Fprintf(log, "heapbench: generating dump %s\n", d.name)
	classes, err := c.classes(ctx, "HeapMaker", ".")
	if err != nil {
		return err
	}
	m, err := makeDump(ctx, classes, d.path, want)
	if err != nil {
		return fmt.Errorf("make dump %s: %w", d.name, err)
	}
	if err := m.write(d.manifest()); err != nil {
		return fmt.Errorf("make dump %s: %w", d.name, err)
	}
	d.objects, d.bytes = m.Objects, m.Bytes
	return nil
}

func (d *dump) manifest() string { return strings.TrimSuffix(d.path, ".hprof") + ".json" }

// known reports whether the dump exists and was generated as the manifest
// requires.
func (d *dump) known(want manifest) bool {
	data, err := os.ReadFile(d.manifest())
	var m manifest
	if err != nil || json.Unmarshal(data, &m) != nil {
		return false
	}
	info, err := os.Stat(d.path)
	if err != nil || info.Size() != m.Bytes {
		return false
	}
	want.Objects, want.Bytes = m.Objects, m.Bytes
	if m != want || m.Objects <= 0 {
		return false
	}
	d.objects, d.bytes = m.Objects, m.Bytes
	return true
}

// write replaces the manifest file atomically.
func (m manifest) write(path string) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return replaceFile(path, append(data, '\n'))
}

// replaceFile writes a temporary file and renames it, which prevents readers
// from seeing an incomplete file.
func replaceFile(path string, data []byte) error {
	part := path + ".part"
	if err := os.WriteFile(part, data, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := os.Rename(part, path); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", filepath.Base(path), err), os.Remove(part))
	}
	return nil
}

// warm reads a dump once, so that every tool finds it in the page cache.
func (d *dump) warm() error {
	f, err := os.Open(d.path)
	if err != nil {
		return fmt.Errorf("read dump: %w", err)
	}
	defer f.Close()
	if d.bytes, err = io.Copy(io.Discard, f); err != nil {
		return fmt.Errorf("read dump: %w", err)
	}
	return nil
}

// makeDump runs HeapMaker and writes a dump of its heap to a file.
func makeDump(ctx context.Context, classes, path string, m manifest) (manifest, error) {
	java, err := find("java")
	if err != nil {
		return m, err
	}
	jcmd, err := find("jcmd")
	if err != nil {
		return m, err
	}
	heap := fmt.Sprintf("-Xmx%dm", 128+m.Asked*115>>20)
	// The serial collector moves objects in a fixed order, and
	// MarkSweepAlwaysCompactCount makes it leave no gaps: therefore the same
	// heap yields the same dump, except for what jcmd itself adds.
	cmd := exec.CommandContext(ctx, java, "-XX:+UseSerialGC", "-XX:+IgnoreUnrecognizedVMOptions",
		"-XX:MarkSweepAlwaysCompactCount=1",
		heap, "-cp", classes, "HeapMaker", strconv.FormatInt(m.Asked, 10), strconv.FormatInt(m.Seed, 10))
	var said tail
	cmd.Stderr = &said
	cmd.WaitDelay = 5 * time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return m, fmt.Errorf("start HeapMaker: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return m, fmt.Errorf("start HeapMaker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return m, fmt.Errorf("start HeapMaker: %w", err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	if strings.TrimSpace(line) == "READY" {
		m.Objects, err = takeDump(ctx, jcmd, cmd.Process.Pid, path)
	} else {
		err = errors.New("HeapMaker is not ready")
	}
	if closed := stdin.Close(); err == nil {
		err = closed
	}
	if ended := cmd.Wait(); ended != nil {
		err = errors.Join(err, said.explain(fmt.Errorf("run HeapMaker: %w", ended)))
	}
	if err != nil {
		return m, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return m, fmt.Errorf("find dump: %w", err)
	}
	m.Bytes = info.Size()
	return m, nil
}

// total matches the last line of a class histogram: objects and bytes.
var total = regexp.MustCompile(`(?m)^Total\s+(\d+)\s+\d+\s*$`)

// takeDump dumps the live objects of a Java process and returns their number.
func takeDump(ctx context.Context, jcmd string, pid int, path string) (int64, error) {
	process := strconv.Itoa(pid)
	out, err := output(ctx, "", jcmd, process, "GC.class_histogram")
	if err != nil {
		return 0, err
	}
	found := total.FindStringSubmatch(out)
	if found == nil {
		return 0, errors.New("count objects: the class histogram has no total")
	}
	objects, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("count objects: %w", err)
	}
	part := path + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, fmt.Errorf("take dump: %w", err)
	}
	out, err = output(ctx, "", jcmd, process, "GC.heap_dump", part)
	// jcmd reports success even if the file cannot be written.
	if err == nil && !strings.Contains(out, "Heap dump file created") {
		t := tail(out)
		err = t.explain(errors.New("take dump"))
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		return 0, errors.Join(err, removed(part))
	}
	return objects, nil
}

// removed removes a file; it is not an error if the file does not exist.
func removed(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// androidMagic is the beginning of the dumps of Dalvik and ART; other dumps do
// not begin with it.
const androidMagic = "JAVA PROFILE 1.0.3\x00"

// androidDumps finds the Android dumps among the recorded dumps.
func androidDumps(testdata string) ([]*dump, error) {
	paths, err := filepath.Glob(filepath.Join(testdata, "hprof", "*.hprof"))
	if err != nil {
		return nil, fmt.Errorf("find Android dumps: %w", err)
	}
	var dumps []*dump
	for _, path := range paths {
		head, err := beginning(path, len(androidMagic))
		if err != nil {
			return nil, fmt.Errorf("find Android dumps: %w", err)
		}
		if bytes.Equal(head, []byte(androidMagic)) {
			dumps = append(dumps, &dump{name: strings.TrimSuffix(filepath.Base(path), ".hprof"), path: path})
		}
	}
	if len(dumps) == 0 {
		return nil, errors.New("no recorded Android dumps; name their directory with -testdata")
	}
	return dumps, nil
}

// beginning returns up to the first n bytes of a file.
func beginning(path string, n int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(n)))
}
