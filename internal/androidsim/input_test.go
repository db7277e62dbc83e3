package androidsim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Input events are accepted and take time; errors have the wording of the
// Android version.
func TestInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for command, takes := range map[string]time.Duration{
			"tap 10 20.5": 0, "touchscreen tap 1 2": 0, "swipe 1 2 3 4": 300 * time.Millisecond,
			"swipe 1 2 3 4 1500": 1500 * time.Millisecond,
			"keyevent 4":         0, "keyevent --longpress KEYCODE_BACK": 500 * time.Millisecond,
			"text hello%sworld": 0, "roll 1 -1": 0, "press": 0,
			"draganddrop 1 2 3 4 100": 600 * time.Millisecond,
		} {
			for _, api := range []int{18, 30, 34} {
				p := New(Options{API: api})
				began := time.Now()
				if a := sh1(t, p, "input "+command); a != (answer{}) || time.Since(began) != takes {
					t.Errorf("API %d: input %s: %+v after %v, want %v", api, command, a, time.Since(began), takes)
				}
			}
		}
		p := New(Options{API: 34})
		if a := sh1(t, p, "input -d 0 tap 1 2"); a != (answer{}) {
			t.Errorf("a display: %+v", a)
		}
	})
	for command, want := range map[string][2]string{
		"tap 10": {
			"java.lang.IllegalArgumentException: Argument expected after \"10\"",
			"Error: Invalid arguments for command: tap",
		},
		"tap 10 x": {
			"java.lang.IllegalArgumentException: Error: Invalid arguments for command: tap",
			"Error: Invalid arguments for command: tap",
		},
		"swipe 1 2 3": {
			"java.lang.IllegalArgumentException: Argument expected after \"3\"",
			"Error: Invalid arguments for command: swipe",
		},
		"swipe 1 2 3 4 1.5": {
			"java.lang.IllegalArgumentException: Error: Invalid arguments for command: swipe",
			"Error: Invalid arguments for command: swipe",
		},
		"keyevent": {
			"java.lang.IllegalArgumentException: Argument expected after \"keyevent\"",
			"Error: Invalid arguments for command: keyevent",
		},
		"keyboard": {"java.lang.IllegalArgumentException: Argument expected after \"keyboard\"", ""},
		"text": {
			"java.lang.IllegalArgumentException: Argument expected after \"text\"",
			"Error: Invalid arguments for command: text",
		},
	} {
		if a := sh1(t, New(Options{API: 34}), "input "+command); a.exit != 255 || a.out != "" ||
			!strings.Contains(a.err, "\n"+want[0]+"\n\tat ") ||
			!strings.HasPrefix(a.err, "\nException occurred while executing '"+strings.Fields(command)[0]+"':\n") {
			t.Errorf("input %s: %+v", command, a)
		}
		if a := sh1(t, New(Options{API: 28}), "input "+command); a.exit != 0 || a.out != "" ||
			!strings.HasPrefix(a.err, want[1]) || !strings.Contains(a.err, "Usage: input ") {
			t.Errorf("Android 9: input %s: %+v", command, a)
		}
	}
	for command, want := range map[string]answer{
		"nosuch": {out: "Unknown command: nosuch\n"}, "": {out: inputUsage}, "help": {out: inputUsage},
	} {
		if a := sh1(t, New(Options{API: 34}), "input "+command); a != want {
			t.Errorf("input %s: %+v", command, a)
		}
	}
	for command, want := range map[string]answer{
		"nosuch": {err: "Error: Unknown command: nosuch\n" + inputUsage}, "": {err: inputUsage},
		"text a b": {err: "Error: Invalid arguments for command: text\n" + inputUsage},
	} {
		if a := sh1(t, New(Options{API: 28}), "input "+command); a != want {
			t.Errorf("Android 9: input %s: %+v", command, a)
		}
	}
}
