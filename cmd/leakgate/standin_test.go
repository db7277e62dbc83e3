package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/reporters/record"
)

// A phone with a property that makes its time run faster is rejected by every
// command that uses a phone, unless a flag, a variable or the file allows it.
func TestStandInNeedsConsent(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 45m\n"
	file, allowing := write(t, text), write(t, text+"devices: { stand_in: true }\n")
	env := serve(t, shop("phone-a"))
	delete(env, config.StandInVariable)
	const refused = "time scale refused: device phone-a runs at 400 times real time (property leakgate.time_scale), " +
		"as simulated phones do: allow it with --stand-in or LEAKGATE_STAND_IN=1, or remove the property"
	for _, args := range [][]string{
		{"watch", "--process", "com.shop", "--for", "45m"}, {"run", file}, {"diagnose", "--process", "com.shop"},
		{"trip", "--process", "com.shop", "--loops", "5", "--", "true"},
	} {
		if code, out, errOut := typed(t, env, args...); code != record.ExitNoDevice || out != "" ||
			!strings.Contains(errOut, refused) {
			t.Errorf("%s: exit %d, %q, %q", args[0], code, out, errOut)
		}
	}
	code, out, _ := typed(t, env, "doctor")
	if code != record.ExitNoDevice ||
		!strings.Contains(out, "a run refuses it: allow it with --stand-in or LEAKGATE_STAND_IN=1") ||
		!strings.Contains(out, "com.shop") {
		t.Errorf("doctor: exit %d\n%s", code, out)
	}
	if code, out, _ := typed(t, env, "doctor", "--stand-in"); code != exitOK ||
		!strings.Contains(out, "simulated device: its clock runs 400 times as fast as real time") {
		t.Errorf("doctor --stand-in: exit %d\n%s", code, out)
	}
	for name, args := range map[string][]string{
		"flag of watch": {"watch", "--process", "com.shop", "--stand-in"}, "flag of run": {"run", file, "--stand-in"},
		"file": {"run", allowing},
	} {
		if code, _, errOut := typed(t, env, append(args, "--for", "1m", "--allow-unjudged")...); code != exitOK {
			t.Errorf("%s: exit %d, %s", name, code, errOut)
		}
	}
	env[config.StandInVariable] = "false" // takes precedence over the file
	if code, _, errOut := typed(t, env, "run", allowing); code != record.ExitNoDevice ||
		!strings.Contains(errOut, refused) {
		t.Errorf("exit %d, %s", code, errOut)
	}
	env[config.StandInVariable] = "perhaps"
	for _, args := range [][]string{{"watch", "--process", "com.shop"}, {"run", file}, {"doctor"}} {
		if code, _, errOut := typed(t, env, args...); code != exitUsage ||
			!strings.Contains(errOut, "LEAKGATE_STAND_IN") || !strings.Contains(errOut, `"perhaps"`) {
			t.Errorf("%s: exit %d, %s", args[0], code, errOut)
		}
	}
}

// A time scale with which a run would end immediately or never is always
// rejected, and doctor still examines the rest of the phone.
func TestStandInOfAnInvalidScale(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, scale := range []float64{1e-300, 0.000001, 0.5, 10001} {
		synctest.Test(t, func(t *testing.T) {
			phone := androidsim.New(androidsim.Options{Serial: "phone-a", Scale: scale, Root: true})
			want := "time scale refused: device phone-a has the property leakgate.time_scale with the invalid value"
			code, out, errOut := attach(t, phone).typed(t, "watch", "--process", "com.shop", "--stand-in")
			if code != record.ExitNoDevice || out != "" || !strings.Contains(errOut, want) {
				t.Errorf("%g: exit %d, %q, %q", scale, code, out, errOut)
			}
		})
	}
}
