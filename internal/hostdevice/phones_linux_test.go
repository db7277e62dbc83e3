package hostdevice

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/hostdevice/control"
	"github.com/leakgate/leakgate/internal/hostdevice/meminfo"
)

// simulated returns a phone whose app has ended in two ways and is running
// again.
func simulated(t *testing.T, api int) *androidsim.Phone {
	t.Helper()
	p := androidsim.New(androidsim.Options{API: api, Apps: []androidsim.App{{
		Package: "com.shop", UID: 10123, Processes: []androidsim.ProcessSpec{{
			Name: "com.shop", RestartAfter: time.Second,
			Models: []androidsim.Model{androidsim.Typical(), androidsim.Swap(0.3, 0, time.Second)},
		}},
	}}})
	time.Sleep(time.Minute)
	p.Kill("com.shop")
	time.Sleep(time.Minute)
	ask(t, p, "am force-stop com.shop")
	p.Restart("com.shop")
	time.Sleep(time.Minute)
	return p
}

func ask(t *testing.T, p *androidsim.Phone, command string) string {
	t.Helper()
	var out bytes.Buffer
	p.Shell(t.Context(), command, nil, &out, &out)
	return out.String()
}

// dumped returns the output of the device's dumpsys.
func dumped(t *testing.T, d *Device, args ...string) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c := call{Request: control.Request{Stdout: out, Stderr: out}, device: d, args: args}
	c.dumpsys()
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDumpsysLikeSimulatedPhone checks that, at each API level, both phones
// print the same text for the same values.
func TestDumpsysLikeSimulatedPhone(t *testing.T) {
	for api := 21; api <= 36; api++ {
		synctest.Test(t, func(t *testing.T) {
			p := simulated(t, api)
			d := &Device{options: Options{API: api, Package: "com.shop", AppUID: 10123}}
			d.app = newApp(d)
			for _, args := range []string{
				"--help", "-t soon meminfo", "--nosuch", "nosuch", "meminfo -h", "meminfo -x", "meminfo com.none",
				"activity nosuch",
			} {
				if got, want := dumped(t, d, strings.Fields(args)...), ask(t, p, "dumpsys "+args); got != want ||
					got == "" {
					t.Errorf("API %d: dumpsys %s: got %q, want %q as from the simulated phone", api, args, got, want)
				}
			}
			checkExits(t, d, api, ask(t, p, "dumpsys activity exit-info com.shop"))
			checkTable(t, api, ask(t, p, "dumpsys meminfo com.shop"))
		})
	}
}

// checkExits adds the exits listed in want to the device, and compares the
// device's exit-info with want.
func checkExits(t *testing.T, d *Device, api int, want string) {
	t.Helper()
	if api < androidtext.ExitInfoSince {
		if got := dumped(t, d, "activity", "exit-info"); got != want {
			t.Errorf("API %d: %q, want %q", api, got, want)
		}
		return
	}
	info, err := dumpsys.ParseExitInfo([]byte(want))
	if err != nil || len(info.Exits) != 2 {
		t.Fatalf("API %d: %v\n%s", api, err, want)
	}
	for i := len(info.Exits) - 1; i >= 0; i-- {
		e := info.Exits[i]
		at, err := time.Parse("2006-01-02 15:04:05.000", string(e.Timestamp))
		if err != nil {
			t.Fatal(err)
		}
		d.app.exits = append(d.app.exits, androidtext.Exit{
			Time: at, Package: string(e.Package), Process: string(e.Process), PID: int(e.PID.N), UID: int(e.RealUID.N),
			Reason:    int(e.Reason.N),
			Subreason: map[int]int{androidtext.UserRequested: androidtext.ForceStop}[int(e.Reason.N)],
			Status:    int(e.Status.N), Importance: int(e.Importance.N), PssKB: e.Pss.N, RssKB: e.Rss.N,
			Description: string(e.Description),
		})
	}
	_, want, _ = strings.Cut(want, "\n  package:")
	_, got, _ := strings.Cut(dumped(t, d, "activity", "exit-info", "com.shop"), "\n  package:")
	if got != want {
		t.Errorf("API %d: got\n%s\nwant, as from the simulated phone,\n%s", api, got, want)
	}
}

// checkTable compares the table for a layout with the numbers in want. Heap
// values and objects differ between the phones. Therefore the heap values are
// copied and the objects are not compared.
func checkTable(t *testing.T, api int, want string) {
	t.Helper()
	parsed, err := dumpsys.ParseMeminfo([]byte(want))
	if err != nil || len(parsed.Blocks) != 1 {
		t.Fatalf("API %d: %v\n%s", api, err, want)
	}
	b := parsed.Blocks[0]
	var l meminfo.Layout
	for r := range androidtext.NumRows {
		row, _ := b.Row(r.String())
		l.Rows[r] = androidtext.Memory{
			Pss: row.Pss.N, Rss: row.Rss.N, PrivateDirty: row.PrivateDirty.N, PrivateClean: row.PrivateClean.N,
			Swap: row.Swap.N + row.SwapPss.N, SwapPss: row.Swap.N + row.SwapPss.N,
		}
	}
	m := l.Meminfo(api, int(b.PID.N), string(b.Process), 0)
	native, _ := b.Row("Native Heap")
	java, _ := b.Row("Dalvik Heap")
	m.NativeHeap = androidtext.Heap{Size: native.HeapSize.N, Alloc: native.HeapAlloc.N, Free: native.HeapFree.N}
	m.JavaHeap = androidtext.Heap{Size: java.HeapSize.N, Alloc: java.HeapAlloc.N, Free: java.HeapFree.N}
	head := androidtext.MeminfoHead(api, time.Duration(parsed.Uptime.N)*time.Millisecond)
	got, _, _ := strings.Cut(head+m.Text(androidtext.MeminfoOptions{}), " Objects\n")
	if want, _, _ = strings.Cut(want, " Objects\n"); got != want {
		t.Errorf("API %d: got\n%s\nwant, as from the simulated phone,\n%s", api, got, want)
	}
}
