package aosp

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// Package is the package that apt fetches; release is the first Debian
	// release that contains it.
	Package = "adbd"
	release = "trixie"
	// keyring is Debian's own keyring, which every Debian installation
	// contains.
	keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
)

// Fetch uses apt to unpack the daemon into a directory, unless it is already
// there. The directory is either complete or missing, even if several processes
// fetch at the same time. A fetch takes about ten seconds and downloads 25 MB.
func Fetch(ctx context.Context, dir string) (Daemon, error) {
	dir, err := filepath.Abs(dir) // apt would interpret a relative path as relative to /
	if err != nil {
		return Daemon{}, fmt.Errorf("find folder: %w", err)
	}
	d, err := Unpacked(dir)
	if err == nil {
		return d, nil
	}
	if _, there := os.Stat(dir); there == nil {
		return Daemon{}, fmt.Errorf("check folder %s (delete it to download the files again): %w", dir, err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return Daemon{}, fmt.Errorf("make folder: %w", err)
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "part-")
	if err != nil {
		return Daemon{}, fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(part)
	whole := filepath.Join(part, "root")
	if err := build(ctx, part, whole); err != nil {
		return Daemon{}, err
	}
	if err := keep(whole, dir); err != nil {
		return Daemon{}, err
	}
	return Unpacked(dir)
}

func build(ctx context.Context, part, whole string) error {
	a, err := newApt(ctx, part)
	if err != nil {
		return err
	}
	archives, err := a.download(ctx)
	if err != nil {
		return err
	}
	version := ""
	for _, deb := range archives {
		if out, err := exec.CommandContext(ctx, "dpkg-deb", "-x", deb, whole).CombinedOutput(); err != nil {
			return fmt.Errorf("unpack %s: %w: %s", filepath.Base(deb), err, lastLine(out))
		}
		if name, rest, _ := strings.Cut(filepath.Base(deb), "_"); name == Package {
			version, _, _ = strings.Cut(rest, "_")
		}
	}
	d, err := find(whole)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", Package, err)
	}
	if err := d.check(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(whole, stamp), []byte(version+"\n"), 0o644); err != nil {
		return fmt.Errorf("unpack %s: %w", Package, err)
	}
	return nil
}

// keep moves a complete directory to its final path. If another process was
// faster, its directory stays.
func keep(whole, dir string) error {
	if err := os.Rename(whole, dir); err != nil {
		if _, there := Unpacked(dir); there != nil {
			return fmt.Errorf("keep %s: %w", Package, err)
		}
	}
	return nil
}

// apt runs this machine's apt with a separate state, which contains only the
// packages of one release.
type apt struct{ dir, config string }

func newApt(ctx context.Context, part string) (apt, error) {
	for _, tool := range []string{"apt-get", "apt-config", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return apt{}, fmt.Errorf("find apt: %w", err)
		}
	}
	if _, err := os.Stat(keyring); err != nil {
		return apt{}, fmt.Errorf("find the keys of Debian: %w", err)
	}
	a := apt{dir: filepath.Join(part, "apt"), config: filepath.Join(part, "apt", "apt.conf")}
	for _, dir := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(a.dir, dir), 0o755); err != nil {
			return apt{}, fmt.Errorf("make folder: %w", err)
		}
	}
	mirror, err := mirror(ctx)
	if err != nil {
		return apt{}, err
	}
	network, err := network(ctx)
	if err != nil {
		return apt{}, err
	}
	for name, text := range map[string]string{
		"apt.conf":     a.settings() + network,
		"sources.list": "deb [signed-by=" + keyring + "] " + mirror + " " + release + " main\n",
		"status":       "", // as if nothing were installed, so every library is fetched
	} {
		if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o644); err != nil {
			return apt{}, fmt.Errorf("set up apt: %w", err)
		}
	}
	return a, nil
}

// settings makes apt independent of this machine's state (apt.conf(5)); hooks
// in the machine's configuration would change that state.
func (a apt) settings() string {
	at := func(name string) string { return filepath.Join(a.dir, name) }
	var b strings.Builder
	for _, s := range [][2]string{
		{"Dir::State", at("state")}, {"Dir::State::status", at("status")}, {"Dir::Cache", at("cache")},
		{"Dir::Etc::sourcelist", at("sources.list")}, {"Dir::Etc::sourceparts", "/dev/null"},
		{"Dir::Etc::main", "/dev/null"}, {"Dir::Etc::parts", "/dev/null"},
		{"Dir::Etc::preferences", "/dev/null"}, {"Dir::Etc::preferencesparts", "/dev/null"},
		{"APT::Install-Recommends", "false"}, {"Acquire::Languages", "none"},
		// Without this setting, apt downloads as a user who has no access to
		// this directory.
		{"APT::Sandbox::User", "root"},
	} {
		fmt.Fprintf(&b, "%s %q;\n", s[0], s[1])
	}
	return b.String()
}

// download fetches the files of the package and of all its dependencies.
func (a apt) download(ctx context.Context) ([]string, error) {
	for _, args := range [][]string{{"update"}, {"install", "--download-only", Package}} {
		cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-qq", "-y"}, args...)...)
		cmd.Env = append(os.Environ(), "APT_CONFIG="+a.config, "LC_ALL=C")
		cmd.WaitDelay = 5 * time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("fetch %s: apt-get %s: %w: %s", Package, args[0], err, lastLine(out))
		}
	}
	archives, err := filepath.Glob(filepath.Join(a.dir, "cache/archives/*.deb"))
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", Package, err)
	}
	if len(archives) == 0 {
		return nil, fmt.Errorf("fetch %s: apt-get fetched nothing: %w", Package, fs.ErrNotExist)
	}
	slices.Sort(archives)
	return archives, nil
}

// mirror returns the URL from which this machine's apt downloads its own
// release.
func mirror(ctx context.Context) (string, error) {
	own, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", fmt.Errorf("find the release of this machine: %w", err)
	}
	id, codename := distribution(own)
	if id != "debian" {
		return "", fmt.Errorf("fetch %s: this machine is %q, not debian", Package, id)
	}
	cmd := exec.CommandContext(ctx, "apt-get", "indextargets", "--no-release-info", "--format",
		"$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find the mirror of this machine: %w", err)
	}
	if uri, ok := sourceOf(out, codename); ok {
		return uri, nil
	}
	return "", fmt.Errorf("find the mirror of this machine: apt has no source for %s main", codename)
}

// sourceOf finds the URL of a release in the output of indextargets.
func sourceOf(targets []byte, codename string) (uri string, ok bool) {
	for line := range strings.Lines(string(targets)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[1] != codename || f[2] != "main" || !strings.Contains(f[0], "://") {
			continue
		}
		return f[0], true
	}
	return "", false
}

// distribution reads ID and VERSION_CODENAME of os-release(5).
func distribution(text []byte) (id, codename string) {
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, `"'`)
		switch key {
		case "ID":
			id = value
		case "VERSION_CODENAME":
			codename = value
		}
	}
	return id, codename
}

// network returns the network settings of this machine's apt: its proxies, and
// whether this machine's clock is reliable enough to check the dates of the
// mirror.
func network(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-config", "dump").Output()
	if err != nil {
		return "", fmt.Errorf("read the settings of apt: %w", err)
	}
	var b strings.Builder
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		for _, prefix := range []string{"Acquire::http", "Acquire::Retries", "Acquire::ForceIPv", "Acquire::Check-"} {
			if strings.HasPrefix(lines.Text(), prefix) {
				b.WriteString(lines.Text() + "\n")
			}
		}
	}
	return b.String(), lines.Err()
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndex(text, "\n")+1:]
}
