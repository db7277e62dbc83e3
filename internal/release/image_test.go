package release

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Building the image requires a container engine. This test only parses the
// Dockerfile and compares it with the output of goreleaser.
func TestImage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	comment := regexp.MustCompile(`(?m)^\s*#.*\n`)
	lines := strings.Split(strings.TrimSpace(
		strings.ReplaceAll(comment.ReplaceAllString(string(text), ""), "\\\n", " ")), "\n")
	known := []string{"FROM", "RUN", "ARG", "COPY", "ENV", "WORKDIR", "ENTRYPOINT"}
	has := map[string][]string{}
	for _, line := range lines {
		if line == "" {
			continue
		}
		instruction, rest, _ := strings.Cut(line, " ")
		if !slices.Contains(known, instruction) {
			t.Errorf("unexpected line %q", line)
		}
		has[instruction] = append(has[instruction], strings.Join(strings.Fields(rest), " "))
	}
	if first := strings.Fields(lines[0]); first[0] != "FROM" || !strings.HasPrefix(first[1], "debian:") ||
		strings.HasSuffix(first[1], ":latest") {
		t.Errorf("the Dockerfile begins with %q, want FROM debian with a fixed tag", lines[0])
	}
	if !slices.Equal(has["COPY"], []string{"$TARGETPLATFORM/leakgate /usr/local/bin/leakgate"}) ||
		!slices.Equal(has["ARG"], []string{"TARGETPLATFORM"}) {
		t.Errorf("the Dockerfile copies %q with arguments %q, want leakgate with TARGETPLATFORM", has["COPY"],
			has["ARG"])
	}
	if !slices.Equal(has["ENTRYPOINT"], []string{`["leakgate"]`}) {
		t.Errorf("the image starts %q", has["ENTRYPOINT"])
	}
	for _, wanted := range []string{
		" adb ", " ca-certificates ", " git ", "--no-install-recommends", "rm -rf /var/lib/apt/lists",
	} {
		if !strings.Contains(strings.Join(has["RUN"], " ")+" ", wanted) {
			t.Errorf("no RUN line contains %q", wanted)
		}
	}

	var release struct {
		Builds []struct {
			Goos, Goarch []string
			Binary       string
		}
		Images []struct {
			Dockerfile string
			Platforms  []string
			ExtraFiles []string `yaml:"extra_files"`
		} `yaml:"dockers_v2"`
	}
	readYAML(t, filepath.Join(root, ".goreleaser.yaml"), &release)
	image := release.Images[0]
	if image.Dockerfile != "Dockerfile" || len(image.ExtraFiles) > 0 {
		t.Errorf("goreleaser builds %q with extra files %q, want Dockerfile without extra files", image.Dockerfile,
			image.ExtraFiles)
	}
	for _, platform := range image.Platforms {
		system, arch, _ := strings.Cut(platform, "/")
		if !slices.Contains(release.Builds[0].Goos, system) || !slices.Contains(release.Builds[0].Goarch, arch) {
			t.Errorf("no binary for %s", platform)
		}
	}
}
