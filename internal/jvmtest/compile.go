package jvmtest

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/leakgate/leakgate/internal/jars"
	"github.com/leakgate/leakgate/internal/recorded"
)

// release is the Java release of the class files. ProGuard 6.2, the version in
// Debian, cannot read later releases. Earlier releases do not have nest mates
// (JEP 181). Without nest mates, inner classes would need synthetic methods,
// which Android's compilers do not generate.
const (
	release      = 11
	majorVersion = 55
)

// build is the result of running a tool; all tests of this run share it.
type build struct {
	mu   sync.Mutex
	data []byte
}

// builds maps the key of each build of this process to its result.
var builds sync.Map

// built returns the result of a build. It runs the build unless this process or
// another one has already run it. Results are kept in the user's cache, but
// failures are not.
func built(key string, create func() ([]byte, error)) ([]byte, error) {
	value, _ := builds.LoadOrStore(key, new(build))
	b := value.(*build)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.data != nil {
		return b.data, nil
	}
	path := cached(key)
	if data, err := os.ReadFile(path); err == nil {
		b.data = data
		return data, nil
	}
	data, err := create()
	if err != nil {
		return nil, err
	}
	b.data = data
	keep(path, data)
	return data, nil
}

// cached returns the path at which the result for a key is kept, or "" if there
// is no cache.
func cached(key string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "leakgate", "java", fmt.Sprintf("%x", sha256.Sum256([]byte(key))))
}

// keep stores a complete result. An error is ignored, because without the cache
// the build only takes longer.
func keep(path string, data []byte) {
	dir := filepath.Dir(path)
	if path == "" || os.MkdirAll(dir, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(dir, ".part-")
	if err != nil {
		return
	}
	_, err = f.Write(data)
	if errors.Join(err, f.Close()) == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}

// known reports whether a result for the key already exists.
func known(key string) bool {
	if _, err := os.Stat(cached(key)); err == nil {
		return true
	}
	value, ok := builds.Load(key)
	if !ok {
		return false
	}
	b := value.(*build)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data != nil
}

// Compile compiles a program and returns the path of its jar, which exists
// until the test ends.
func (j *JDK) Compile(tb testing.TB, s Files) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "program.jar")
	if err := j.compile(tb.Context(), s, path); err != nil {
		tb.Fatal(err)
	}
	return path
}

// CompileLibraries compiles Libraries and returns its class path with all
// dependencies. If the libraries cannot be downloaded, recorded.Missing ends
// the test.
func (j *JDK) CompileLibraries(tb testing.TB) (classPath string) {
	tb.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		recorded.Missing(tb, "libraries need a folder: %v", err)
	}
	dir = filepath.Join(dir, "leakgate-test", jars.App.Name+"-"+jars.App.Version)
	libraries, err := jars.App.Fetch(tb.Context(), dir)
	if err != nil {
		recorded.Missing(tb, "fetch libraries: %v", err)
	}
	program, err := j.jars(tb.Context(), []Files{read("Console.java", "Libraries.java")}, libraries)
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "program.jar")
	if err := os.WriteFile(path, program[0], 0o600); err != nil {
		tb.Fatal(err)
	}
	return path + string(filepath.ListSeparator) + libraries
}

func (j *JDK) compile(ctx context.Context, s Files, path string) error {
	jar, err := built(j.key(s), func() ([]byte, error) {
		jars, err := j.jars(ctx, []Files{s}, "")
		if err != nil {
			return nil, err
		}
		return jars[0], nil
	})
	if err != nil {
		return fmt.Errorf("compile program: %w", err)
	}
	if err := os.WriteFile(path, jar, 0o600); err != nil {
		return fmt.Errorf("compile program: %w", err)
	}
	return nil
}

// compileTogether compiles several programs and keeps the results for compile.
// This takes less time than compiling the programs one after the other.
func (j *JDK) compileTogether(ctx context.Context, list []Files) error {
	list = slices.DeleteFunc(list, func(s Files) bool { return known(j.key(s)) })
	jars, err := j.jars(ctx, list, "")
	if err != nil {
		return fmt.Errorf("compile programs: %w", err)
	}
	for i, s := range list {
		if _, err := built(j.key(s), func() ([]byte, error) { return jars[i], nil }); err != nil {
			return fmt.Errorf("compile programs: %w", err)
		}
	}
	return nil
}

// key returns a string that identifies the result of compiling a program.
func (j *JDK) key(s Files) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(h, "%q %q\n", name, s[name])
	}
	return fmt.Sprintf("%s %s %x", j.java, stamp(j.api), h.Sum(nil))
}

// stamp returns a string that identifies an installation of a tool by one of
// its files: the path, size and modification time of the file.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %d", path, info.Size(), info.ModTime().UnixNano())
}

// jars compiles several programs separately, with a class path, and returns
// their jars.
func (j *JDK) jars(ctx context.Context, list []Files, classPath string) ([][]byte, error) {
	if len(list) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "jvmtest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := read("Javac.java").write(dir); err != nil {
		return nil, err
	}
	args := append(slices.Clone(small), "Javac.java", "-Xlint:-options", "-proc:none", "-cp", classPath, "--release",
		strconv.Itoa(release), "--")
	for i, s := range list {
		part := strconv.Itoa(i)
		if err := s.write(filepath.Join(dir, part)); err != nil {
			return nil, err
		}
		args = append(args, part)
	}
	if _, err := run(ctx, dir, environment(), j.java, args...); err != nil {
		return nil, err
	}
	jars := make([][]byte, len(list))
	for i := range list {
		if jars[i], err = pack(filepath.Join(dir, strconv.Itoa(i), "classes")); err != nil {
			return nil, err
		}
	}
	return jars, nil
}

// write writes the files of a program to a directory.
func (s Files) write(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, text := range s {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// pack creates a jar from a directory.
func pack(dir string) ([]byte, error) {
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	if err := z.AddFS(os.DirFS(dir)); err != nil {
		return nil, err
	}
	err := z.Close()
	return jar.Bytes(), err
}

// library returns the API of java.base in the release, as a jar of class files
// without code, for a tool that cannot read the class files of this JDK. It is
// created from the file that javac uses for --release. The name of a directory
// in that file consists of one letter or digit for each release that contains
// the directory's classes. The class files have the version of the JDK (OpenJDK
// make/langtools/src/classes/build/tools/symbolgenerator/CreateSymbols.java).
func (j *JDK) library() ([]byte, error) {
	return built(stamp(j.api), func() ([]byte, error) {
		api, err := zip.OpenReader(j.api)
		if err != nil {
			return nil, fmt.Errorf("read API of Java %d: %w", release, err)
		}
		defer api.Close()
		var jar bytes.Buffer
		z := zip.NewWriter(&jar)
		for _, f := range api.File {
			if name, ok := className(f.Name); ok {
				if err := stub(z, name, f); err != nil {
					return nil, fmt.Errorf("read API of Java %d: %w", release, err)
				}
			}
		}
		err = z.Close()
		return jar.Bytes(), err
	})
}

// className returns the path of the class file for a file of the API. It
// returns false if that file is not a class of java.base in the release.
func className(path string) (string, bool) {
	const letter = "B" // release 11: 7 to 9 are digits, A is 10
	releases, path, _ := strings.Cut(path, "/")
	module, path, _ := strings.Cut(path, "/")
	name, ok := strings.CutSuffix(path, ".sig")
	return name + ".class", ok && strings.Contains(releases, letter) && module == "java.base" && name != "module-info"
}

// stub adds a class file to the jar and sets its version to that of the
// release. The first eight bytes of a class file end with the major version, in
// two bytes (JVM Specification, section 4.1).
func stub(z *zip.Writer, name string, f *zip.File) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	class, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if len(class) < 8 {
		return fmt.Errorf("%s: %w", f.Name, fs.ErrInvalid)
	}
	class[6], class[7] = 0, majorVersion
	out, err := z.Create(name)
	if err != nil {
		return err
	}
	_, err = out.Write(class)
	return err
}
