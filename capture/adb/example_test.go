package adb_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/leakgate/leakgate/capture/adb"
)

// An adb server on another machine that listens only on loopback can be reached
// through any function that connects to it. The Dial method of an ssh.Client
// has this signature, too.
func ExampleOptions_dial() {
	tunnel := func(ctx context.Context) (net.Conn, error) {
		return nil, fmt.Errorf("dial farm.example:22: connection refused")
	}
	client, err := adb.NewClient(adb.Options{Addr: "farm.example", Dial: tunnel, DialTimeout: time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Devices(context.Background())
	fmt.Println(err)
	// Output: list devices: no adb server at farm.example (dial farm.example:22: connection refused): start it there, or check the tunnel to it
}
