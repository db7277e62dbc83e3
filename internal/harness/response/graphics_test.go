package response

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/analysis/footprint"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/recorded"
)

// surfaceFlingerText returns the lists of SurfaceFlinger: the allocated buffers
// and, if imported is not nil, the imported buffers.
func surfaceFlingerText(allocated, imported []string) []byte {
	var b strings.Builder
	b.WriteString("GraphicBufferAllocator buffers:\n")
	for i, layer := range allocated {
		fmt.Fprintf(&b, "0x%x | 10200.00 KiB | 1080 (1088) x 2400 |      1 |        1 | 0x    1b00 | %s\n", 0x7000+i,
			layer)
	}
	fmt.Fprintf(&b, "Total allocated by GraphicBufferAllocator (estimate): %d.00 KB\n", 10200*len(allocated))
	if imported != nil {
		b.WriteString("Imported gralloc buffers:\n")
		for i, layer := range imported {
			fmt.Fprintf(&b,
				"+ name:%s, id:%d, size:10240.00KiB, w/h:1080x2400, usage: 0xb00\n\tplanes: R/G/B/A:\t "+
					"w/h:1088x2400, stride:4352 bytes, size:10485760\n", layer, i)
		}
		fmt.Fprintf(&b, "Total imported by gralloc: %d.00KiB\n", 10240*len(imported))
	}
	return []byte(b.String())
}

// layers returns the given number of buffers of each layer.
func layers(of ...any) (list []string) {
	list = []string{}
	for i := 0; i < len(of); i += 2 {
		for range of[i+1].(int) {
			list = append(list, of[i].(string))
		}
	}
	return list
}

// graphicsOf compares two outputs of SurfaceFlinger for the process com.shop,
// and returns its findings as NAME: COUNT (+DELTA).
func graphicsOf(t *testing.T, before, now []byte) (findings []string, c *Case) {
	t.Helper()
	r := New(t.TempDir(), Options{})
	first := analyzed(t, r, Snapshot, nil, map[string][]byte{"surfaceflinger.txt": before})
	c = analyzed(t, r, "gpu", first.Now, map[string][]byte{"surfaceflinger.txt": now})
	for _, f := range found(c, "graphics") {
		text := f.Name
		if f.Count != nil {
			text += fmt.Sprintf(": %d (%+d)", *f.Count, *f.CountDelta)
		}
		if f.BytesDelta != nil {
			text += fmt.Sprintf(" %+d kB", *f.BytesDelta/1024)
		}
		findings = append(findings, text)
	}
	return findings, c
}

// On phones whose apps allocate the buffers of their windows, a leak of such
// buffers is visible only in the list of imported buffers.
func TestImportedBuffersGrow(t *testing.T) {
	text := bytes.TrimRight(recorded.Read(t, "device", "api33-surfaceflinger-buffers.txt"), "\n")
	at := bytes.Index(text, []byte("+ name:VRI["))
	const end = "\nTotal imported by gralloc: %.2fKiB\n"
	before := fmt.Appendf(nil, "%s"+end, text, 20720.5)
	now := fmt.Appendf(nil, "%s%s\n%s"+end, text[:at], bytes.Repeat(append(text[at:], '\n'), 10), text[at:], 227925.5)
	got, c := graphicsOf(t, before, now)
	equal(t, "findings", got,
		[]string{"VRI[GoogleDialtactsActivity]#*(BLAST Consumer)* (dumpsys SurfaceFlinger): 22 (+20) +207200 kB"})
	says(t, c.Record.Summary, "layer VRI[GoogleDialtactsActivity]#*(BLAST Consumer)* +202.3 MB: 2 -> 22 buffers",
		"imported buffers of the whole device (dumpsys SurfaceFlinger) +202.3 MB")
	says(t, []string{string(contents(t, c.folder.path)[beside("surfaceflinger.txt")])},
		"22 buffers of all windows, 222.6 MB; 6 allocated by SurfaceFlinger, 59.8 MB")
}

// A truncated list is not compared.
func TestImportedBuffersWithoutEnd(t *testing.T) {
	whole, more := surfaceFlingerText(layers("screen", 3), layers("VRI[Main]#0", 3)),
		surfaceFlingerText(layers("screen", 3), layers("VRI[Main]#0", 9))
	cut := more[:bytes.Index(more, []byte("Total imported"))]
	for _, c := range [][2][]byte{{whole, cut}, {cut, whole}, {cut, cut[:bytes.LastIndex(cut, []byte("+ name"))]}} {
		if got, _ := graphicsOf(t, c[0], c[1]); len(got) > 0 {
			t.Errorf("%q", got)
		}
	}
	if got, _ := graphicsOf(t, whole, more); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// Buffers of another app are reported, but not as a finding about this process.
func TestBuffersOfAnotherApp(t *testing.T) {
	const own, other, nobody, screen = "com.shop/com.shop.Main#3",
		"SurfaceView[com.other/com.other.Player]#7(BLAST Consumer)7", "VRI[Main]#0(BLAST Consumer)0",
		"FramebufferSurface"
	for _, newer := range []bool{true, false} {
		list := func(of ...any) []byte {
			if newer {
				return surfaceFlingerText(layers(screen, 3), layers(append(of, screen, 3)...))
			}
			return surfaceFlingerText(layers(append(of, screen, 3)...), nil)
		}
		got, c := graphicsOf(t, list(own, 3, other, 10, nobody, 3), list(own, 3, other, 30, nobody, 3))
		equal(t, "findings", got, []string(nil))
		says(t, c.Record.Summary, "graphics: no growth of the process in the available numbers",
			"buffers of the whole device (dumpsys SurfaceFlinger) +",
			"layer of another app SurfaceView[com.other/com.other.Player]#*(BLAST Consumer)* +")
		got, _ = graphicsOf(t, list(own, 3, other, 10, nobody, 3), list(own, 5, other, 30, nobody, 4))
		if len(got) != 2 || !strings.HasPrefix(got[0], "com.shop/com.shop.Main#* (dumpsys SurfaceFlinger): 5 (+2) +") ||
			!strings.HasPrefix(got[1], "VRI[Main]#*(BLAST Consumer)* (dumpsys SurfaceFlinger): 4 (+1) +") {
			t.Errorf("%q", got)
		}
	}
	// If no buffer has an owner, the sum of all buffers is reported.
	got, _ := graphicsOf(t, surfaceFlingerText(layers("", 3), nil), surfaceFlingerText(layers("", 9), nil))
	equal(t, "findings", got,
		[]string{
			"buffers of the whole device (dumpsys SurfaceFlinger) +61200 kB",
			"(no name) (dumpsys SurfaceFlinger): 9 (+6) +61200 kB",
		})
}

// Rows that have not changed do not displace rows that have.
func TestChangedRowsAreReported(t *testing.T) {
	list := func(n int) []byte {
		var of []any
		for i := range 2 * toldFindings {
			of = append(of, fmt.Sprintf("steady %c", 'A'+i), 2)
		}
		for i := range 2 * toldFindings {
			of = append(of, fmt.Sprintf("shrinking %c", 'A'+i), 2-n)
		}
		return surfaceFlingerText(layers(of...), nil)
	}
	got, c := graphicsOf(t, list(0), list(1))
	if len(got) != toldFindings || got[0] != "shrinking A (dumpsys SurfaceFlinger): 1 (-1) -10200 kB" {
		t.Errorf("%q\n%v", got, c.Record.Summary)
	}
}

// Without an earlier snapshot the current state is reported.
func TestGraphicsNow(t *testing.T) {
	gpu := []byte("Memory snapshot for GPU 0:\nGlobal total: 57344000\nProc 4321 total: 37748736\n")
	c := analyzed(t, New(t.TempDir(), Options{}), "gpu", nil,
		map[string][]byte{
			"surfaceflinger.txt": surfaceFlingerText(layers("com.shop/com.shop.Main", 3), nil), "gpu.txt": gpu,
		})
	text := strings.Join(c.Record.Summary, "\n")
	for _, want := range []string{"graphics: 36.0 MB of GPU memory", "graphics: 3 buffers of all windows, 29.9 MB"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// Layers of other apps, whose names are not kept, are reported but are not
// findings.
func TestLayersOfOtherAppsWithoutNames(t *testing.T) {
	if footprint.OtherApp != dumpsys.OtherApp {
		t.Fatalf("%q is recorded as %q", footprint.OtherApp, dumpsys.OtherApp)
	}
	list := func(n int) *dumpsys.SurfaceFlinger {
		s := &dumpsys.SurfaceFlinger{Buffers: known.Of(int64(n)), TotalKB: known.Of(int64(n) * 1000)}
		for range n {
			s.List = append(s.List, dumpsys.Buffer{KB: known.Of(1000), Requestor: dumpsys.OtherApp})
		}
		return s
	}
	c := &Case{Order: Order{Process: capture.Process{Name: "com.shop"}}}
	lines := graphicsGrowth(c, &MemorySnapshot{graphics: graphicsState{buffers: list(1)}},
		&MemorySnapshot{graphics: graphicsState{buffers: list(9)}})
	for _, f := range c.Record.Findings {
		if strings.Contains(f.Name, dumpsys.OtherApp) {
			t.Errorf("%+v is a finding", f)
		}
	}
	if !strings.Contains(strings.Join(lines, "\n"), dumpsys.OtherApp) {
		t.Errorf("not reported in\n%s", strings.Join(lines, "\n"))
	}
}
