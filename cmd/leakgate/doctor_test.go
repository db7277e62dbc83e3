package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/harness/doctor"
)

func TestDoctorExitCodes(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	two := serve(t, shop("phone-a"), shop("phone-b"))
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		code int
		out  string // first line
		err  string
	}{
		"usable": {
			two, []string{"--device", "phone-a", "--process", "com.shop"}, 0, "ready: device phone-a is usable", "",
		},
		"variable": {
			map[string]string{"ANDROID_ADB_SERVER_PORT": two["ANDROID_ADB_SERVER_PORT"], "ANDROID_SERIAL": "phone-b"},
			[]string{"--process", "com.shop", "--stand-in"}, 0, "ready: device phone-b is usable", "",
		},
		"no device": {serve(t), nil, 3, "not ready: no device is connected", ""},
		"missing device": {
			two, []string{"--device", "phone-c"}, 3, "not ready: device phone-c (from --device) is not connected", "",
		},
		"invalid port of the server": {
			map[string]string{"ANDROID_ADB_SERVER_PORT": "none"}, nil, 2,
			"not ready: find the adb server: read ANDROID_ADB_SERVER_PORT", "",
		},
		"hostile name":                {two, []string{"--process", "$(reboot)"}, 2, "", "invalid character"},
		"process name without a flag": {two, []string{"com.shop"}, 2, "", "--process com.shop"},
		"misspelled flag":             {two, []string{"--jsn"}, 2, "", "did you mean --json?"},
	} {
		code, out, errOut := typed(t, c.env, append([]string{"doctor"}, c.args...)...)
		if first, _, _ := strings.Cut(out, "\n"); code != c.code || !strings.HasPrefix(first, c.out) ||
			(c.out == "") != (out == "") {
			t.Errorf("%s: exit %d, %q", name, code, out)
		}
		if !strings.Contains(errOut, c.err) || (c.err == "") != (errOut == "") {
			t.Errorf("%s: stderr %q", name, errOut)
		}
	}
}

func TestDoctorJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, errOut := typed(t, serve(t, shop("phone-a")), "doctor", "--json", "--process", "com.shop")
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	var r doctor.Report
	if err := dec.Decode(&r); err != nil || dec.More() || code != 0 || errOut != "" {
		t.Fatalf("exit %d, %v, %q\n%s", code, err, errOut, out)
	}
	if r.Schema != "leakgate.doctor/1" || len(r.Devices) != 1 || r.Devices[0].Processes[0].Source != "smaps_rollup" ||
		len(r.Checks) < 8 {
		t.Errorf("%+v", r)
	}
	for _, c := range r.Checks {
		if c.Scope == doctor.ScopeProcess && (c.Device != "phone-a" || c.Process != "com.shop") {
			t.Errorf("%+v", c)
		}
	}
}

func TestDoctorExitOfEachOutcome(t *testing.T) {
	for outcome, want := range map[doctor.Readiness]int{
		doctor.Usable: 0, doctor.Misconfigured: 2, doctor.NoDevice: 3, doctor.Interrupted: 130,
	} {
		if got := doctorExit(outcome); got != want {
			t.Errorf("%s: %d", outcome, got)
		}
	}
}

// Progress is shown only on terminals, and is removed when the command ends.
func TestDoctorProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		b := newBar(console{err: &out})
		lookProgress(b)("phone-a")
		time.Sleep(quick + redrawn/2)
		b.close()
		if out.Len() > 0 {
			t.Errorf("without a terminal: %q", out.String())
		}
		b = barOn(&out, func() int { return 20 })
		lookProgress(b)("phone-a\x1b[2J com.shop with a long name")
		time.Sleep(quick + redrawn/2)
		b.close()
		if got := out.String(); got != "\r\x1b[Kchecking phone-a\r\x1b[K" &&
			got != "\r\x1b[Kchecking phone-a?[2\r\x1b[K" {
			t.Errorf("%q", got)
		}
	})
}
