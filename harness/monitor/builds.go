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

// builds determines which builds of the watched apps are installed.
type builds struct {
	*port
	call call[*record.AppBuild]
	// packages are the apps that were found; queue lists those whose builds
	// have not been read yet.
	packages, queue []string
}

func newBuilds(p *port) *builds { return &builds{port: p, call: newCall[*record.AppBuild]()} }

const (
	// buildTimeout is the wall-clock time within which a device must describe
	// an installed app.
	buildTimeout = 15 * time.Second
	// maxPackages bounds the number of apps whose builds one session reads.
	maxPackages = 100
)

// want queues the app of a process, once per app and run. The record must
// identify the tested build so that runs can be compared.
func (q *builds) want(p capture.Process) {
	pkg := p.Package()
	if !p.Installed() || slices.Contains(q.packages, pkg) || len(q.packages) == maxPackages {
		return
	}
	q.packages = append(q.packages, pkg)
	q.queue = append(q.queue, pkg)
}

// send reads the next build. If the device does not respond, the build stays
// unknown.
func (q *builds) send(ctx context.Context) {
	if q.call.inFlight || len(q.queue) == 0 {
		return
	}
	pkg := q.queue[0]
	q.queue = q.queue[1:]
	dev := q.dev
	send(q.port, &q.call, func() (*record.AppBuild, error) { return readBuild(ctx, dev, pkg) })
}

func (q *builds) take(a answer[*record.AppBuild]) {
	q.call.inFlight = false
	if a.err != nil || a.value == nil {
		return
	}
	b := a.value
	words := fmt.Sprintf("%s, version %s", b.Package, text.Quote(b.VersionName, maxMarkShown))
	if b.VersionCode != nil {
		words += fmt.Sprintf(" (%d)", *b.VersionCode)
	}
	q.recordEvent(record.Event{Event: "build", Build: b, Text: words})
}

// readBuild reads the build of an app. It returns nil if the app is not
// installed.
func readBuild(ctx context.Context, dev Device, pkg string) (*record.AppBuild, error) {
	a, err := shell.Ask(ctx, dev, buildTimeout, "dumpsys package "+text.ShellQuote(pkg)+" </dev/null")
	if err != nil {
		return nil, fmt.Errorf("read build of %s: %w", pkg, err)
	}
	p, ok := dumpsys.ParsePackage(a.Stdout, pkg)
	if !ok {
		return nil, nil
	}
	return &record.AppBuild{
		Package: pkg, VersionName: text.Printable(p.VersionName), VersionCode: number(p.VersionCode),
		Debuggable: triState(p.Debuggable),
		APK:        digestOfAPK(ctx, dev, p.CodePath),
	}, nil
}

// digestOfAPK returns the SHA-256 of the base APK in a folder, or "" if the
// device cannot compute it. toybox has provided sha256sum since Android 8.
// Before Android 5 the path is the APK itself. The command runs with the lowest
// priority and takes at most one second.
func digestOfAPK(ctx context.Context, dev Device, path string) string {
	if path == "" {
		return ""
	}
	command := "f=" + text.ShellQuote(path) +
		"; [ -d \"$f\" ] && f=\"$f/base.apk\"; nice -n 19 sha256sum \"$f\" </dev/null 2>/dev/null"
	a, err := shell.Ask(ctx, dev, buildTimeout, command)
	digest, _, _ := strings.Cut(string(a.Stdout), " ")
	if sum, derr := hex.DecodeString(digest); err != nil || derr != nil || len(sum) != sha256.Size {
		return ""
	}
	return strings.ToLower(digest)
}
