package dumpsys

import (
	"strings"
	"testing"
)

func TestIsLetter(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for c := range 256 {
		if want := strings.IndexByte(letters, byte(c)) >= 0; isLetter(byte(c)) != want {
			t.Errorf("%q: %v", byte(c), !want)
		}
	}
}
