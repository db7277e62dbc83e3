package androidtext

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
)

// exits returns the exit records of two packages and two users, sorted by time.
func exits() []Exit {
	at := time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.UTC)
	var list []Exit
	for i, e := range []Exit{
		{
			Package: "com.shop", Process: "com.shop", UID: 10123, Reason: Crash, Description: "crash", PssKB: 100 << 10,
			RssKB: 1536 << 10,
		},
		{Package: "com.mail", Process: "com.mail", UID: 10200, Reason: LowMemory},
		{Package: "com.shop", Process: "com.shop:push", UID: 10123, Reason: Signaled, Status: 9},
		{
			Package: "com.shop", Process: "com.shop", UID: 1010123, Reason: UserRequested, Subreason: ForceStop,
			Description: "stop com.shop due to from pid 8",
		},
		{
			Package: "com.shop", Process: "com.shop", UID: 10123, Reason: MemoryLimiter,
			Description: "MemoryLimiter:AnonSwap",
		},
		{Package: "com.mail", Process: "com.mail", UID: 10200, Reason: ANR, Description: "Input dispatching timed out"},
	} {
		e.Time, e.PID, e.Importance = at.Add(time.Duration(i)*time.Minute), 100+i, 100
		list = append(list, e)
	}
	return list
}

// TestExitInfoReadsBack checks that the parser for real phones returns the
// printed values, and that the newest record of a uid comes first.
func TestExitInfoReadsBack(t *testing.T) {
	names := map[int]string{
		Crash: "CRASH", LowMemory: "LOW_MEMORY", Signaled: "SIGNALED", UserRequested: "USER_REQUESTED",
		MemoryLimiter: "MEMORY_LIMITER", ANR: "ANR",
	}
	for api := ExitInfoSince; api <= 36; api++ {
		text := ExitInfo(api, time.Unix(0, 0).UTC(), exits(), "")
		info, err := dumpsys.ParseExitInfo([]byte(text))
		if err != nil || info.Truncated || len(info.Warnings) > 0 || info.Persisted != "1970-01-01 00:00:00.000" ||
			len(info.Exits) != 6 {
			t.Fatalf("API %d: %v %+v\n%s", api, err, info, text)
		}
		for i, at := range []int{5, 1, 4, 2, 0, 3} {
			want, got := exits()[at], info.Exits[i]
			if string(got.Package) != want.Package || string(got.Process) != want.Process ||
				got.PID.N != int64(want.PID) ||
				got.RealUID.N != int64(want.UID) || got.User.N != int64(want.UID/PerUser) ||
				got.Reason.N != int64(want.Reason) ||
				string(got.ReasonName) != names[want.Reason] || got.Status.N != int64(want.Status) ||
				got.Importance.N != 100 ||
				string(got.Description) != want.Description || string(got.Timestamp) != want.Time.Format(exitTime) ||
				got.Pss.N != want.PssKB || got.Rss.N != want.RssKB || got.Pss.Known != (want.PssKB > 0) {
				t.Errorf("API %d: %+v, want %+v", api, got, want)
			}
			if got.Subreason.Known != (api > 30) || got.Subreason.N != 0 && got.Subreason.N != int64(want.Subreason) {
				t.Errorf("API %d: subreason %v, want %d", api, got.Subreason, want.Subreason)
			}
		}
		if one := ExitInfo(api, time.Now(), exits(), "com.mail"); strings.Count(one, "  package: ") != 1 ||
			strings.Count(one, "ApplicationExitInfo #") != 2 {
			t.Errorf("API %d: %s", api, one)
		}
		if none := ExitInfo(api, time.Now(), exits(), "com.none"); strings.Count(none, "\n") != 2 {
			t.Errorf("API %d: %s", api, none)
		}
	}
}

// TestExitInfoIsBounded checks that at most MaxExits records of each uid are
// printed.
func TestExitInfoIsBounded(t *testing.T) {
	var list []Exit
	for i := range 3 * MaxExits {
		list = append(list, Exit{Package: "a", Process: "a", UID: 10001 + i%2, PID: i})
	}
	text := ExitInfo(34, time.Now(), list, "")
	if strings.Count(text, "ApplicationExitInfo #") != 2*MaxExits ||
		!strings.Contains(text, fmt.Sprintf("pid=%d ", 3*MaxExits-1)) || strings.Contains(text, "pid=3 ") {
		t.Errorf("%s", text)
	}
}

// TestExitInfoLayout compares an entire record, in the format before Android 12
// and in the format since then (ApplicationExitInfo.dump).
func TestExitInfoLayout(t *testing.T) {
	e := Exit{
		Reason: Crash, Description: "crash", Time: time.Unix(946684800, 5e6).UTC(), Process: "a.b:c", PID: 77,
		UID: 1010123, Importance: 100, PssKB: 100 << 10, RssKB: 1536 << 10,
	}
	const head = "        ApplicationExitInfo #3:\n"
	var old, modern strings.Builder
	e.dump(&old, 3, 30)
	e.dump(&modern, 3, 31)
	values := "timestamp=2000-01-01 00:00:00.005 pid=77 realUid=1010123 packageUid=1010123 definingUid=1010123 " +
		"user=10|process=a.b:c reason=4 (APP#CRASH(EXCEPTION)) subreason=0 (UNKNOWN) status=0|importance=100 " +
		"pss=100MB rss=1.5GB description=crash state=empty trace=null\n"
	values = strings.ReplaceAll(values, "01 00", "01#00")
	lines := strings.NewReplacer("|", "\n          ", "#", " ")
	if want := head + "          " + lines.Replace(values); modern.String() != want {
		t.Errorf("%s\nwant\n%s", modern.String(), want)
	}
	values = strings.Replace(values, " subreason=0 (UNKNOWN)", "", 1)
	values = strings.NewReplacer(" (", "#(", " ", "|").Replace(values)
	if want := head + "          " + lines.Replace(values); old.String() != want {
		t.Errorf("%s\nwant\n%s", old.String(), want)
	}
}

func TestDebugSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0.00", 900: "900", 901: "0.88KB", 131 << 20: "131MB", 2684354560: "2.5GB", 950 << 10: "0.93MB",
	} {
		if got := debugSize(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}

func TestBadActivityCommand(t *testing.T) {
	for api := 21; api <= 36; api++ {
		want := "Bad activity command, or no activities match: x\nUse -h for help.\n"
		if api >= 24 {
			want = "Unknown command: x\n" + want
		}
		if got := BadActivityCommand(api, "x"); got != want {
			t.Errorf("API %d: %q", api, got)
		}
	}
}

func TestArtSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0B", 1023: "1023B", 1024: "1KB", 2890 << 10: "2890KB", 10 << 20: "10MB", 5 << 30: "5120MB",
		10 << 30: "10GB",
	} {
		if got := artSize(bytes); got != want {
			t.Errorf("%d: %s, want %s", bytes, got, want)
		}
	}
}

func TestArtDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ns", 187 * time.Microsecond: "187us", 1034 * time.Microsecond: "1.034ms", 2 * time.Second: "2s",
		2462 * time.Millisecond: "2.462s", 187500: "187.500us",
	} {
		if got := artDuration(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}
