package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/shelltest"
)

// A sibling has the uid and the zygote of a given process, and a name that
// neither a pattern nor the package explains.
func TestSiblings(t *testing.T) {
	const push, shop, work = 4200, 4321, 7000
	rows := []row{
		{shop, 800, 10123, 900, "com.shop"},
		{push, 800, 10123, 910, "com.shop:push"},
		{work, 800, 1010123, 930, "com.shop"}, // in a work profile
		{4400, 800, 10123, 940, "com.shop.remote"},
		{4401, 800, 10123, 950, "org.maps:tiles"},
		{4402, 800, 1010123, 960, "com.shop.remote"},
		{4403, 801, 10123, 970, "com.other.zygote"},      // such as run-as, whose parent is a shell
		{4404, shop, 10123, 980, "/system/bin/logcat.x"}, // executed by the app
		{4405, 800, 10124, 990, "com.another.app"},
		{4406, 800, 99001, 995, "com.shop.isolated"},
		{4407, 800, 10123, 996, "zygote64"}, // just forked
		{4408, 800, 10123, 997, "com.shop:new"},
		{4409, 800, 10123, 998, "com.shop.\x1b[2J"},
		{4410, 800, 10123, 999, "com.cart"}, // began after the processes were found
	}
	of := func(pids ...int) []Process {
		var out []Process
		for _, r := range rows {
			for _, pid := range pids {
				if r.pid == pid {
					out = append(out, Process{
						Name: r.name, User: r.uid / perUser, UID: r.uid, PID: r.pid, Start: uint64(r.start),
					})
				}
			}
		}
		return out
	}
	for _, c := range []struct {
		of       []Process
		patterns []Pattern
		want     string
	}{
		{of(shop, push, work), []Pattern{"com.shop", "com.shop:*", "com.cart"}, "4400 4401 4402"},
		{of(shop, push, work), []Pattern{"com.shop*", "com.cart"}, "4401"},
		{of(shop), []Pattern{"com.shop"}, "4410 4400 4408 4200 4401"},
		{of(push), []Pattern{"com.shop:push"}, "4410 4400 4401"},
		{of(4405), []Pattern{"com.another.app"}, ""},
		{of(4406), []Pattern{"com.shop.isolated"}, ""},
		{nil, []Pattern{"com.shop"}, ""},
	} {
		for _, uuids := range []bool{true, false} {
			found, err := FindSiblings(t.Context(), table(rows, uuids), c.of, c.patterns)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range found {
				got = append(got, fmt.Sprint(p.PID))
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("%v: found %q, want %q", c.patterns, text, c.want)
			}
		}
	}
}

// No command is sent if no process has the uid of an app; a device that fails
// is an error.
func TestSiblingsWithoutAnswer(t *testing.T) {
	broken := errors.New("device offline")
	dev := &shelltest.Device{
		Run: func(context.Context, string, io.Writer, io.Writer) (int, error) { return -1, broken },
	}
	system := []Process{{Name: "system_server", UID: 1000, PID: 5}, {Name: "com.web:sandbox", UID: 99001, PID: 6}}
	if found, err := FindSiblings(t.Context(), dev, system, nil); err != nil || found != nil || len(dev.Commands) > 0 {
		t.Errorf("%v, %v, sent %q", found, err, dev.Commands)
	}
	_, err := FindSiblings(t.Context(), dev, []Process{{Name: "com.shop", UID: 10123, PID: 5}}, nil)
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}
