package capture

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// askSweep is the real time that a device has to look for what was left.
const askSweep = 10 * time.Second

// Sweep removes the heap dumps that runs which crashed have left on the device, and
// gives their names: nothing but files of this package's own in /data/local/tmp. Whoever
// calls it has the device to himself.
func Sweep(ctx context.Context, dev Device) ([]string, error) {
	m := newMarker()
	loop := "for f in " + dumpDir + "/" + dumpPrefix + "*" + dumpSuffix + `; do if [ -f "$f" ]; then rm -f "$f" && echo "$f"; fi; done`
	a, err := ask(ctx, dev, askSweep, m.join([]part{{"swept", loop}}))
	if err != nil {
		return nil, fmt.Errorf("sweep device: %w", err)
	}
	parts, whole := m.split(a.out)
	if !whole {
		return nil, fmt.Errorf("sweep device: %w: the answer is cut", ErrDevice)
	}
	var out []string
	for line := range strings.Lines(string(parts["swept"])) {
		if name := clip(line); strings.HasPrefix(name, dumpDir+"/"+dumpPrefix) && strings.HasSuffix(name, dumpSuffix) {
			out = append(out, name)
		}
	}
	return out, nil
}
