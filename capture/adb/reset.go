package adb

import (
	"context"
	"fmt"
)

// Reset requests that the server close and reopen its connection to the device,
// like `adb reconnect`. It repairs a connection that has lost its position in
// the packet stream and sends nothing more. Every command that runs on the
// device through this server ends, including the commands of other programs.
func (d *Device) Reset(ctx context.Context) error {
	k, err := d.client.call(ctx, "host-serial:"+d.info.Serial+":reconnect", d.info.Serial)
	if err != nil {
		return fmt.Errorf("reconnect %s: %w", quoted(d.info.Serial), err)
	}
	k.close()
	return nil
}
