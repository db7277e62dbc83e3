package response

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/capture"
)

// exitRecord returns one record of exit-info in the format of Android 12 and
// later.
func exitRecord(i int, at, process string, user, reason int) string {
	return fmt.Sprintf("        ApplicationExitInfo #%d:\n          timestamp=%s pid=%d realUid=%d10123 "+
		"packageUid=%[4]d10123 definingUid=%[4]d10123 user=%[4]d\n"+
		"          process=%s reason=%d (X) subreason=0 (UNKNOWN) status=0\n          importance=100 pss=0.00 "+
		"rss=0.00 description=null state=empty trace=null\n", i, at, 100+i, user, process, reason)
}

const exitHead = "ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)\n  package: com.shop\n"

// The device prints the exits of all users, starting with the lowest uid. The
// exits of another user's app are not attributed to the watched app, and the
// newest exit is reported as the last one.
func TestExitsOfUser(t *testing.T) {
	text := exitHead + "    Historical Process Exit for uid=10123\n" +
		exitRecord(0, "2026-01-02 09:00:00.000", "com.shop", 0, 4) +
		exitRecord(1, "2026-01-01 09:00:00.000", "com.shop", 0, 10) +
		"    Historical Process Exit for uid=1010123\n" +
		exitRecord(0, "2026-01-02 05:00:00.500", "com.shop", 10, 6) +
		exitRecord(1, "2026-01-02 07:00:00.000", "com.shop:push", 10, 4) +
		"    Historical Process Exit for uid=1010555\n" +
		exitRecord(0, "2026-01-02 05:00:00.600", "com.shop", 10, 3) +
		exitRecord(1, "unknown time", "com.shop", 10, 13) +
		exitRecord(2, "2026-01-02 04:00:00", "com.shop", 10, 5)
	for user, want := range map[int][]string{
		0: {"exit info: 2 earlier exits of processes with this name, the last: CRASH at 2026-01-02 09:00:00.000",
			"  CRASH at 2026-01-02 09:00:00.000", "  USER_REQUESTED at 2026-01-01 09:00:00.000"},
		10: {"exit info: 4 earlier exits of processes with this name, the last: LOW_MEMORY at 2026-01-02 05:00:00.600",
			"  LOW_MEMORY at 2026-01-02 05:00:00.600", "  ANR at 2026-01-02 05:00:00.500",
			"  CRASH_NATIVE at 2026-01-02 04:00:00", "  OTHER at unknown time"},
		11: {"exit info: no recorded exit of a process with this name"},
	} {
		c := &Case{Order: Order{Process: capture.Process{Name: "com.shop", User: user}}}
		got, err := readExitInfo(c, &MemorySnapshot{}, []byte(text))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("user %d: %v\n%s", user, err, strings.Join(got, "\n"))
		}
	}
	// If the device does not report the user of an exit, the exit is counted.
	nobody := strings.ReplaceAll(exitHead+exitRecord(0, "2026-01-02 09:00:00.000", "com.shop", 0, 4), " user=0\n", "\n")
	c := &Case{Order: Order{Process: capture.Process{Name: "com.shop", User: 10}}}
	got, err := readExitInfo(c, &MemorySnapshot{}, []byte(nobody))
	if err != nil ||
		got[0] != "exit info: 1 earlier exit of a process with this name: CRASH at 2026-01-02 09:00:00.000" {
		t.Errorf("%q, %v", got, err)
	}
}
