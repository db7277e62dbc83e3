package diagnose

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/shell"
)

const (
	// sweepTimeout is the maximum wall-clock time of the search for leftovers
	// on the device.
	sweepTimeout = 10 * time.Second
	// oldDump is the device time after which a dump is certainly no longer
	// being written or pulled: twice the time limit, plus the slowest pull. The
	// additional hour allows for a change to daylight saving time.
	oldDump = 2*heapLimit + pullStart + MaxHeap/pullRate*time.Second + time.Hour
	// maxOthers is the maximum number of dumps of other owners that one sweep
	// removes.
	maxOthers = 20
)

// owner returns the word that identifies this host, this user and the device's
// serial number in the names of dumps. Each owner has at most one run at a
// time, because a run holds a lease. Other owners may have a run on the same
// phone: from another host, by another user, or under another serial number
// (over Wi-Fi and over a cable).
func owner(dev capture.Device) string {
	// A missing name or folder is treated as empty.
	host, _ := os.Hostname()
	cache, _ := os.UserCacheDir() // this directory is per user and contains the leases
	sum := sha256.Sum256([]byte(host + "\x00" + strconv.Itoa(os.Getuid()) + "\x00" + cache + "\x00" + dev.Serial()))
	return hex.EncodeToString(sum[:4])
}

// Sweep removes the heap dumps that crashed runs have left on the device, and
// returns their paths. It removes only files in /data/local/tmp with a name
// that this package uses. The caller must hold the device lease: dumps of the
// same owner are removed immediately, and dumps of other owners are removed
// once they are old.
func Sweep(ctx context.Context, dev capture.Device) ([]string, error) {
	const all = dumpDir + "/" + dumpPrefix + "*" + dumpSuffix
	parts, err := askSwept(ctx, dev, []shell.Part{
		{"swept", removal(dumpDir+"/"+dumpPrefix+owner(dev)+"-*"+dumpSuffix, "-e")},
		{"now", "date +%s; date '+" + lsFormat + "'"},
		// toolbox has no stat.
		{
			"others",
			"for f in " + all +
				`; do if [ -f "$f" ]; then stat -c '%Y %n' "$f" 2>/dev/null || ls -l "$f" 2>/dev/null; fi; done`,
		},
	})
	if err != nil {
		return nil, err
	}
	swept := removed(parts["swept"])
	old := oldDumps(string(parts["now"]), string(parts["others"]))
	if len(old) == 0 {
		return swept, nil
	}
	parts, err = askSwept(ctx, dev,
		[]shell.Part{{"swept", removal(strings.Join(old[:min(len(old), maxOthers)], " "), "-f")}})
	return append(swept, removed(parts["swept"])...), err
}

func askSwept(ctx context.Context, dev capture.Device, parts []shell.Part) (map[string][]byte, error) {
	m := shell.NewMarker()
	a, err := shell.Ask(ctx, dev, sweepTimeout, m.Join(parts))
	if err != nil {
		return nil, fmt.Errorf("sweep device: %w", err)
	}
	texts, whole := m.Split(a.Stdout)
	if !whole {
		return nil, fmt.Errorf("sweep device: %w: truncated answer", capture.ErrDevice)
	}
	return texts, nil
}

// removeWords is a command that removes a file or directory whose name is that
// of one of the caller's own dumps, since am may have created a directory
// there. For a link, only the link is removed.
const removeWords = "rm -rf "

// removal returns the command that removes these files and prints their paths.
// It removes only regular files if kind is -f, and also directories if kind is
// -e.
func removal(words, kind string) string {
	return "for f in " + words + `; do if [ ` + kind + ` "$f" ]; then ` + removeWords + `"$f" && echo "$f"; fi; done`
}

func removed(text []byte) (out []string) {
	for line := range strings.Lines(string(text)) {
		if name := shell.Clip(line); strings.HasPrefix(name, dumpDir+"/"+dumpPrefix) &&
			strings.HasSuffix(name, dumpSuffix) {
			out = append(out, name)
		}
	}
	return out
}

const (
	// lsFormat is the format in which `ls -l` of toolbox prints a time in the
	// device's time zone; lsTime is the same format for Go.
	lsFormat, lsTime = "%Y-%m-%d %H:%M", "2006-01-02 15:04"
	// dumpName matches the names of dumps; it does not match any name that a
	// shell could expand or split.
	dumpName = dumpPrefix + `[A-Za-z0-9-]{1,80}\.hprof`
)

var (
	statLineOfDump = regexp.MustCompile(`^([0-9]{1,12}) ` + dumpDir + `/(` + dumpName + `)$`)
	lsLineOfDump   = regexp.MustCompile(`^-.* ([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}) (?:` + dumpDir + `/)?(` +
		dumpName + `)$`)
)

// oldDumps returns the paths of the old dumps in a listing. now is the current
// time of the device in both formats of the listing.
func oldDumps(now, listing string) (out []string) {
	seconds, minutes, _ := strings.Cut(strings.ReplaceAll(now, "\r", ""), "\n")
	for line := range strings.Lines(listing) {
		line = strings.TrimRight(line, "\r\n")
		if m := statLineOfDump.FindStringSubmatch(line); m != nil && since(unixTime, m[1], seconds) > oldDump {
			out = append(out, dumpDir+"/"+m[2])
		}
		if m := lsLineOfDump.FindStringSubmatch(line); m != nil && since(minuteTime, m[1], minutes) > oldDump {
			out = append(out, dumpDir+"/"+m[2])
		}
	}
	return out
}

// since returns the time between two timestamps, or 0 if one of them is
// invalid.
func since(parse func(string) (time.Time, error), then, now string) time.Duration {
	a, err := parse(then)
	b, berr := parse(strings.TrimSpace(now))
	if err != nil || berr != nil {
		return 0
	}
	return b.Sub(a)
}

func minuteTime(text string) (time.Time, error) { return time.Parse(lsTime, text) }

func unixTime(text string) (time.Time, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(n, 0), err
}
