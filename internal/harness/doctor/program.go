package doctor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"time"
)

// sdkVariables are the variables that name the folder of the Android SDK; the
// adb client of runs searches this folder too.
var sdkVariables = []string{"ANDROID_HOME", "ANDROID_SDK_ROOT"}

// findProgram searches for the adb program in the same locations as a run.
func findProgram(getenv func(string) string) Program {
	p := Program{Searched: []string{"PATH"}}
	path, err := exec.LookPath("adb")
	for _, name := range sdkVariables {
		if err == nil {
			break
		}
		dir := getenv(name)
		if dir == "" {
			continue
		}
		p.Searched = append(p.Searched, name)
		path, err = exec.LookPath(filepath.Join(dir, "platform-tools", "adb"))
	}
	if err == nil {
		p.Path = path
	}
	return p
}

// strayProgram searches the directory in which Android Studio installs the SDK
// by default; usually it is not in PATH.
func strayProgram() (path string, ok bool) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", false
	}
	dir := filepath.Join(home, "Android", "Sdk")
	switch runtime.GOOS {
	case "darwin":
		dir = filepath.Join(home, "Library", "Android", "sdk")
	case "windows":
		dir = filepath.Join(home, "AppData", "Local", "Android", "Sdk")
	}
	path, err = exec.LookPath(filepath.Join(dir, "platform-tools", "adb"))
	return path, err == nil
}

// askVersion runs `adb version` with a time limit.
func (p *Program) askVersion(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	out := &head{max: 4096}
	cmd := exec.CommandContext(ctx, p.Path, "version")
	cmd.Stdout, cmd.WaitDelay = out, time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("run %s version: %w", p.Path, err)
	}
	protocol, release, ok := parseVersion(out.Bytes())
	if !ok {
		return fmt.Errorf("run %s version: it printed %q", p.Path, clean(out.String()))
	}
	p.Protocol, p.Release = &protocol, release
	return nil
}

var (
	versionLine = regexp.MustCompile(`(?m)^Android Debug Bridge version 1\.0\.([0-9]{1,5})\r?$`)
	releaseLine = regexp.MustCompile(`(?m)^Version ([0-9A-Za-z][0-9A-Za-z._+~-]{0,60})\r?$`)
)

// parseVersion parses the output of `adb version`: "Android Debug Bridge
// version 1.0.41", where the last number is the server's protocol version (AOSP
// adb/adb.h, ADB_SERVER_VERSION), and since release 26 also "Version
// 29.0.6-debian".
func parseVersion(out []byte) (protocol int, release string, ok bool) {
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return 0, "", false
	}
	protocol, err := strconv.Atoi(string(m[1]))
	if r := releaseLine.FindSubmatch(out); r != nil {
		release = string(r[1])
	}
	return protocol, release, err == nil
}

// head is a writer that keeps the beginning of its input.
type head struct {
	bytes.Buffer
	max int
}

func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), max(0, h.max-h.Len()))])
	return len(p), nil
}
