package adb

import (
	"context"
	"fmt"
)

// Reset has the server break off its connection to the device and make it again,
// as `adb reconnect` does: the cure of a connection that has lost its place in the
// stream of packets and says nothing more. Every command that runs on the device
// over this server ends, those of other programs too.
func (d *Device) Reset(ctx context.Context) error {
	k, err := d.client.call(ctx, "host-serial:"+d.info.Serial+":reconnect", d.info.Serial)
	if err != nil {
		return fmt.Errorf("reconnect %s: %w", quoted(d.info.Serial), err)
	}
	k.close()
	return nil
}
