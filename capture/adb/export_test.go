package adb

import (
	"context"
	"fmt"
	"strconv"
)

// Version returns the server's protocol version: 41 for every release from 29
// to 35.
func (c *Client) Version(ctx context.Context) (int, error) {
	text, err := c.query(ctx, "host:version")
	if err != nil {
		return 0, fmt.Errorf("read the server's version: %w", err)
	}
	v, err := strconv.ParseUint(text, 16, 16)
	if err != nil {
		return 0,
			fmt.Errorf("read the server's version: %w",
				faultf(ErrProtocol, "the adb server at %s reports an invalid version %s: is it an adb server?",
					c.at.addr, quoted(text)))
	}
	return int(v), nil
}

// Stat describes a file on the device. With the feature stat_v2, Stat follows
// symbolic links; without stat_v2, it describes the link itself. The error for
// a missing file is fs.ErrNotExist; without stat_v2, a file to which access is
// denied causes the same error.
func (d *Device) Stat(ctx context.Context, path string) (fileInfo, error) {
	info, err := d.statOnce(ctx, path)
	if err != nil {
		return fileInfo{}, d.during("stat", path, err)
	}
	return info, nil
}

func (d *Device) statOnce(ctx context.Context, path string) (fileInfo, error) {
	v2, err := d.has(ctx, "stat_v2")
	if err != nil {
		return fileInfo{}, err
	}
	s, err := d.openSync(ctx, path)
	if err != nil {
		return fileInfo{}, err
	}
	defer s.close()
	info, err := s.stat(v2)
	if err == nil {
		s.quit()
	}
	return info, err
}
