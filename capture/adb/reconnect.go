package adb

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	// reconnectEvery is how long after one attempt to connect a device the next may
	// come.
	reconnectEvery = 5 * time.Second
	// connectTimeout is how long the server may take for one attempt. It gives up
	// after 10 s by itself (AOSP adb/client/transport_local.cpp, network_connect).
	connectTimeout = 15 * time.Second
)

// line is the network line to one device, as far as this client has asked for it.
type line struct {
	// turn is held by the one call that asks.
	turn turn
	// asked is when the server last answered, or was given up.
	asked time.Time
	// answer is what it said then.
	answer string
}

func (c *Client) lineTo(serial string) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[serial]
	if l == nil {
		l = &line{turn: newTurn()}
		c.lines[serial] = l
	}
	return l
}

// reconnect has the server connect to a device of the network that it does not
// list, unless that was tried just now, and gives what the server said to it. The
// error is one of the call and not of the device.
func (c *Client) reconnect(ctx context.Context, serial string) (answer string, err error) {
	if c.opt.NoConnect {
		return "", nil
	}
	l := c.lineTo(serial)
	if err := l.turn.take(ctx); err != nil {
		return "", err
	}
	defer l.turn.give()
	if !l.asked.IsZero() && time.Since(l.asked) < reconnectEvery {
		return l.answer, nil
	}
	// What is listed in any state is the server's own affair: it brings back what is
	// offline by itself, and asks the user about what is unauthorized.
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

// reconnected waits for an attempt of another call, and tells whether one has ended
// since the time given.
func (c *Client) reconnected(ctx context.Context, serial string, since time.Time) bool {
	l := c.lineTo(serial)
	if l.turn.take(ctx) != nil {
		return false
	}
	defer l.turn.give()
	return l.asked.After(since)
}

// connect is `adb connect`. The server answers OKAY whatever came of it.
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

// networkSerial says that a serial is HOST:PORT, the name that `adb connect` gives
// a device. Names of mDNS are none: the server finds those by itself.
func networkSerial(serial string) bool {
	host, port, err := net.SplitHostPort(serial)
	if err != nil || checkPort(port) != nil || host == "" || len(host) > 253 {
		return false
	}
	if n, err := strconv.Atoi(port); err != nil || strconv.Itoa(n) != port {
		return false
	}
	plain := strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == "" || net.ParseIP(host) != nil
	return plain && !strings.Contains(host, "._") && host[0] != '-'
}
