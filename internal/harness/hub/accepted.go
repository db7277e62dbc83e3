package hub

import (
	"fmt"

	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/config"
)

// readAccepted reads the file of accepted leaks. If the path is empty, the list
// is empty.
func readAccepted(path string) ([]monitor.Exception, error) {
	if path == "" {
		return nil, nil
	}
	list, err := config.LoadAccepted(path)
	if err != nil {
		return nil, err
	}
	out := make([]monitor.Exception, len(list))
	for i, a := range list {
		out[i] = monitor.Exception{
			Key: a.Key, Class: a.Class, Held: a.Held, Reason: a.Reason, Owner: a.Owner, Until: a.Until,
		}
		if err := out[i].Validate(); err != nil {
			return nil, fmt.Errorf("%s: accepted[%d]: %w", path, i, err)
		}
	}
	return out, nil
}
