package main

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
)

// If a run cannot reach a verdict, a warning is printed before it starts; a
// strict run is rejected.
func TestRunWithoutVerdictIsAnnounced(t *testing.T) {
	const why = "nothing can be judged: the run ends after 12m, and a trend needs 30m: run for 30m or longer, or " +
		"dump heaps at marks (`diagnose.dump: at_marks`)"
	file := "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 8h\nprofiles:\n  pr: { duration: 12m " +
		"}\n  strict: { duration: 12m, strict: true }\n"
	t.Run("config verify", func(t *testing.T) {
		lenient := write(t, strings.Split(file, "  strict:")[0])
		code, out, errOut := typed(t, nil, "config", "verify", lenient)
		if code != exitOK || !strings.Contains(out, ": ok, also with its profiles pr") ||
			!strings.Contains(errOut, "run.yaml:6:19: profiles.pr.duration: "+why) ||
			!strings.HasPrefix(errOut, "warning: ") {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
		code, out, _ = typed(t, nil, "config", "verify", lenient, "--json")
		if code != exitOK || !strings.Contains(out, `"ok": true`) || !strings.Contains(out, `"warnings": [`) ||
			!strings.Contains(out, `"path": "profiles.pr.duration"`) {
			t.Errorf("exit %d\n%s", code, out)
		}
		code, out, errOut = typed(t, nil, "config", "verify", write(t, file))
		if code != exitUsage || out != "" ||
			!strings.Contains(errOut, "run.yaml:7:23: profiles.strict.duration: "+why) {
			t.Errorf("strict: exit %d\n%s%s", code, out, errOut)
		}
	})
	t.Run("run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			phones := attach(t, shop("phone-a"))
			path, dir := write(t, file), filepath.Join(t.TempDir(), "run")
			code, out, errOut := phones.typed(t, "run", path, "--profile", "pr", "--out", dir)
			if begun := strings.Index(errOut, "writing to "); code != record.ExitInconclusive ||
				!strings.Contains(out, "not judged: com.shop was watched for only 12 min") ||
				begun < 0 || !strings.Contains(errOut[:begun], "warning: "+why) {
				t.Errorf("exit %d\n%s%s", code, out, errOut)
			}
			code, out, errOut = phones.typed(t, "run", path, "--profile", "strict", "--out",
				filepath.Join(t.TempDir(), "run"))
			if code != exitUsage || out != "" || strings.Contains(errOut, "writing to ") ||
				!strings.Contains(errOut, why) {
				t.Errorf("strict: exit %d\n%s%s", code, out, errOut)
			}
			code, out, errOut = phones.typed(t, "run", path, "--profile", "pr", "--strict", "--out",
				filepath.Join(t.TempDir(), "run"))
			if code != exitUsage || out != "" || !strings.Contains(errOut, why) {
				t.Errorf("--strict: exit %d\n%s%s", code, out, errOut)
			}
			code, _, errOut = phones.typed(t, "run", path, "--profile", "pr", "--allow-unjudged", "--out",
				filepath.Join(t.TempDir(), "run"))
			if code != exitOK || strings.Contains(errOut, "nothing can be judged") {
				t.Errorf("--allow-unjudged: exit %d\n%s", code, errOut)
			}
		})
	})
	t.Run("watch", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			phones := attach(t, shop("phone-a"))
			args := []string{"watch", "--process", "com.shop", "--for", "12m"}
			code, _, errOut := phones.typed(t, append(args, "--out", filepath.Join(t.TempDir(), "run"))...)
			if code != record.ExitInconclusive || !strings.Contains(errOut, "warning: "+why) {
				t.Errorf("exit %d\n%s", code, errOut)
			}
			code, _, errOut = phones.typed(t, append(args, "--strict", "--out", filepath.Join(t.TempDir(), "run"))...)
			if code != exitUsage || !strings.Contains(errOut, why) {
				t.Errorf("--strict: exit %d\n%s", code, errOut)
			}
			code, _, errOut = phones.typed(t,
				append(args, "--dump", "at_marks", "--out", filepath.Join(t.TempDir(), "run"))...)
			if code != record.ExitInconclusive || strings.Contains(errOut, "nothing can be judged") {
				t.Errorf("run with dumps at marks: exit %d\n%s", code, errOut)
			}
		})
	})
}

// Half an hour is also enough for a verdict if the run is started from the
// command line.
func TestWatchForHalfAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phones := attach(t, shop("phone-a", androidsim.Leak(androidsim.Native, 1200, 0)))
		code, out, errOut := phones.typed(t,
			"watch", "--process", "com.shop", "--for", "30m", "--out",
			filepath.Join(t.TempDir(), "run"))
		if code != record.ExitLeak || !strings.Contains(out, "com.shop: LEAK") ||
			strings.Contains(errOut, "nothing can be judged") {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
	})
}

// --must-see is recorded with the run, so that report and replay reach the same
// verdict; replay may require a lower rate.
func TestMustSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phones := attach(t, shop("phone-a"))
		dir := filepath.Join(t.TempDir(), "run")
		const missed = "must rule out a leak of 2.0 MB/h"
		code, out, errOut := phones.typed(t,
			"watch", "--process", "com.shop", "--for", "45m", "--must-see", "2MB/h", "--out",
			dir)
		if code != record.ExitInconclusive || !strings.Contains(out, missed) {
			t.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		if code, out, errOut := typed(t, nil, "report", dir); code != exitOK || !strings.Contains(out, missed) {
			t.Errorf("report: exit %d\n%s%s", code, out, errOut)
		}
		for flags, want := range map[string]int{"": 5, "--must-see 3MB/h": 5, "--must-see 100GB/h": 0} {
			args := append([]string{"replay", dir, "--gate"}, strings.Fields(flags)...)
			if code, out, errOut := typed(t, nil, args...); code != want || flags == "" &&
				!strings.Contains(out, missed) {
				t.Errorf("replay %s: exit %d, want %d\n%s%s", flags, code, want, out, errOut)
			}
		}
		flat := recording(t, "flat.csv", 200, 0, true)
		for flags, want := range map[string]int{
			"": 0, "--must-see 3MB/h": 5, "--must-see 3MB": 2, "--must-see 3MB/h --policy article": 2,
		} {
			args := append([]string{"replay", flat, "--gate"}, strings.Fields(flags)...)
			if code, out, errOut := typed(t, nil, args...); code != want {
				t.Errorf("replay with flags %q: exit %d, want %d\n%s%s", flags, code, want, out, errOut)
			}
		}
	})
}

// A suspicion extends a run if the flag or the file specifies its duration as a
// range.
func TestRangeOfDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phones := attach(t, shop("phone-a", androidsim.Leak(androidsim.Native, 1200, 0)))
		dir := filepath.Join(t.TempDir(), "run")
		code, out, errOut := phones.typed(t, "watch", "--process", "com.shop", "--for", "12m..40m", "--out", dir)
		if code != record.ExitLeak || !strings.Contains(out, "extended by ") ||
			!strings.Contains(errOut, "the run ends after 12m unless memory grows") {
			t.Errorf("watch: exit %d\n%s%s", code, out, errOut)
		}
		if run, err := record.ReadRun(dir); err != nil || run.Extended < 1000 || run.ExtendedReason == "" {
			t.Errorf("%v s, %q, %v", run.Extended, run.ExtendedReason, err)
		}
		file := write(t, "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 12m..40m\n")
		if code, out, errOut := phones.typed(t, "run", file, "--out",
			filepath.Join(t.TempDir(), "run")); code != record.ExitLeak || !strings.Contains(out, "extended by ") {
			t.Errorf("run: exit %d\n%s%s", code, out, errOut)
		}
		if code, out, errOut := phones.typed(t, "config", "print", file, "--for", "15m..1h"); code != exitOK ||
			!strings.Contains(out, "duration: 15m..1h ") || !strings.Contains(out, "# --for") {
			t.Errorf("config print: exit %d\n%s%s", code, out, errOut)
		}
		for _, wrong := range []string{"30m..12m", "12m..", "12m-30m"} {
			if code, _, errOut := phones.typed(t, "watch", "--process", "com.shop", "--for",
				wrong); code != exitUsage ||
				!strings.Contains(errOut, "or a range such as 12m..30m") {
				t.Errorf("--for %s: exit %d\n%s", wrong, code, errOut)
			}
		}
	})
}
