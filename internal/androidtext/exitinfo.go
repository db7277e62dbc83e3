package androidtext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The reasons of android.app.ApplicationExitInfo that the simulated phones and
// the host device use.
const (
	ExitSelf      = 1
	Signaled      = 2
	LowMemory     = 3
	Crash         = 4
	CrashNative   = 5
	ANR           = 6
	UserRequested = 10
	OtherKill     = 13
	MemoryLimiter = 17
)

// The subreasons of these exits; 0 means unknown.
const (
	ForceStop      = 21
	KillBackground = 24
)

var exitReasons = map[int]string{
	ExitSelf: "EXIT_SELF", Signaled: "SIGNALED", LowMemory: "LOW_MEMORY", Crash: "APP CRASH(EXCEPTION)",
	CrashNative: "APP CRASH(NATIVE)", ANR: "ANR", UserRequested: "USER REQUESTED",
	OtherKill: "OTHER KILLS BY SYSTEM", MemoryLimiter: "MEMORY LIMITER",
}

var exitSubreasons = map[int]string{0: "UNKNOWN", ForceStop: "FORCE STOP", KillBackground: "KILL BACKGROUND"}

const (
	// ExitInfoSince is the first API level that records how processes ended.
	ExitInfoSince = 30
	// MaxExits is the number of records that are kept per package
	// (AppExitInfoTracker.APP_EXIT_INFO_HISTORY_LIST_SIZE).
	MaxExits = 16
	// PerUser is the size of the uid range of one Android user.
	PerUser = 100000
)

// Exit is the record of a process exit.
type Exit struct {
	// Time is printed in its own time zone.
	Time              time.Time
	Package, Process  string
	PID, UID          int
	Reason, Subreason int
	// Status is the signal or the exit code.
	Status, Importance int
	PssKB, RssKB       int64
	// An empty Description is printed as null.
	Description string
}

const exitTime = "2006-01-02 15:04:05.000"

// ExitInfo returns the output of `dumpsys activity exit-info` for one package,
// or for all packages if pkg is empty. exits must be sorted by time; the newest
// record of each uid is printed first
// (AppExitInfoTracker.dumpHistoryProcessExitInfo). persisted is when the
// records were last written to disk.
func ExitInfo(api int, persisted time.Time, exits []Exit, pkg string) string {
	var b strings.Builder
	b.WriteString("ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)\n")
	fmt.Fprintf(&b, "Last Timestamp of Persistence Into Persistent Storage: %s\n", persisted.Format(exitTime))
	list := slices.Clone(exits)
	slices.Reverse(list)
	slices.SortStableFunc(list, func(a, b Exit) int {
		if c := strings.Compare(a.Package, b.Package); c != 0 {
			return c
		}
		return a.UID - b.UID
	})
	name, uid, n := "", -1, 0
	for _, e := range list {
		if pkg != "" && e.Package != pkg {
			continue
		}
		if uid < 0 || e.Package != name {
			fmt.Fprintf(&b, "  package: %s\n", e.Package)
			name, uid = e.Package, -1
		}
		if e.UID != uid {
			fmt.Fprintf(&b, "    Historical Process Exit for uid=%d\n", e.UID)
			uid, n = e.UID, 0
		}
		if n < MaxExits {
			e.dump(&b, n, api)
		}
		n++
	}
	return b.String()
}

// dump implements ApplicationExitInfo.dump: one value per line in Android 11,
// several since Android 12.
func (e *Exit) dump(b *strings.Builder, n, api int) {
	const indent = "          "
	description, sub := e.Description, exitSubreasons[e.Subreason]
	if description == "" {
		description = "null"
	}
	if sub == "" {
		sub = exitSubreasons[0]
	}
	first := []string{
		"timestamp=" + e.Time.Format(exitTime), fmt.Sprintf("pid=%d", e.PID), fmt.Sprintf("realUid=%d", e.UID),
		fmt.Sprintf("packageUid=%d", e.UID), fmt.Sprintf("definingUid=%d", e.UID),
		fmt.Sprintf("user=%d", e.UID/PerUser),
	}
	second := []string{"process=" + e.Process, fmt.Sprintf("reason=%d (%s)", e.Reason, exitReasons[e.Reason])}
	if api > ExitInfoSince {
		second = append(second, fmt.Sprintf("subreason=%d (%s)", e.Subreason, sub))
	}
	second = append(second, fmt.Sprintf("status=%d", e.Status))
	third := []string{
		fmt.Sprintf("importance=%d", e.Importance), "pss=" + debugSize(e.PssKB<<10), "rss=" + debugSize(e.RssKB<<10),
		"description=" + description, "state=empty", "trace=null",
	}
	fmt.Fprintf(b, "        ApplicationExitInfo #%d:\n", n)
	between := " "
	if api <= ExitInfoSince {
		between = "\n" + indent
	}
	for _, line := range [][]string{first, second, third} {
		b.WriteString(indent + strings.Join(line, between) + "\n")
	}
}

// debugSize implements android.util.DebugUtils.printSizeValue.
func debugSize(bytes int64) string {
	n, unit := float64(bytes), ""
	for _, next := range []string{"KB", "MB", "GB", "TB", "PB"} {
		if n <= 900 {
			break
		}
		n, unit = n/1024, next
	}
	digits := 0
	switch {
	case n < 1:
		digits = 2
	case n < 10:
		digits = 1
	}
	return strconv.FormatFloat(n, 'f', digits, 64) + unit
}

// BadActivityCommand returns the response of `dumpsys activity` to an unknown
// command. Since Android 7, the service's shell command rejects the unknown
// command first.
func BadActivityCommand(api int, word string) string {
	first := ""
	if api >= 24 {
		first = fmt.Sprintf("Unknown command: %s\n", word)
	}
	return first + fmt.Sprintf("Bad activity command, or no activities match: %s\nUse -h for help.\n", word)
}
