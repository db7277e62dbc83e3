package dumpsys

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
)

// These dumps were recorded by others: on an emulator of API 34 (the crash
// harness of an OpenTelemetry package for Flutter, tool/exit-info), on a phone
// (the app sambas3, scripts/perf/classify-crash), and on an emulator of API 36
// (a note about mobile debugging with the record of android.process.acore).
const exitsOf34 = `ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)
Last Timestamp of Persistence Into Persistent Storage: 2026-10-08 22:49:04.298
  package: com.example.otel_zone_example
    Historical Process Exit for uid=10197
        ApplicationExitInfo #0:
          timestamp=2026-10-08 22:49:31.375 pid=8297 realUid=10197 packageUid=10197 definingUid=10197 user=0
          process=com.example.otel_zone_example reason=10 (USER REQUESTED) subreason=21 (FORCE STOP) status=0
          importance=100 pss=221MB rss=304MB description=stop com.example.otel_zone_example due to from pid 8396 state=46 bytes trace=null
        ApplicationExitInfo #1:
          timestamp=2026-10-08 22:49:14.248 pid=8036 realUid=10197 packageUid=10197 definingUid=10197 user=0
          process=com.example.otel_zone_example reason=5 (APP CRASH(NATIVE)) subreason=0 (UNKNOWN) status=11
          importance=100 pss=0.00 rss=0.00 description=crash state=46 bytes trace=null
`

const exitsOfPhone = `ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)
Last Timestamp of Persistence Into Persistent Storage: 2026-09-25 02:39:26.765
  package: com.zenithblue.sambas3
    Historical Process Exit for uid=10463
        ApplicationExitInfo #0:
          timestamp=2026-09-25 02:41:35.649 pid=10950 realUid=10463 packageUid=10463 definingUid=10463 user=0
          process=com.zenithblue.sambas3 reason=16 (PACKAGE UPDATED) subreason=0 (UNKNOWN) status=0
          importance=400 pss=0.00 rss=270MB description=stop com.zenithblue.sambas3 due to installPackageLI state=empty trace=null
        ApplicationExitInfo #1:
          timestamp=2026-09-25 00:33:03.880 pid=4189 realUid=10463 packageUid=10463 definingUid=10463 user=0
          process=com.zenithblue.sambas3 reason=3 (LOW_MEMORY) subreason=0 (UNKNOWN) status=0
          importance=100 pss=0.00 rss=2.5GB description=null state=empty trace=null
        ApplicationExitInfo #2:
          timestamp=2026-09-24 23:26:31.481 pid=4475 realUid=10463 packageUid=10463 definingUid=10463 user=0
          process=com.zenithblue.sambas3 reason=2 (SIGNALED) subreason=0 (UNKNOWN) status=6
          importance=100 pss=0.00 rss=1.9GB description=null state=empty trace=null
        ApplicationExitInfo #3:
          timestamp=2026-09-24 23:24:03.592 pid=5586 realUid=10463 packageUid=10463 definingUid=10463 user=0
          process=com.zenithblue.sambas3:ppu_compile reason=2 (SIGNALED) subreason=0 (UNKNOWN) status=9
          importance=100 pss=0.00 rss=0.00 description=null state=empty trace=null
  package: com.android.providers.contacts
    Historical Process Exit for uid=10096
        ApplicationExitInfo #0:
          timestamp=2026-08-11 05:58:21.822 pid=4721 realUid=10096 packageUid=10096 definingUid=10096 user=0
          process=android.process.acore reason=14 (FREEZER) subreason=20 (FREEZER BINDER TRANSACTION) status=0
          importance=400 pss=0.00 rss=0.00 description=Sync transaction while frozen state=empty trace=null
`

// In Android 11 each field has its own line, and there is no subreason
// (ApplicationExitInfo.dump of that release).
const exitsOf30 = `ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)
Last Timestamp of Persistence Into Persistent Storage: 1970-01-01 00:00:00.000
  package: com.shop
    Historical Process Exit for uid=10123
        ApplicationExitInfo #0:
          timestamp=2021-01-02 03:04:05.678
          pid=123
          realUid=10123
          packageUid=10123
          definingUid=10123
          user=0
          process=com.shop:push
          reason=4 (APP CRASH(EXCEPTION))
          status=0
          importance=125
          pss=23MB
          rss=110MB
          description=crash
          state=empty
          trace=/data/system/procexitstore/anr_2021-01-02-03-04-05-678.gz
`

func exitsIn(t *testing.T, text string) ExitInfo {
	t.Helper()
	info, err := ParseExitInfo([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestRecordedExitInfo(t *testing.T) {
	for _, eol := range []string{"\n", "\r\n"} {
		info := exitsIn(t, strings.ReplaceAll(exitsOf34, "\n", eol))
		want := Exit{
			Package: "com.example.otel_zone_example", Timestamp: "2026-10-08 22:49:31.375", PID: known.Of(8297),
			User: known.Of(0), RealUID: known.Of(10197),
			Process: "com.example.otel_zone_example", Reason: known.Of(10), ReasonName: "USER_REQUESTED",
			Subreason: known.Of(21), SubreasonName: "FORCE STOP",
			Status: known.Of(0), Importance: known.Of(100), Pss: known.Of(221 << 10), Rss: known.Of(304 << 10),
			Description: "stop com.example.otel_zone_example due to from pid 8396",
		}
		if len(info.Exits) != 2 || info.Exits[0] != want || info.Truncated || info.Warnings != nil ||
			info.Persisted != "2026-10-08 22:49:04.298" {
			t.Fatalf("%+v", info)
		}
		if e := info.Exits[1]; e.ReasonName != "CRASH_NATIVE" || e.Status != known.Of(11) || e.Pss.Known ||
			e.Rss.Known || e.Description != "crash" || !e.Crash() || e.Kill() {
			t.Errorf("%+v", e)
		}

		info = exitsIn(t, strings.ReplaceAll(exitsOfPhone, "\n", eol))
		var told []string
		for _, e := range info.Exits {
			told = append(told,
				fmt.Sprintf("%d %s %s %d %t %t", e.PID.N, e.Process, e.ReasonName, e.Rss.N, e.Crash(), e.Kill()))
		}
		if want := []string{
			"10950 com.zenithblue.sambas3 PACKAGE_UPDATED 276480 false true",
			"4189 com.zenithblue.sambas3 LOW_MEMORY 2621440 false true",
			"4475 com.zenithblue.sambas3 SIGNALED 1992294 true false",
			"5586 com.zenithblue.sambas3:ppu_compile SIGNALED 0 false true",
			"4721 android.process.acore FREEZER 0 false true",
		}; !reflect.DeepEqual(told, want) {
			t.Errorf("got %q\nwant %q", told, want)
		}
		if info.Exits[4].Package != "com.android.providers.contacts" || info.Truncated || info.Warnings != nil {
			t.Errorf("%+v", info)
		}

		info = exitsIn(t, strings.ReplaceAll(exitsOf30, "\n", eol))
		if len(info.Exits) != 1 || info.Truncated || info.Warnings != nil {
			t.Fatalf("%+v", info)
		}
		if e := info.Exits[0]; e.ReasonName != "CRASH" || e.Subreason.Known || e.Pss != known.Of(23<<10) ||
			e.Description != "crash" || e.Process != "com.shop:push" ||
			e.Trace != "/data/system/procexitstore/anr_2021-01-02-03-04-05-678.gz" || !e.Crash() {
			t.Errorf("%+v", e)
		}
	}
}

func TestExitInfoWithoutRecords(t *testing.T) {
	info := exitsIn(t,
		"ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)\nLast Timestamp of Persistence Into "+
			"Persistent Storage: 2026-10-08 22:04:11.860\n")
	if len(info.Exits) != 0 || info.Truncated || info.Persisted == "" {
		t.Errorf("%+v", info)
	}
	for text, kind := range map[string]Kind{
		"": Empty,
		"Bad activity command, or no activities match: exit-info\n": Unsupported,

		"Unknown command: exit-info\nBad activity command, or no activities match: exit-info\n" +
			"Use -h for help.\n": Unsupported,

		"Can't find service: activity\n": NoService,
		"hello\n":                        Format,
		"*** SERVICE 'activity' DUMP TIMEOUT (10000ms) EXPIRED ***": Timeout,
		"Permission Denial: can't dump ActivityManager from from pid=1, uid=10001 due to missing " +
			"android.permission.DUMP permission": Permission,
	} {
		info, err := ParseExitInfo([]byte(text))
		var e DeviceError
		if !errors.As(err, &e) || e.Kind != kind || info.Exits != nil {
			t.Errorf("%q: %+v, %v", text, info, err)
		}
	}
	cut := exitsIn(t, exitsOf34[:strings.Index(exitsOf34, "        ApplicationExitInfo #1")]+
		"*** SERVICE 'activity' DUMP TIMEOUT (10000ms) EXPIRED ***\n")
	if len(cut.Exits) != 1 || !cut.Truncated || len(cut.Warnings) != 1 {
		t.Errorf("%+v", cut)
	}
}

// A description contains text from the app, which must not change the record
// that the system wrote.
func TestHostileDescriptions(t *testing.T) {
	for description, want := range map[string]string{
		"bg anr state=empty trace=null pss=1MB":              "bg anr state=empty trace=null pss=1MB",
		"two\nlines":                                         "two lines",
		"a\n  reason=3 (LOW_MEMORY) subreason=0\n pss=9GB b": "a reason=3 (LOW_MEMORY) subreason=0 pss=9GB b",
		"\x1b[2J":                "?[2J",
		strings.Repeat("x", 1e5): strings.Repeat("x", maxDescription),
	} {
		info := exitsIn(t, strings.Replace(exitsOf34, "description=crash", "description="+description, 1))
		if len(info.Exits) != 2 || info.Truncated {
			t.Fatalf("%.40q: %+v", description, info)
		}
		if e := info.Exits[1]; string(e.Description) != want || e.ReasonName != "CRASH_NATIVE" || e.Rss.Known {
			t.Errorf("%.40q: %.60q, %s", description, e.Description, e.ReasonName)
		}
	}
	info := exitsIn(t, exitsOf34+strings.Repeat("ApplicationExitInfo #0:\n pid=1\n", 2*maxExits))
	if len(info.Exits) != maxExits || !info.Truncated {
		t.Errorf("%d records", len(info.Exits))
	}
}

func TestReasons(t *testing.T) {
	for _, c := range []struct {
		reason, status int64
		crash, kill    bool
	}{
		{0, 0, false, false}, {1, 1, false, false}, {2, 9, false, true}, {2, 11, true, false}, {2, 6, true, false},
		{2, 15, false, false},
		{3, 0, false, true}, {4, 0, true, false}, {5, 11, true, false}, {6, 0, false, false}, {9, 0, false, true},
		{10, 0, false, false},
		{13, 0, false, true}, {14, 0, false, true}, {17, 0, false, true}, {18, 0, false, true}, {19, 0, false, false},
		{-1, 0, false, false}, {1 << 40, 0, false, false},
	} {
		e := Exit{Reason: known.Of(c.reason), Status: known.Of(c.status)}
		if e.Crash() != c.crash || e.Kill() != c.kill {
			t.Errorf("%+v: crash %t, kill %t", c, e.Crash(), e.Kill())
		}
	}
	if (Exit{}).Crash() || (Exit{}).Kill() || (Exit{Reason: known.Of(2)}).Kill() {
		t.Error("an unknown exit reason is treated as a crash or a kill")
	}
	e := exitsIn(t, strings.Replace(exitsOf34, "reason=10 (USER REQUESTED)", "reason=99 (MOON PHASE)", 1)).Exits[0]
	if e.ReasonName != "MOON PHASE" || e.Reason != known.Of(99) {
		t.Errorf("%+v", e)
	}
}

// On Android 17, kills by the memory limiter have REASON_OTHER and its name in
// the description; from API 37.2 on, they have their own reason. An anomaly
// concerns memory only if its record says so.
func TestReasonsOfAndroid17(t *testing.T) {
	for name, c := range map[string]struct {
		reason, description string
		name                string
		limiter, anomaly    bool
	}{
		"API 37.2":    {"17 (MEMORY LIMITER)", "MemoryLimiter:AnonSwap", "MEMORY_LIMITER", true, false},
		"API 37":      {"13 (OTHER KILLS BY SYSTEM)", "MemoryLimiter:AnonSwap", "OTHER", true, false},
		"other limit": {"13 (OTHER KILLS BY SYSTEM)", "MemoryLimiter:Swap", "OTHER", true, false},
		"other kill": {
			"13 (OTHER KILLS BY SYSTEM)", "too many MemoryLimiter:AnonSwap", "OTHER", false, false,
		},
		"user request":   {"10 (USER REQUESTED)", "MemoryLimiter:AnonSwap", "USER_REQUESTED", false, false},
		"memory anomaly": {"18 (ANOMALY)", "anon memory exceeded", "ANOMALY", false, true},
		"other anomaly":  {"18 (ANOMALY)", "binder spam", "ANOMALY", false, false},
	} {
		text := strings.Replace(exitsOf34, "reason=10 (USER REQUESTED)", "reason="+c.reason, 1)
		e := exitsIn(t, text).Exits[0]
		e.Description = field.Text(c.description)
		if string(e.ReasonName) != c.name || e.MemoryLimiter() != c.limiter || e.MemoryAnomaly() != c.anomaly {
			t.Errorf("%s: %s, limiter %t, anomaly %t", name, e.ReasonName, e.MemoryLimiter(), e.MemoryAnomaly())
		}
	}
	if (Exit{}).MemoryLimiter() || (Exit{}).MemoryAnomaly() {
		t.Error("an unknown exit reason is treated as a kill because of memory")
	}
}

// sizeValueToString is a port of android.util.DebugUtils.sizeValueToString.
func sizeValueToString(bytes int64) string {
	result, suffix := float32(bytes), ""
	for _, unit := range []string{"KB", "MB", "GB", "TB", "PB"} {
		if result > 900 {
			result, suffix = result/1024, unit
		}
	}
	switch {
	case result < 1:
		return fmt.Sprintf("%.2f%s", result, suffix)
	case result < 10:
		return fmt.Sprintf("%.1f%s", result, suffix)
	}
	return fmt.Sprintf("%.0f%s", result, suffix)
}

func TestDebugSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0.00": 0, "904KB": 904, "0.88MB": 901, "23MB": 23552, "1.2GB": 1258291, "1,2GB": 1258291, "2048": 2,
	} {
		if got, ok := debugSize(text); !ok || got != want {
			t.Errorf("%s: %d, %t", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "MB", "x", "-1MB", "1e9GB", "1.2.3MB", "0x1p9MB", "9999999999999PB", "NaNMB", "1 MB",
	} {
		if got, ok := debugSize(text); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
	if e := exitsIn(t, strings.Replace(exitsOf34, "pss=221MB rss=304MB", "pss=٢٢١MB rss=١٫٢GB", 1)).
		Exits[0]; e.Pss != known.Of(221<<10) || e.Rss != known.Of(1258291) {
		t.Errorf("%v %v", e.Pss, e.Rss)
	}
}

// madeExits returns random records, and their text as a release prints them:
// one field per line, or several.
func madeExits(r *rand.Rand, perLine bool) (text string, exits []Exit) {
	var b strings.Builder
	b.WriteString("ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)\nLast Timestamp of Persistence " +
		"Into Persistent Storage: 2026-01-02 03:04:05.678\n")
	for p := range r.IntN(3) {
		pkg := fmt.Sprintf("com.shop%d", p)
		fmt.Fprintf(&b, "  package: %s\n    Historical Process Exit for uid=10123\n", pkg)
		for i := range r.IntN(5) {
			reason := r.Int64N(int64(len(exitReasons)))
			pss := r.Int64N(1 << r.Int64N(24))
			e := Exit{
				Package: field.Text(pkg), Timestamp: "2026-01-02 03:04:05.678", PID: known.Of(r.Int64N(32768)),
				RealUID: known.Of(10123), User: known.Of(0),
				Process: field.Text(pkg + []string{"", ":push"}[r.IntN(2)]), Reason: known.Of(reason),
				ReasonName: field.Text(exitReasons[reason].name),
				Subreason:  known.Of(r.Int64N(30)), SubreasonName: "FORCE STOP", Status: known.Of(r.Int64N(256) - 1),
				Importance:  known.Of(r.Int64N(1000)),
				Description: []field.Text{"", "crash", "a=b pid=3 reason=1", "scheduleCrash for 'x' failed"}[r.IntN(4)],
				Trace:       []field.Text{"", "/data/system/procexitstore/x.gz"}[r.IntN(2)],
			}
			printed := sizeValueToString(pss << 10)
			if kb, _ := debugSize(printed); kb > 0 {
				e.Pss = known.Of(kb)
			}
			e.Rss = e.Pss
			null := func(s field.Text) field.Text {
				if s == "" {
					return "null"
				}
				return s
			}
			lines := []string{
				fmt.Sprintf("timestamp=%s\npid=%d\nrealUid=10123\npackageUid=10123\ndefiningUid=10123\nuser=0",
					e.Timestamp, e.PID.N),
				fmt.Sprintf("process=%s\nreason=%d (APP CRASH(NATIVE))\nsubreason=%d (FORCE STOP)\nstatus=%d",
					e.Process, reason, e.Subreason.N, e.Status.N),
				fmt.Sprintf("importance=%d\npss=%s\nrss=%s\ndescription=%s\nstate=3 bytes\ntrace=%s", e.Importance.N,
					printed, printed, null(e.Description), null(e.Trace)),
			}
			if perLine {
				lines = strings.Split(strings.Join(lines, "\n"), "\n")
			}
			fmt.Fprintf(&b, "        ApplicationExitInfo #%d:\n", i)
			for _, line := range lines {
				fmt.Fprintf(&b, "          %s\n", strings.ReplaceAll(line, "\n", " "))
			}
			exits = append(exits, e)
		}
	}
	return b.String(), exits
}

func TestExitInfoRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		text, want := madeExits(r, r.IntN(2) == 0)
		info := exitsIn(t, text)
		if len(info.Exits) != len(want) || len(want) > 0 && !reflect.DeepEqual(info.Exits, want) || info.Truncated ||
			info.Warnings != nil {
			t.Fatalf("%s\n%+v\nwant %+v", text, info, want)
		}
	}
	for range 2000 { // the parsed size is accurate to the printed digits
		kb := 1 + r.Int64N(1<<(1+r.Int64N(30)))
		printed := sizeValueToString(kb << 10)
		got, ok := debugSize(printed)
		if off := float64(got-kb) / float64(kb); !ok || off > 0.051 || off < -0.051 {
			t.Fatalf("%d kB is printed as %s and parsed as %d", kb, printed, got)
		}
	}
}

// TestExitInfoTruncatedAnywhere checks that the fields of truncated output are
// also in the complete output.
func TestExitInfoTruncatedAnywhere(t *testing.T) {
	for _, text := range []string{exitsOf34, exitsOfPhone, exitsOf30} {
		whole := exitsIn(t, text).Exits
		for at := range len(text) {
			info, err := ParseExitInfo([]byte(text[:at]))
			if err != nil {
				continue
			}
			if text[at-1] != '\n' && !info.Truncated {
				t.Fatalf("truncation at %d is not reported", at)
			}
			for i, e := range info.Exits {
				if i < len(info.Exits)-1 && e != whole[i] || !partOf(e, whole[i]) {
					t.Fatalf("truncated at %d:\n%+v\n%+v", at, e, whole[i])
				}
				if e != whole[i] && !info.Truncated {
					t.Fatalf("truncation at %d is not reported: %+v", at, e)
				}
			}
		}
	}
}

// partOf reports whether each field that is present in a has the same value in
// b.
func partOf(a, b Exit) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		if !x.Field(i).IsZero() && x.Field(i).Interface() != y.Field(i).Interface() {
			return false
		}
	}
	return true
}

func printable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

func FuzzExitInfo(f *testing.F) {
	for _, text := range []string{exitsOf34, exitsOfPhone, exitsOf30} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		info, err := ParseExitInfo(text)
		var e DeviceError
		if err != nil && (!errors.As(err, &e) || info.Exits != nil) {
			t.Fatalf("%v, %+v", err, info)
		}
		if len(info.Exits) > maxExits || len(info.Warnings) > field.MaxWarnings+1 || len(info.Persisted) > maxStamp {
			t.Fatalf("%d records", len(info.Exits))
		}
		for _, e := range info.Exits {
			for _, s := range []field.Text{
				e.Package, e.Timestamp, e.Process, e.ReasonName, e.SubreasonName, e.Description, e.Trace,
			} {
				if len(s) > maxDescription || !printable(string(s)) {
					t.Fatalf("%q", s)
				}
			}
			if e.Crash() && e.Kill() || e.Pss.Known && e.Pss.N <= 0 || e.Rss.Known && e.Rss.N <= 0 {
				t.Fatalf("%+v", e)
			}
		}
	})
}
