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

// builds reads which builds of the apps run.
type builds struct {
	*port
	call call[*record.AppBuild]
	// packages are the apps that were met, queue those whose builds are not read yet.
	packages, queue []string
}

func newBuilds(p *port) *builds { return &builds{port: p, call: newCall[*record.AppBuild]()} }

const (
	// askBuild is the real time that a device has to describe an installed app.
	askBuild = 15 * time.Second
	// maxPackages bounds the apps whose builds one session reads.
	maxPackages = 100
)

// want has the build of the app of a process read, once for each app and start of the
// device: what a run is about must be in its record, to compare it with others.
func (q *builds) want(p capture.Process) {
	pkg := p.Package()
	if !p.Installed() || slices.Contains(q.packages, pkg) || len(q.packages) == maxPackages {
		return
	}
	q.packages = append(q.packages, pkg)
	q.queue = append(q.queue, pkg)
}

// send reads the next build. A device that does not answer leaves it unknown.
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
	q.event(record.Event{Event: "build", Build: b, Text: words})
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
