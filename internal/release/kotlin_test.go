package release

//unit:program Kotlin's compiler and a JVM run the rule of the example

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/jars"
	"github.com/leakgate/leakgate/internal/recorded"
)

// kotlin is the version of the Kotlin compiler; kotlinJars lists the jars that
// it needs, with their SHA-256.
const kotlin = "2.1.20"

var kotlinJars = map[string]string{
	"annotations-13.0.jar":                  "ace2a10dc8e2d5fd34925ecac03e4988b2c0f851650c94b8cef49ba1bd111478",
	"kotlin-compiler-embeddable-2.1.20.jar": "c54a00718c8c0e3ee858bf42771c7f401c5e3c1738861e18e9536371042fa1b3",
	"kotlin-daemon-embeddable-2.1.20.jar":   "d9e83df1d847a201ba3c016a786ced091be9503997d09f6a9cf1796ee489f374",
	"kotlin-reflect-1.6.10.jar":             "3277ac102ae17aad10a55abec75ff5696c8d109790396434b496e75087854203",
	"kotlin-script-runtime-2.1.20.jar":      "ae4397fbb3aa2a1ada09290e753bba99a4114548977c3115526b9958f4cb1a04",
	"kotlin-stdlib-2.1.20.jar":              "1bcc74e8ce84e2c25eaafde10f1248349cce3062b6e36978cbeec610db1e930a",
	"kotlinx-coroutines-core-jvm-1.8.0.jar": "9860906a1937490bf5f3b06d2f0e10ef451e65b95b269f22daf68a3d1f5065c5",
	"trove4j-1.0.20200330.jar":              "c5fd725bffab51846bf3c77db1383c60aaaebfe1b7fe2f00d23fe1b7df0a439d",
}

const kotlinProject = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>leakgate</groupId>
  <artifactId>kotlin</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.jetbrains.kotlin</groupId><artifactId>kotlin-compiler-embeddable</artifactId><version>` + kotlin + `</version></dependency>
  </dependencies>
</project>
`

// kotlinCompiler returns the directory of the compiler. If it is not in the
// user's cache, it is downloaded from Maven.
func kotlinCompiler(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "leakgate", "kotlin-"+kotlin)
	if err := haveKotlin(dir); errors.Is(err, os.ErrNotExist) {
		err = fetchKotlin(t, dir)
		if err != nil {
			recorded.Missing(t, "the Kotlin compiler is needed: %v", err)
		}
	} else if err != nil {
		t.Fatalf("check folder %s (delete it to download the files again): %v", dir, err)
	}
	return dir
}

// haveKotlin checks that a directory contains exactly these jars.
func haveKotlin(dir string) error {
	for name, want := range kotlinJars {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want {
			return fmt.Errorf("%s has the SHA-256 %x, want %s", name, sum, want)
		}
	}
	return nil
}

func fetchKotlin(t *testing.T, dir string) error {
	t.Helper()
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	// The download goes to a temporary directory, which is renamed when the
	// download is complete.
	part, err := os.MkdirTemp(filepath.Dir(dir), "part-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	pom := filepath.Join(part, "pom.xml")
	if err := os.WriteFile(pom, []byte(kotlinProject), 0o600); err != nil {
		return err
	}
	fetched := filepath.Join(part, "jars")
	cmd := exec.CommandContext(t.Context(), mvn, "-q", "-B", "-f", pom,
		"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies", "-DoutputDirectory="+fetched)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run mvn: %w: %s", err, out)
	}
	if err := haveKotlin(fetched); err != nil {
		return err
	}
	return jars.Install(fetched, dir)
}

// TestLeakMarks compiles the rule of examples/prgate against stubs of the
// Android classes that it uses, and runs it. The rule waits until the app is
// idle, dumps the heap, waits until the file stops growing, and copies it to
// the directory from which Gradle pulls it.
func TestLeakMarks(t *testing.T) {
	stubs, err := filepath.Glob("testdata/android/*.java")
	if err != nil || len(stubs) < 10 {
		t.Fatalf("found %d stubs: %v", len(stubs), err)
	}
	rule := filepath.Join(root, "examples", "prgate", "LeakMarks.kt")
	if done := proved(t, append(stubs, rule, "kotlin_test.go")); done.there && !recorded.Long() {
		t.Log("these sources have passed before")
		return
	} else {
		defer done.keep(t)
	}
	if _, err := exec.LookPath("javac"); err != nil {
		recorded.Missing(t, "a JDK is needed: %v", err)
	}
	compiler, out := kotlinCompiler(t), t.TempDir()
	library := filepath.Join(compiler, "kotlin-stdlib-"+kotlin+".jar")
	classes := out + string(filepath.ListSeparator) + library
	java := func(args ...string) (string, error) {
		text, err := exec.CommandContext(context.WithoutCancel(t.Context()), args[0], args[1:]...).CombinedOutput()
		return string(text), err
	}
	rules := slices.DeleteFunc(slices.Clone(stubs), func(s string) bool { return filepath.Base(s) == "Main.java" })
	if text, err := java(append([]string{
		"java", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(compiler, "*"),
		"org.jetbrains.kotlin.cli.jvm.K2JVMCompiler",
		"-no-stdlib", "-no-reflect", "-cp", library, "-jvm-target", "11", "-Werror", "-d", out, rule},
		rules...)...); err != nil {
		t.Fatalf("compile LeakMarks.kt: %v\n%s", err, text)
	}
	if text, err := java(append([]string{"javac", "--release", "11", "-cp", classes, "-d", out},
		stubs...)...); err != nil {
		t.Fatalf("compile stubs: %v\n%s", err, text)
	}

	loop := func(n int, pulled string) string {
		dump := fmt.Sprintf("/data/local/tmp/leak-marks/CheckoutTest.opens_checkout_1_-%02d.hprof", n)
		look := "sleep 2000\nshell stat -c %s " + dump + "\n"
		// 0, 70000, 90000, 90000
		text := "sleep 5000\nshell am dumpheap -g com.shop " + dump + "\n" + strings.Repeat(look, 4)
		if pulled != "" {
			text += "shell mkdir -p " + pulled + "\nshell cp " + dump + " " + pulled + "/\n"
		}
		return text
	}
	for _, pulled := range []string{"", "/sdcard/Android/media/com.shop/additional_test_output"} {
		args := []string{"java", "-XX:TieredStopAtLevel=1", "-cp", classes, "Main"}
		if pulled != "" {
			args = slices.Insert(args, 1, "-DadditionalTestOutputDir="+pulled)
		}
		text, err := java(args...)
		if want := "shell mkdir -p /data/local/tmp/leak-marks\n" + loop(1, pulled) + loop(2, pulled); err != nil ||
			text != want {
			t.Errorf("dumps pulled from %q: error %v, got\n%s\nwant\n%s", pulled, err, text, want)
		}
	}
	if text, err := java("java", "-Dendless=true", "-cp", classes, "Main"); err == nil ||
		!strings.Contains(text, "01.hprof is not complete after 2 minutes") {
		t.Errorf("dump that never ends: got error %v and\n%s", err, text)
	}
}

// proof is the path of a file whose existence shows that these sources have
// passed a slow test.
type proof struct {
	path  string
	there bool
}

func proved(t *testing.T, sources []string) proof {
	t.Helper()
	h := sha256.New()
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(h, "%s %d\n%s", filepath.Base(source), len(text), text)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return proof{}
	}
	p := proof{path: filepath.Join(cache, "leakgate", "proofs", fmt.Sprintf("%s-%x", t.Name(), h.Sum(nil)))}
	_, err = os.Stat(p.path)
	p.there = err == nil
	return p
}

// keep records that the test has passed. If the cache cannot be written, the
// test runs again next time.
func (p proof) keep(t *testing.T) {
	t.Helper()
	if t.Failed() || t.Skipped() || p.path == "" {
		return
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o755); err != nil {
		t.Log(err)
	}
	if err := os.WriteFile(p.path, nil, 0o600); err != nil {
		t.Log(err)
	}
}
