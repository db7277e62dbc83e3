package detail_test

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/capture/detail"
	"github.com/leakgate/leakgate/internal/shelltest"
)

// Read the memory of one process, by the dimensions of dumpsys meminfo.
func Example() {
	phone := androidsim.New(androidsim.Options{API: 34, Scale: 100, Apps: []androidsim.App{{
		Package: "com.shop", Processes: []androidsim.ProcessSpec{
			{Name: "com.shop", Models: []androidsim.Model{androidsim.Steady(androidsim.JavaHeap, 48)}},
		},
	}}})
	ctx := context.Background()
	dev := &shelltest.Device{Run: func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
		return phone.Shell(ctx, command, strings.NewReader(""), stdout, stderr), ctx.Err()
	}}
	facts, err := capture.ReadFacts(ctx, dev)
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := capture.FindProcesses(ctx, dev, []capture.Pattern{"com.shop"})
	if err != nil || len(found.Processes) == 0 {
		fmt.Println("com.shop is not running", err)
		return
	}
	d, err := detail.Read(ctx, dev, facts, found.Processes[0], found.SystemServer)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d MB, %d MB of which is Java heap\n", d.Block.TotalPss.N/1024, d.Block.JavaHeap.N/1024)
	// Output: 48 MB, 48 MB of which is Java heap
}
