package adb

import (
	"context"
	"errors"
	"time"
)

// errReturned is returned by the function passed to track, to stop tracking
// once the device has returned.
var errReturned = errors.New("device is back")

// retryServer is the pause before the next call to a server that has
// disappeared.
const retryServer = time.Second

// Return waits until the server reports that the device has disappeared and is
// usable again; if the device stays connected, Return waits until ctx is done.
// It returns nil if the device has returned, or ctx's error if ctx is done
// first. A device counts as disappeared when its server disappears.
func (d *Device) Return(ctx context.Context) error {
	away := false
	follow := func(list []DeviceInfo) error {
		switch usable := d.usableIn(list); {
		case !usable:
			away = true
		case away:
			return errReturned
		}
		return nil
	}
	for {
		err := d.client.track(ctx, follow)
		switch {
		case errors.Is(err, errReturned):
			return nil
		case ctx.Err() != nil:
			return contextError(ctx)
		}
		away = true
		select {
		case <-ctx.Done():
			return contextError(ctx)
		case <-time.After(retryServer):
		}
	}
}

func (d *Device) usableIn(list []DeviceInfo) bool {
	for _, info := range list {
		if info.Serial == d.info.Serial {
			return info.State == StateDevice
		}
	}
	return false
}
