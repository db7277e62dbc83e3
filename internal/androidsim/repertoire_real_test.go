//go:build e2e

package androidsim

import (
	"context"
	"net"
	"testing"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/adbd/adbtest"
)

// behind starts a real adb server and returns a function that starts a phone
// behind it.
func behind(t *testing.T) func(t *testing.T) *bench {
	server := adbtest.StartServer(t)
	return func(t *testing.T) *bench {
		p, line := pair(Options{Scale: benchTime}), new(adbd.Line)
		d := adbd.NewDaemon(p)
		d.Wire = line.Wire
		if err := d.Listen("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		serial := server.Connect(t, d.Addr())
		dial := func(context.Context) (net.Conn, error) { return net.Dial("tcp", server.Addr) }
		return &bench{p, dial, serial, Faults(p, d, line)}
	}
}

func TestFaultsBehindADB(t *testing.T) {
	connect := behind(t)
	for i, f := range connect(t).faults {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			b := connect(t)
			testFault(t, b, b.faults[i])
		})
	}
}

func TestStatesBehindADB(t *testing.T) { testStates(t, behind(t)(t)) }

func TestEndlessBehindADB(t *testing.T) { testEndless(t, behind(t)(t)) }
