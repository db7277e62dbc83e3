package hostdevice

import (
	"os"
	"testing"
)

// TestUsersOfADevice checks that the shell and the app run as root only if the
// options request it.
func TestUsersOfADevice(t *testing.T) {
	self := os.Getuid()
	shell, app := self, self
	if self == 0 {
		shell, app = 2000, 10123
	}
	for name, c := range map[string]struct {
		o          Options
		shell, app int
	}{
		"default":        {Options{}, shell, app},
		"root requested": {Options{Root: true}, self, self},
		"separate users": {Options{ShellUID: 3000, AppUID: 10200}, 3000, 10200},
		"separate app":   {Options{Root: true, AppUID: 10200}, self, 10200},
	} {
		if o := c.o.withDefaults(); o.ShellUID != c.shell || o.AppUID != c.app {
			t.Errorf("%s: shell %d, app %d, want %d and %d", name, o.ShellUID, o.AppUID, c.shell, c.app)
		}
	}
	if err := (Options{Program: "x", Root: true}).withDefaults().check(); (err == nil) != (self == 0) {
		t.Errorf("root shell requested by user %d: got error %v, want an error unless the user is root", self, err)
	}
}
