package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// sharkVersion is the last Shark that is not an alpha.
const sharkVersion = "2.14"

// errUnwanted is the reason where the user wants no peers.
var errUnwanted = errors.New("left out by -peers none")

// crate finds a peer that is a package of crates.io: in the folder that the user
// names, in the cache, or by installing it there.
func crate(name, version string) finder {
	return func(ctx context.Context, c cache, o options, log io.Writer) ([]string, error) {
		if o.peers == "none" {
			return nil, errUnwanted
		}
		file := name
		if runtime.GOOS == "windows" {
			file += ".exe"
		}
		if o.peers != "" {
			path, err := filepath.Abs(filepath.Join(o.peers, file))
			if err != nil {
				return nil, fmt.Errorf("use -peers: %w", err)
			}
			if _, err := os.Stat(path); err == nil {
				return []string{path}, isVersion(ctx, path, version)
			}
		}
		path := c.path("peers", "bin", file)
		if isVersion(ctx, path, version) == nil {
			return []string{path}, nil
		}
		cargo, err := find("cargo")
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(log, "heapbench: installs %s %s\n", name, version)
		if _, err := output(ctx, "", cargo, "install", "--locked", "--root", c.path("peers"), "--version", version, name); err != nil {
			return nil, fmt.Errorf("install %s %s: %w", name, version, err)
		}
		return []string{path}, isVersion(ctx, path, version)
	}
}

// isVersion asks a program for its version.
func isVersion(ctx context.Context, path, version string) error {
	out, err := output(ctx, "", path, "--version")
	if err != nil {
		return err
	}
	if words := strings.Fields(out); len(words) < 2 || words[1] != version {
		return fmt.Errorf("use %s: it says %q, not version %s", filepath.Base(path), strings.TrimSpace(out), version)
	}
	return nil
}

// sharkJars is what Shark needs at run time.
var sharkJars = []string{
	"shark-android-" + sharkVersion, "shark-" + sharkVersion, "shark-graph-" + sharkVersion, "shark-hprof-" + sharkVersion,
	"shark-log-" + sharkVersion, "okio-2.2.2", "kotlin-stdlib-1.3.72",
}

// project asks Maven for Shark and what it depends on.
const project = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>heapbench</groupId>
  <artifactId>shark</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>com.squareup.leakcanary</groupId>
      <artifactId>shark-android</artifactId>
      <version>` + sharkVersion + `</version>
    </dependency>
  </dependencies>
</project>
`

// findShark gives the Java program that runs Shark.
func findShark(ctx context.Context, c cache, o options, log io.Writer) ([]string, error) {
	if o.peers == "none" {
		return nil, errUnwanted
	}
	java, err := find("java")
	if err != nil {
		return nil, err
	}
	jars, err := c.shark(ctx, log)
	if err != nil {
		return nil, err
	}
	classes, err := c.classes(ctx, "SharkRunner", jars)
	if err != nil {
		return nil, err
	}
	return []string{java, "-cp", classes + string(filepath.ListSeparator) + jars, "SharkRunner"}, nil
}

// shark gets Shark from Maven Central, unless the cache has it, and gives the class
// path.
func (c cache) shark(ctx context.Context, log io.Writer) (string, error) {
	dir := c.path("shark-" + sharkVersion)
	path := sharkPath(dir)
	if hasShark(dir) == nil {
		return path, nil
	}
	mvn, err := find("mvn")
	if err != nil {
		return "", err
	}
	part, err := c.scratch()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	pom := filepath.Join(part, "pom.xml")
	if err := os.WriteFile(pom, []byte(project), 0o644); err != nil {
		return "", fmt.Errorf("write Maven project: %w", err)
	}
	fmt.Fprintf(log, "heapbench: gets Shark %s\n", sharkVersion)
	jars := filepath.Join(part, "jars")
	if _, err := output(ctx, part, mvn, "-q", "-B", "-f", pom, "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies", "-DoutputDirectory="+jars); err != nil {
		return "", fmt.Errorf("get Shark %s: %w", sharkVersion, err)
	}
	if err := hasShark(jars); err != nil {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("get Shark %s: %w", sharkVersion, err)
	}
	return path, c.keep(jars, dir)
}

func sharkPath(dir string) string {
	var paths []string
	for _, jar := range sharkJars {
		paths = append(paths, filepath.Join(dir, jar+".jar"))
	}
	return strings.Join(paths, string(filepath.ListSeparator))
}

func hasShark(dir string) error {
	for _, jar := range sharkJars {
		if _, err := os.Stat(filepath.Join(dir, jar+".jar")); err != nil {
			return fmt.Errorf("find %s.jar: it is not there", jar)
		}
	}
	return nil
}
