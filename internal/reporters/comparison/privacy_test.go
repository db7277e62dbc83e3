package comparison

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// published returns every string of a comparison that is published.
func published(t *testing.T, c *Comparison) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteSARIF(&out, c, ""); err != nil {
		t.Fatal(err)
	}
	if err := WriteCodeQuality(&out, c, ""); err != nil {
		t.Fatal(err)
	}
	return Markdown(c, options()) + out.String() + fmt.Sprint(Annotations(c))
}

// Published messages name devices by their model, never by their serial number.
func TestNoSerialNumber(t *testing.T) {
	for _, models := range [][]string{
		{"Pixel 9"}, {""}, {"Pixel 9", "Pixel 9"}, {"", "Pixel 9", ""}, {"Pixel 9", "Pixel 8"},
	} {
		c := worse()
		row := c.Leaks[0]
		c.Leaks, c.Head.Devices = nil, nil
		for i, model := range models {
			row.Device, row.Key = fmt.Sprint("R58M", i), fmt.Sprintf("%08d", i)
			row.Evidence, row.StatusReason, row.Pinned = "seen on R58M0", "new on R58M0", "R58M0 is worse"
			c.Leaks = append(c.Leaks, row)
			c.Head.Devices = append(c.Head.Devices, DeviceRow{Device: row.Device, Model: model, API: 34})
		}
		for i := range c.Processes {
			c.Processes[i].Device = "R58M0"
		}
		all := published(t, c)
		if strings.Contains(all, "R58M") {
			t.Errorf("%q: a serial number is published", models)
		}
		numbered := strings.Contains(all, " #1") && strings.Contains(all, " #2")
		if same := len(models) > 1 && models[0] == models[len(models)-1]; numbered != same {
			t.Errorf("%q: got numbered device names: %t, want %t", models, numbered, same)
		}
		if c.Leaks[0].Evidence != "seen on R58M0" {
			t.Error("publishing modifies the comparison")
		}
	}
}

// TestNoSerialNumberInTexts checks messages of adb that contain serial numbers,
// one of which is a prefix of another.
func TestNoSerialNumberInTexts(t *testing.T) {
	all := published(t, twoPhones())
	if strings.Contains(all, "R58M") {
		t.Error("a serial number is published")
	}
	for _, want := range []string{
		"device `'Pixel` 9 `#1'` not found", "1 death by crash on Pixel 9 `#2`",
		"not judged: Pixel 9 `#2`: connection lost", "`Pixel 9 #1, API 36, arm64-v8a`",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing", want)
		}
	}
	// A serial number that could also be an ordinary word is not replaced.
	c := one()
	c.Head.Devices[0].Device, c.Warnings = "ab", []string{"about the run"}
	if !strings.Contains(Markdown(c, options()), "about the run") {
		t.Error("a word is treated as a serial number")
	}
}
