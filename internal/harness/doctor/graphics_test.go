package doctor

import (
	"testing"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/recorded"
)

// Recorded phones report graphics memory for an app with a window; the recorded
// emulator reports none.
func TestWithoutGraphics(t *testing.T) {
	for file, want := range map[string]bool{
		"api36-emulator-flutter-meminfo.txt": true,
		"api36-memorylab-meminfo-d.txt":      false,
		"api30-unity-meminfo.txt":            false,
		"api23-private-gfx-meminfo.txt":      false,
		"api29-native-process-meminfo.txt":   false, // has no window
	} {
		m, err := dumpsys.ParseMeminfo(recorded.Read(t, "device", file))
		if err != nil || len(m.Blocks) == 0 {
			t.Fatalf("%s: %d blocks, %v", file, len(m.Blocks), err)
		}
		for _, b := range m.Blocks {
			if got := withoutGraphics(b); got != want {
				t.Errorf("%s: without graphics memory: %v, want %v", file, got, want)
			}
		}
	}
}
