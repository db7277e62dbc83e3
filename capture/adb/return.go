package adb

import (
	"context"
	"errors"
	"time"
)

// errReturned ends the tracking of a device that is back.
var errReturned = errors.New("device is back")

// askServerAgain is the pause before a server that has gone is asked again.
const askServerAgain = time.Second

// Return waits until the device has been away and is usable again, as the server
// tells it; a device that stays connected never returns. It gives nil then, and
// ctx's error if that ends first. A server that goes away takes the device with it.
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
		case <-time.After(askServerAgain):
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
