// Package jars fetches Shark, LeakCanary's heap analysis, from Maven Central, and keeps
// it in a folder that several processes may share.
//
// It knows one version, and each file by its hash: what is not these very bytes is not
// run. It refuses to run Shark, which is for those who compare with it.
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

// Version is the last Shark that is not an alpha.
const Version = "2.14"

// sums are the SHA-256 of all that Shark needs at run time.
var sums = map[string]string{
	"shark-android-" + Version: "b79dfb05903e69018d598bb4da4f41e0f7732a585cb66a0a5ffb5b89d2076c72",
	"shark-" + Version:         "ffadb874b3a4d4d0033afd302e37b26ade2b63d6e23f9bcd568f727304845f01",
	"shark-graph-" + Version:   "7596fc9caea47e95f6001f57098b66c64beaa968c1354ab6c0aa98dee901681b",
	"shark-hprof-" + Version:   "8f19f11585b0fb34fb8cac021504208ed1c73dfe8cb1f69b2bdb0437bb1191fa",
	"shark-log-" + Version:     "ba1011ae450664f7e8e37c5b6e5e01660b11456ddca8960b5cbe6df0e3f99926",
	"okio-2.2.2":               "e58c97406a6bb1138893750299ac63c6aa04b38b6b49eae1bfcad1a63ef9ba1b",
	"kotlin-stdlib-1.3.72":     "3856a7349ebacd6d1be6802b2fed9c4dc2c5a564ea92b6b945ac988243d4b16b",
}

// order is that of the class path.
var order = []string{
	"shark-android-" + Version, "shark-" + Version, "shark-graph-" + Version, "shark-hprof-" + Version, "shark-log-" + Version,
	"okio-2.2.2", "kotlin-stdlib-1.3.72",
}

// project asks Maven for Shark and what it depends on.
const project = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>leakgate</groupId>
  <artifactId>shark</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>com.squareup.leakcanary</groupId>
      <artifactId>shark-android</artifactId>
      <version>` + Version + `</version>
    </dependency>
  </dependencies>
</project>
`

// copyJars is the goal of Maven, with its own version, so that it is always the same.
const copyJars = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

// Have gives the class path of a Shark that a folder has. It fails where a file is not
// there or is another one.
func Have(dir string) (classPath string, err error) {
	var paths []string
	for _, name := range order {
		path := filepath.Join(dir, name+".jar")
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read %s.jar: %w", name, err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != sums[name] {
			return "", fmt.Errorf("read %s.jar: its SHA-256 is %x, not %s", name, sum, sums[name])
		}
		paths = append(paths, path)
	}
	return strings.Join(paths, string(filepath.ListSeparator)), nil
}

// Fetch puts Shark into a folder with Maven, unless it has it, and gives the class
// path. The folder is there as a whole or not at all, also where several processes
// fetch at once; one with other files in it is an error. It takes seconds, and minutes
// where Maven has never run.
func Fetch(ctx context.Context, dir string) (classPath string, err error) {
	if classPath, err = Have(dir); err == nil {
		return classPath, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("use %s, which can be removed: %w", dir, err)
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
	if err := download(ctx, mvn, part, jars); err != nil {
		return "", err
	}
	if _, err := Have(jars); err != nil {
		return "", err
	}
	if err := Keep(jars, dir); err != nil {
		return "", err
	}
	return Have(dir)
}

func download(ctx context.Context, mvn, part, jars string) error {
	pom := filepath.Join(part, "pom.xml")
	if err := os.WriteFile(pom, []byte(project), 0o644); err != nil {
		return fmt.Errorf("write Maven project: %w", err)
	}
	cmd := exec.CommandContext(ctx, mvn, "-q", "-B", "-f", pom, copyJars, "-DoutputDirectory="+jars)
	cmd.Dir = part
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fetch Shark %s: %w: %s", Version, err, firstLine(out))
	}
	return nil
}

// Keep moves a whole folder to its place. Where another process was faster, its folder
// stays.
func Keep(part, dir string) error {
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
