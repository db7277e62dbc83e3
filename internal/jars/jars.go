// Package jars fetches Java libraries for tests from Maven Central, and keeps
// them in a folder that several processes may share.
//
// It pins one version of each library, and the hash of each file: a file with
// different content is rejected. The package only fetches the libraries; the
// tests run them.
package jars

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Set is a set of libraries with all their runtime dependencies.
type Set struct {
	// Name and Version are used in messages and folder names.
	Name, Version string
	// wanted lists the Maven coordinates, GROUP:ARTIFACT:VERSION.
	wanted []string
	// files lists the files in the order of the class path.
	files []file
}

// file is the name of a jar without .jar, and its SHA-256.
type file struct{ name, sum string }

// Shark is LeakCanary's heap analysis, in its latest stable version.
var Shark = Set{
	Name: "shark", Version: "2.14", wanted: []string{"com.squareup.leakcanary:shark-android:2.14"},
	files: []file{
		{"shark-android-2.14", "b79dfb05903e69018d598bb4da4f41e0f7732a585cb66a0a5ffb5b89d2076c72"},
		{"shark-2.14", "ffadb874b3a4d4d0033afd302e37b26ade2b63d6e23f9bcd568f727304845f01"},
		{"shark-graph-2.14", "7596fc9caea47e95f6001f57098b66c64beaa968c1354ab6c0aa98dee901681b"},
		{"shark-hprof-2.14", "8f19f11585b0fb34fb8cac021504208ed1c73dfe8cb1f69b2bdb0437bb1191fa"},
		{"shark-log-2.14", "ba1011ae450664f7e8e37c5b6e5e01660b11456ddca8960b5cbe6df0e3f99926"},
		{"okio-2.2.2", "e58c97406a6bb1138893750299ac63c6aa04b38b6b49eae1bfcad1a63ef9ba1b"},
		{"kotlin-stdlib-1.3.72", "3856a7349ebacd6d1be6802b2fed9c4dc2c5a564ea92b6b945ac988243d4b16b"},
	},
}

// App contains libraries that many apps use and that often hold leaked objects.
var App = Set{
	Name: "app", Version: "1",
	wanted: []string{
		"io.reactivex.rxjava3:rxjava:3.1.8", "org.jetbrains.kotlinx:kotlinx-coroutines-core-jvm:1.8.1",
		"com.google.guava:guava:33.2.1-jre",
	},
	files: []file{
		{"rxjava-3.1.8", "6890becbd4646347928746a4421cc559fca9f34d06ef2a7a947bd7adf7473246"},
		{"reactive-streams-1.0.4", "f75ca597789b3dac58f61857b9ac2e1034a68fa672db35055a8fb4509e325f28"},
		{"kotlinx-coroutines-core-jvm-1.8.1", "f3d4f5de1c391bbcc20f3b3435ccbac013521e76b6902d7d59635ec15c1f797e"},
		{"kotlin-stdlib-1.9.21", "3b479313ab6caea4e5e25d3dee8ca80c302c89ba73e1af4dafaa100f6ef9296a"},
		{"guava-33.2.1-jre", "452b2d9787b7d366fa8cf5ed9a1c40404542d05effa7a598da03bbbbb76d9f31"},
		{"failureaccess-1.0.2", "8a8f81cf9b359e3f6dfa691a1e776985c061ef2f223c9b2c80753e1b458e8064"},
	},
}

// project returns a Maven POM that declares the set's libraries as
// dependencies.
func (s *Set) project() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>leakgate</groupId>
  <artifactId>%s</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
`, s.Name)
	for _, w := range s.wanted {
		part := strings.Split(w, ":")
		fmt.Fprintf(&b,
			"    <dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>\n",
			part[0], part[1], part[2])
	}
	b.WriteString("  </dependencies>\n</project>\n")
	return b.String()
}

// copyJars is the Maven goal that copies the jars, with a fixed plugin version.
const copyJars = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

// Installed returns the class path of a set in a folder. It returns an error if
// a file is missing or has different content.
func (s *Set) Installed(dir string) (classPath string, err error) {
	var paths []string
	for _, f := range s.files {
		path := filepath.Join(dir, f.name+".jar")
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read %s.jar: %w", f.name, err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != f.sum {
			return "", fmt.Errorf("read %s.jar: its SHA-256 is %x, want %s", f.name, sum, f.sum)
		}
		paths = append(paths, path)
	}
	return strings.Join(paths, string(filepath.ListSeparator)), nil
}

// Fetch downloads a set to a folder with Maven, unless the folder already
// contains the set, and returns the class path. The folder is either complete
// or missing, even if several processes fetch at once; a folder with other
// files is an error. Fetching takes seconds, or minutes if Maven has never run.
func (s *Set) Fetch(ctx context.Context, dir string) (classPath string, err error) {
	if classPath, err = s.Installed(dir); err == nil {
		return classPath, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("check folder %s (delete it to download the files again): %w", dir, err)
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("find mvn: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "part-")
	if err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(part)
	jars := filepath.Join(part, "jars")
	if err := s.download(ctx, mvn, part, jars); err != nil {
		return "", err
	}
	if _, err := s.Installed(jars); err != nil {
		return "", err
	}
	if err := Install(jars, dir); err != nil {
		return "", err
	}
	return s.Installed(dir)
}

func (s *Set) download(ctx context.Context, mvn, part, jars string) error {
	pom := filepath.Join(part, "pom.xml")
	if err := os.WriteFile(pom, []byte(s.project()), 0o644); err != nil {
		return fmt.Errorf("write Maven project: %w", err)
	}
	cmd := exec.CommandContext(ctx, mvn, "-q", "-B", "-f", pom, copyJars, "-DoutputDirectory="+jars)
	cmd.Dir = part
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch %s %s: %w: %s", s.Name, s.Version, err, firstLine(out))
	}
	return nil
}

// Install moves a complete folder to its final path. If another process was
// faster, that process's folder is kept.
func Install(part, dir string) error {
	if err := os.Rename(part, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return fmt.Errorf("keep %s: %w", filepath.Base(dir), err)
		}
	}
	return nil
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}
