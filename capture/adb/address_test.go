package adb

import (
	"strings"
	"testing"
)

func env(pairs ...string) func(string) string {
	return func(key string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == key {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestEndpoint(t *testing.T) {
	const socket, host, port = "ADB_SERVER_SOCKET", "ANDROID_ADB_SERVER_ADDRESS", "ANDROID_ADB_SERVER_PORT"
	tests := []struct {
		addr  string
		env   func(string) string
		want  endpoint
		local string // the port on which a server may be started
		err   string
	}{
		{"", env(), endpoint{"tcp", "127.0.0.1:5037"}, "5037", ""},
		{"", env(port, "6000"), endpoint{"tcp", "127.0.0.1:6000"}, "6000", ""},
		{"", env(host, "10.0.0.1"), endpoint{"tcp", "10.0.0.1:5037"}, "", ""},
		{"", env(host, "::1", port, "1"), endpoint{"tcp", "[::1]:1"}, "1", ""},
		{"", env(port, "6000", socket, "tcp:7000"), endpoint{"tcp", "127.0.0.1:7000"}, "7000", ""},
		{"", env(socket, "tcp:localhost:7000"), endpoint{"tcp", "localhost:7000"}, "7000", ""},
		{"", env(socket, "tcp:[::1]:7000"), endpoint{"tcp", "[::1]:7000"}, "7000", ""},
		{"", env(socket, "tcp:farm.example:7000"), endpoint{"tcp", "farm.example:7000"}, "", ""},
		{"", env(socket, "localfilesystem:/run/adb.sock"), endpoint{"unix", "/run/adb.sock"}, "", ""},
		{"127.0.0.1:9", env(socket, "tcp:7000"), endpoint{"tcp", "127.0.0.1:9"}, "9", ""},
		{"tcp:9", env(), endpoint{"tcp", "127.0.0.1:9"}, "9", ""},
		{"localhost:9", env(), endpoint{"tcp", "localhost:9"}, "9", ""},
		{"localfilesystem:x", env(), endpoint{"unix", "x"}, "", ""},
		{"", env(port, "zero"), endpoint{}, "", `invalid port "zero"`},
		{"", env(port, "65536"), endpoint{}, "", "ANDROID_ADB_SERVER_PORT"},
		{"", env(port, "0"), endpoint{}, "", "from 1 to 65535"},
		{"", env(socket, "localabstract:adb"), endpoint{}, "", "unsupported socket kind"},
		{"", env(socket, "vsock:1:2"), endpoint{}, "", "unsupported socket kind"},
		{"", env(socket, "localfilesystem:"), endpoint{}, "", "has no path"},
		{"", env(socket, "5037"), endpoint{}, "", "invalid socket specification"},
		{"", env(socket, "tcp:a:b:c"), endpoint{}, "", "invalid TCP address"},
		{"localabstract:x", env(), endpoint{}, "", "unsupported socket kind"},
		{"host", env(), endpoint{}, "", "invalid port"},
	}
	for _, tt := range tests {
		c, err := NewClient(Options{Addr: tt.addr, Getenv: tt.env})
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q: got error %v, want one that contains %q", tt.addr, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tt.addr, err)
			continue
		}
		if c.at != tt.want || c.Addr() != tt.want.addr {
			t.Errorf("%q: %v, want %v", tt.addr, c.at, tt.want)
		}
		if p, ok := c.at.localPort(); ok != (tt.local != "") || ok && p != tt.local {
			t.Errorf("%v: local port %q %v, want %q", c.at, p, ok, tt.local)
		}
	}
}
