package adb

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	// reconnectEvery is the minimum interval between attempts to connect a
	// device.
	reconnectEvery = 5 * time.Second
	// connectTimeout bounds one attempt. The server itself stops after 10 s
	// (AOSP adb/client/transport_local.cpp, network_connect).
	connectTimeout = 15 * time.Second
)

// netLink is the state of this client's requests to connect to one network
// device.
type netLink struct {
	// turn is held by the single call that connects.
	turn ctxMutex
	// asked is when the server last responded, or when the client stopped
	// waiting for a response.
	asked time.Time
	// answer is the server's last response.
	answer string
}

func (c *Client) linkTo(serial string) *netLink {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[serial]
	if l == nil {
		l = &netLink{turn: newCtxMutex()}
		c.lines[serial] = l
	}
	return l
}

// reconnect asks the server to connect to a network device that it does not
// list, and returns the server's response. If the last attempt was less than
// reconnectEvery ago, it returns the response to that attempt. The error
// concerns the call, not the device.
func (c *Client) reconnect(ctx context.Context, serial string) (answer string, err error) {
	if c.opt.NoConnect {
		return "", nil
	}
	l := c.linkTo(serial)
	if err := l.turn.lock(ctx); err != nil {
		return "", err
	}
	defer l.turn.unlock()
	if !l.asked.IsZero() && time.Since(l.asked) < reconnectEvery {
		return l.answer, nil
	}
	// The server itself handles the devices that it lists, in any state: it
	// reconnects offline devices and prompts the user about unauthorized ones.
	list, err := c.Devices(ctx)
	if err != nil {
		return "", err
	}
	if listed(list, serial) {
		return "", nil
	}
	l.answer, err = c.connect(ctx, serial)
	l.asked = time.Now()
	return l.answer, err
}

// reconnected waits until no other call is connecting, and reports whether an
// attempt to connect has ended since the given time.
func (c *Client) reconnected(ctx context.Context, serial string, since time.Time) bool {
	l := c.linkTo(serial)
	if l.turn.lock(ctx) != nil {
		return false
	}
	defer l.turn.unlock()
	return l.asked.After(since)
}

// connect does the same as `adb connect`. The server responds with OKAY
// whatever the result.
func (c *Client) connect(ctx context.Context, serial string) (string, error) {
	k, err := c.dial(ctx, true)
	if err != nil {
		return "", err
	}
	defer k.close()
	k.wait = min(connectTimeout, c.opt.AnswerTimeout)
	if err = k.request("host:connect:" + serial); err == nil {
		var answer string
		if answer, err = k.text(); err == nil {
			return answer, nil
		}
	}
	if ctx.Err() != nil {
		return "", err
	}
	return err.Error(), nil
}

func listed(list []DeviceInfo, serial string) bool {
	for _, d := range list {
		if d.Serial == serial {
			return true
		}
	}
	return false
}

// networkSerial reports whether a serial is HOST:PORT, the serial of a device
// added by `adb connect`. An mDNS name is not a network serial: the server
// itself discovers devices with such names.
func networkSerial(serial string) bool {
	host, port, err := net.SplitHostPort(serial)
	if err != nil || checkPort(port) != nil || host == "" || len(host) > 253 {
		return false
	}
	if n, err := strconv.Atoi(port); err != nil || strconv.Itoa(n) != port {
		return false
	}
	plain := strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == "" ||
		net.ParseIP(host) != nil
	return plain && !strings.Contains(host, "._") && host[0] != '-'
}
