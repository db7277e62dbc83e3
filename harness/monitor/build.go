package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// askBuild is the real time that a device has to describe an installed app.
	askBuild = 15 * time.Second
	// maxPackages bounds the apps whose builds one session reads.
	maxPackages = 100
)

// wantBuild has the build of the app of a process read, once for each app and start of the
// device: what a run is about must be in its record, to compare it with others.
func (s *session) wantBuild(p capture.Process) {
	pkg := p.Package()
	if !p.Installed() || slices.Contains(s.packages, pkg) || len(s.packages) == maxPackages {
		return
	}
	s.packages = append(s.packages, pkg)
	s.unread = append(s.unread, pkg)
}

// sendBuild reads the next build. A device that does not answer leaves it unknown.
func (s *session) sendBuild(ctx context.Context) {
	if s.builds.away || len(s.unread) == 0 {
		return
	}
	pkg := s.unread[0]
	s.unread = s.unread[1:]
	dev := s.dev
	send(s, &s.builds, func() (*record.AppBuild, error) { return readBuild(ctx, dev, pkg) })
}

func (s *session) takeBuild(a answer[*record.AppBuild]) {
	s.builds.away = false
	if a.err != nil || a.value == nil {
		return
	}
	b := a.value
	words := fmt.Sprintf("%s, version %s", b.Package, text.Quote(b.VersionName, maxMarkShown))
	if b.VersionCode != nil {
		words += fmt.Sprintf(" (%d)", *b.VersionCode)
	}
	s.event(record.Event{Event: "build", Build: b, Text: words})
}

// readBuild asks for the build of an app; nil where it is not installed.
func readBuild(ctx context.Context, dev Device, pkg string) (*record.AppBuild, error) {
	a, err := shell.Ask(ctx, dev, askBuild, "dumpsys package "+text.ShellQuote(pkg)+" </dev/null")
	if err != nil {
		return nil, fmt.Errorf("read build of %s: %w", pkg, err)
	}
	p, ok := dumpsys.ParsePackage(a.Stdout, pkg)
	if !ok {
		return nil, nil
	}
	return &record.AppBuild{
		Package: pkg, VersionName: text.Printable(p.VersionName), VersionCode: number(p.VersionCode), Debuggable: told(p.Debuggable),
		APK: digestOfAPK(ctx, dev, p.CodePath),
	}, nil
}

// digestOfAPK is the SHA-256 of the base APK in a folder, "" where the device cannot tell:
// toybox has sha256sum from Android 8 on. Before Android 5 the path is that of the APK. Reading
// it takes a second at most, with the least priority.
func digestOfAPK(ctx context.Context, dev Device, path string) string {
	if path == "" {
		return ""
	}
	command := "f=" + text.ShellQuote(path) + "; [ -d \"$f\" ] && f=\"$f/base.apk\"; nice -n 19 sha256sum \"$f\" </dev/null 2>/dev/null"
	a, err := shell.Ask(ctx, dev, askBuild, command)
	digest, _, _ := strings.Cut(string(a.Stdout), " ")
	if sum, derr := hex.DecodeString(digest); err != nil || derr != nil || len(sum) != sha256.Size {
		return ""
	}
	return strings.ToLower(digest)
}
