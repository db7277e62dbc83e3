package capture_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/shelltest"
)

// simulatedPhone returns a phone that runs com.shop, a debuggable app with two
// processes. The phone's shell is not root, and its clock runs 100 times as
// fast as real time. For a real phone, use an adb.Device instead.
func simulatedPhone() capture.Device {
	phone := androidsim.New(androidsim.Options{API: 34, Scale: 100, Apps: []androidsim.App{{
		Package: "com.shop", Debuggable: true, Processes: []androidsim.ProcessSpec{
			{Name: "com.shop", Models: []androidsim.Model{androidsim.Steady(androidsim.JavaHeap, 48)}},
			{Name: "com.shop:push", Models: []androidsim.Model{androidsim.Steady(androidsim.NativeHeap, 12)}},
		},
	}}})
	return &shelltest.Device{Run: func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
		return phone.Shell(ctx, command, strings.NewReader(""), stdout, stderr), ctx.Err()
	}}
}

// Find the processes of an app, and the best way to read each on this phone.
func ExampleFindProcesses() {
	ctx, dev := context.Background(), simulatedPhone()
	facts, err := capture.ReadFacts(ctx, dev)
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := capture.FindProcesses(ctx, dev, []capture.Pattern{"com.shop*"})
	if err != nil {
		fmt.Println(err)
		return
	}
	levels := capture.NewLevels(dev, facts)
	for _, p := range found.Processes {
		probe, err := levels.Probe(ctx, p)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(p.Name, "by", probe.Level.Source)
	}
	// Output:
	// com.shop by run_as
	// com.shop:push by run_as
}

// Read the memory of all due processes in one round trip.
func ExampleFast_Read() {
	ctx, dev := context.Background(), simulatedPhone()
	facts, err := capture.ReadFacts(ctx, dev)
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := capture.FindProcesses(ctx, dev, []capture.Pattern{"com.shop*"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var targets []capture.Target
	levels := capture.NewLevels(dev, facts)
	for _, p := range found.Processes {
		probe, err := levels.Probe(ctx, p)
		if err != nil {
			fmt.Println(err)
			return
		}
		targets = append(targets, capture.Target{Process: p, Level: probe.Level})
	}
	rounds, err := capture.NewFast(dev).Read(ctx, targets, found.SystemServer, 10*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range rounds[0].Readings {
		fmt.Printf("%s: %d MB\n", r.Name, (r.PSS.N+r.SwapPSS.N)/1024)
	}
	// Output:
	// com.shop: 48 MB
	// com.shop:push: 12 MB
}
