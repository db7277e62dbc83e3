package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/recorded"
)

const statTail = " S 631 631 0 0 -1 1077952832 117654 0 1014 0 2843 1207 0 0 20 0 71 0 277749 15032385536 49213 " +
	"18446744073709551615 1 1 0 0 0 0 4612 1 1073775864 0 0 0 17 3 0 0 5 0 0 0 0 0 0 0 0 0 0\n"

func TestStat(t *testing.T) {
	want := Stat{
		PID: 20602, State: 'S', PPID: known.Of(631), Utime: known.Of(2843), Stime: known.Of(1207),
		Threads: known.Of(71), StartTicks: known.Of(277749),
	}
	for _, comm := range []string{"memorylab", "a b", ") R 1 (", "x\ny)", ""} {
		got, err := ParseStat([]byte("20602 (" + comm + ")" + statTail))
		want.Comm = comm
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %+v, %v", comm, got, err)
		}
	}
	got, err := ParseStat([]byte(strings.Replace("20602 (a)"+statTail, " 71 ", " 7x ", 1)))
	if err != nil || got.Threads.Known || got.StartTicks != known.Of(277749) || len(got.Warnings) != 1 ||
		!strings.Contains(got.Warnings[0].Error(), "num_threads") {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]error{
		"":            ErrEmpty,
		"20602":       ErrFormat,
		"20602 (a":    ErrFormat,
		"x (a) S 1 2": ErrFormat,
		"cat: /proc/1/stat: No such file or directory\n": ErrFormat,
	} {
		if _, err := ParseStat([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTruncatedStat(t *testing.T) {
	text := "20602 (memorylab)" + statTail
	whole, err := ParseStat([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for at := range len(text) {
		part, err := ParseStat([]byte(text[:at]))
		if err != nil {
			continue
		}
		sameOrAbsent(t, at, whole, part)
		if part.Truncated == part.StartTicks.Known {
			t.Errorf("truncated at %d: truncated %t, start %v", at, part.Truncated, part.StartTicks)
		}
	}
}

const statusText = "Name:\tdlab.memorylab\nUmask:\t0077\nState:\tS " +
	"(sleeping)\nTgid:\t20602\nNgid:\t0\nPid:\t20602\nPPid:\t1011\nTracerPid:\t0\n" +
	"Uid:\t10123\t10123\t10123\t10123\nGid:\t10123\t10123\t10123\t10123\nVmPeak:\t 9000000 kB\nVmSize:\t 8999999 " +
	"kB\nVmRSS:\t  366032 kB\nRssAnon:\t  238524 kB\nRssFile:\t  120000 kB\n" +
	"RssShmem:\t    7508 kB\nVmSwap:\t   24660 kB\nThreads:\t71\nSigQ:\t0/22222\nnonvoluntary_ctxt_switches:\t11\n"

func TestStatus(t *testing.T) {
	want := Status{
		Name: "dlab.memorylab", PID: known.Of(20602), UID: known.Of(10123), Threads: known.Of(71),
		VmSize: known.Of(8999999), VmRSS: known.Of(366032),
		RssAnon: known.Of(238524), RssFile: known.Of(120000), RssShmem: known.Of(7508), VmSwap: known.Of(24660)}
	for _, text := range []string{statusText, strings.ReplaceAll(statusText, "\n", "\r\n")} {
		got, err := ParseStatus([]byte(text))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	got, err := ParseStatus([]byte(strings.Replace(statusText, "238524 kB", "23b kB", 1)))
	if err != nil || got.RssAnon.Known || got.VmSwap != want.VmSwap || len(got.Warnings) != 1 ||
		!strings.Contains(got.Warnings[0].Error(), "RssAnon") {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]error{
		"": ErrEmpty,
		"cat: /proc/1/status: No such file or directory\n": ErrFormat,
		string(smapsText(2, "VmFlags")):                    ErrFormat,
	} {
		if _, err := ParseStatus([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTruncatedStatus(t *testing.T) {
	whole, err := ParseStatus([]byte(statusText))
	if err != nil {
		t.Fatal(err)
	}
	for at := range len(statusText) {
		part, err := ParseStatus([]byte(statusText[:at]))
		if err != nil {
			continue
		}
		sameOrAbsent(t, at, whole, part)
		if part.Name != "" && part.Name != whole.Name {
			t.Errorf("truncated at %d: name %q", at, part.Name)
		}
	}
}

func TestUptime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"766707.56 5432.10\n": 766707*time.Second + 560*time.Millisecond,
		"0.01 0.00\n":         10 * time.Millisecond,
		"12.00 3.09\r\n":      12 * time.Second,
	} {
		if got, err := ParseUptime([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "766707.5", "x 1\n", "1.x 2\n", "-1 2\n", "99999999999 1\n", "1.123 2.00\n", "1. 2.00\n", "12 3\n",
		"4620900 5432.10\n", "cat: /proc/uptime: Permission denied\n",
	} {
		if got, err := ParseUptime([]byte(text)); err == nil || got != 0 {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestOwnProcess parses the output of this machine's kernel, if the machine has
// /proc.
func TestOwnProcess(t *testing.T) {
	read := func(name string) []byte {
		text, err := os.ReadFile("/proc/" + name)
		if err != nil {
			t.Skipf("not Linux: %v", err)
		}
		return text
	}
	s, err := ParseStat(read("self/stat"))
	if err != nil || s.PID != int64(os.Getpid()) || s.Truncated || !s.StartTicks.Known || len(s.Warnings) > 0 {
		t.Errorf("%+v, %v", s, err)
	}
	st, err := ParseStatus(read("self/status"))
	if err != nil || st.PID != known.Of(int64(os.Getpid())) || st.UID != known.Of(int64(os.Getuid())) ||
		!st.VmRSS.Known || len(st.Warnings) > 0 {
		t.Errorf("%+v, %v", st, err)
	}
	if up, err := ParseUptime(read("uptime")); err != nil || up <= 0 {
		t.Error(up, err)
	}
	m, err := ParseSmaps(bytes.NewReader(read("self/smaps")))
	if err != nil || m.Truncated || !m.Pss.Known || len(m.Warnings) > 0 {
		t.Errorf("%+v, %v", m, err)
	}
	r, err := ParseRollup(read("self/smaps_rollup"))
	if err != nil || r.Truncated || !r.Pss.Known || !r.SwapPss.Known || len(r.Warnings) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func FuzzStat(f *testing.F) {
	f.Add([]byte("20602 (memorylab)"+statTail), 30)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		s, err := ParseStat(text)
		if err != nil {
			return
		}
		if len(s.Comm) > 64 || s.Truncated && s.StartTicks.Known {
			t.Fatalf("%+v", s)
		}
		// If the input is truncated after the name, values may be missing, but
		// none of them is wrong.
		end := bytes.LastIndexByte(text[:min(len(text), maxStat)], ')')
		if at <= end || at > len(text) {
			return
		}
		part, err := ParseStat(text[:at])
		if err != nil {
			t.Fatal(err)
		}
		sameOrAbsent(t, at, s, part)
	})
}

func FuzzStatus(f *testing.F) {
	f.Add([]byte(statusText))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseStatus(text)
		if err != nil && fmt.Sprint(s) != fmt.Sprint(Status{}) {
			t.Fatalf("got an error and a value: %+v", s)
		}
		if len(s.Name) > 64 || s.VmRSS.N < 0 || s.Threads.N < 0 {
			t.Fatalf("%+v", s)
		}
	})
}

func FuzzUptime(f *testing.F) {
	f.Add([]byte("766707.56 5432.10\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ParseUptime(text)
		if err != nil {
			return
		}
		want, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
		if err != nil || got.Seconds()-want > 1e-6*want+1e-9 || want-got.Seconds() > 1e-6*want+1e-9 {
			t.Fatalf("%q: %v, want %v (%v)", text, got, want, err)
		}
	})
}

func TestTruncatedShowmap(t *testing.T) {
	text := recorded.Read(t, "device", "api36-memorylab-showmap.txt")
	whole, err := ParseShowmap(text)
	if err != nil {
		t.Fatal(err)
	}
	at := cuts(text, 1, 2000)
	for i := range 600 { // at every byte near the end
		at = append(at, len(text)-i)
	}
	for _, at := range at {
		part, err := ParseShowmap(text[:at])
		if err != nil {
			continue
		}
		done := part.Total.Object == "TOTAL"
		if part.Truncated == done {
			t.Fatalf("truncated at %d: truncated %t, total %+v", at, part.Truncated, part.Total)
		}
		if done && part.Total != whole.Total || !done && part.Total != (ShowmapRow{}) {
			t.Fatalf("truncated at %d: total %+v", at, part.Total)
		}
		for i, row := range part.Rows {
			if row != whole.Rows[i] {
				t.Fatalf("truncated at %d: row %+v, in the whole text %+v", at, row, whole.Rows[i])
			}
		}
	}
}

func TestRecordedShowmap(t *testing.T) {
	got, err := ParseShowmap(recorded.Read(t, "device", "api36-memorylab-showmap.txt"))
	if err != nil || got.Truncated || len(got.Warnings) > 0 {
		t.Fatalf("%v, %v", got.Warnings, err)
	}
	want := ShowmapRow{
		Object: "TOTAL", Size: known.Of(34495976), RSS: known.Of(366032), PSS: known.Of(282367),
		SharedClean: known.Of(81748), SharedDirty: known.Of(26836),
		PrivateClean: known.Of(18924), PrivateDirty: known.Of(238524), Swap: known.Of(24660), SwapPss: known.Of(162),
		Count: known.Of(1109)}
	if got.Total != want {
		t.Errorf("total %+v", got.Total)
	}
	var sum ShowmapRow
	for _, r := range got.Rows {
		sum.PSS.N += r.PSS.N
		sum.PrivateDirty.N += r.PrivateDirty.N
		sum.Count.N += r.Count.N
	}
	if len(got.Rows) != 1109 || sum.PSS.N != 282367 || sum.PrivateDirty.N != 238524 || sum.Count.N != 1109 {
		t.Errorf("%d rows, sums %+v", len(got.Rows), sum)
	}
	if last := got.Rows[len(got.Rows)-1].Object; last != "[vvar]" {
		t.Errorf("last row is %q", last)
	}
}

func TestShowmapLayouts(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		row   ShowmapRow
		total ShowmapRow
	}{
		"Android 5 to 7": {
			" virtual                     shared   shared  private  private\n" +
				"    size      RSS      PSS    clean    dirty    clean    dirty    # object\n" +
				"-------- -------- -------- -------- -------- -------- -------- ---- ------------------------------\n" +
				"     288       76        5       72        0        0        4    2 /data/my app/a b.so (deleted)\n" +
				"-------- -------- -------- -------- -------- -------- -------- ---- ------------------------------\n" +
				" virtual                     shared   shared  private  private\n" +
				"    size      RSS      PSS    clean    dirty    clean    dirty    # object\n" +
				"-------- -------- -------- -------- -------- -------- -------- ---- ------------------------------\n" +
				"     288       76        5       72        0        0        4    2 TOTAL\n",
			ShowmapRow{
				Object: "/data/my app/a b.so (deleted)", Size: known.Of(288), RSS: known.Of(76), PSS: known.Of(5),
				SharedClean: known.Of(72), SharedDirty: known.Of(0), PrivateClean: known.Of(0),
				PrivateDirty: known.Of(4), Count: known.Of(2),
			},
			ShowmapRow{
				Object: "TOTAL", Size: known.Of(288), RSS: known.Of(76), PSS: known.Of(5), SharedClean: known.Of(72),
				SharedDirty: known.Of(0), PrivateClean: known.Of(0), PrivateDirty: known.Of(4), Count: known.Of(2),
			},
		},
		"Android 10, -v": {
			" virtual                     shared   shared  private  private                  \n" +
				"    size      RSS      PSS    clean    dirty    clean    dirty     swap  swapPSSobject\n" +
				"-------- -------- -------- -------- -------- -------- -------- -------- -------- " +
				"------------------------------\n" +
				"     288       76        5       72        0        0        4        2        1 " +
				"/system/lib64/libc.so\n" +
				"-------- -------- -------- -------- -------- -------- -------- -------- -------- " +
				"------------------------------\n" +
				" virtual                     shared   shared  private  private                  \n" +
				"    size      RSS      PSS    clean    dirty    clean    dirty     swap  swapPSSobject\n" +
				"-------- -------- -------- -------- -------- -------- -------- -------- -------- " +
				"------------------------------\n" +
				"     288       76        5       72        0        0        4        2        1 TOTAL\n",
			ShowmapRow{
				Object: "/system/lib64/libc.so", Size: known.Of(288), RSS: known.Of(76), PSS: known.Of(5),
				SharedClean: known.Of(72), SharedDirty: known.Of(0), PrivateClean: known.Of(0),
				PrivateDirty: known.Of(4), Swap: known.Of(2), SwapPss: known.Of(1),
			},
			ShowmapRow{
				Object: "TOTAL", Size: known.Of(288), RSS: known.Of(76), PSS: known.Of(5), SharedClean: known.Of(72),
				SharedDirty: known.Of(0), PrivateClean: known.Of(0), PrivateDirty: known.Of(4), Swap: known.Of(2),
				SwapPss: known.Of(1),
			},
		},
		"-a -v": {
			"           start              end  virtual                     shared   shared  private  private        " +
				"           Anon      Shmem     File      Shared   Private\n" +
				"            addr             addr     size      RSS      PSS    clean    dirty    clean    dirty    " +
				" swap  swapPSS HugePages PmdMapped PmdMapped Hugetlb  Hugetlb    Locked flags object\n" +
				"---------------- ---------------- -------- -------- -------- -------- -------- -------- -------- " +
				"-------- -------- --------- --------- --------- -------- -------- -------- ----- " +
				"------------------------------\n" +
				"        0eec0000         4eec0000  1048576    48404    48404        0        0        0    48404    " +
				"    9        8         0         0         0        0        0        0  rw-p [anon:dalvik-main " +
				"space (region space)]\n" +
				"---------------- ---------------- -------- -------- -------- -------- -------- -------- -------- " +
				"-------- -------- --------- --------- --------- -------- -------- -------- ----- " +
				"------------------------------\n" +
				"           start              end  virtual                     shared   shared  private  private    " +
				"               Anon      Shmem     File      Shared   Private\n" +
				"            addr             addr     size      RSS      PSS    clean    dirty    clean    dirty    " +
				" swap  swapPSS HugePages PmdMapped PmdMapped Hugetlb  Hugetlb    Locked flags object\n" +
				"---------------- ---------------- -------- -------- -------- -------- -------- -------- -------- " +
				"-------- -------- --------- --------- --------- -------- -------- -------- ----- " +
				"------------------------------\n" +
				"                                   1048576    48404    48404        0        0        0    48404    " +
				"    9        8         0         0         0        0        0        0       TOTAL\n",
			ShowmapRow{
				Object: "[anon:dalvik-main space (region space)]", Size: known.Of(1048576), RSS: known.Of(48404),
				PSS: known.Of(48404), SharedClean: known.Of(0), SharedDirty: known.Of(0), PrivateClean: known.Of(0),
				PrivateDirty: known.Of(48404), Swap: known.Of(9), SwapPss: known.Of(8), Start: 0x0eec0000,
				End: 0x4eec0000, Flags: "rw-p",
			},
			ShowmapRow{
				Object: "TOTAL", Size: known.Of(1048576), RSS: known.Of(48404), PSS: known.Of(48404),
				SharedClean: known.Of(0), SharedDirty: known.Of(0), PrivateClean: known.Of(0),
				PrivateDirty: known.Of(48404), Swap: known.Of(9), SwapPss: known.Of(8),
			},
		},
	} {
		for _, text := range []string{
			c.text, strings.ReplaceAll(c.text, "\n", "\r\n"), strings.TrimSuffix(c.text, "\n"),
		} {
			got, err := ParseShowmap([]byte(text))
			if err != nil || got.Truncated || len(got.Warnings) > 0 || len(got.Rows) != 1 || got.Rows[0] != c.row ||
				got.Total != c.total {
				t.Errorf("%s:\n got %+v, %v\nwant %+v %+v", name, got, err, c.row, c.total)
			}
		}
		bad, err := ParseShowmap([]byte(strings.Replace(c.text, " 76 ", " ?? ", 1)))
		if strings.Contains(c.text, " 76 ") &&
			(err != nil || bad.Rows[0].RSS.Known || bad.Rows[0].PSS != c.row.PSS || len(bad.Warnings) != 1) {
			t.Errorf("%s: %+v, %v", name, bad, err)
		}
	}
	for text, want := range map[string]error{
		"":                       ErrEmpty,
		"No maps for pid 3309\n": ErrFormat,
		"showmap: failed to parse file /proc/1/smaps\n": ErrFormat,
		"-------- ----\n": ErrFormat,
	} {
		if _, err := ParseShowmap([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzShowmap(f *testing.F) {
	f.Add([]byte(" virtual            shared\n    size      RSS    clean    # object\n-------- -------- -------- " +
		"---- -------\n     288       76       72    2 /a b\n" +
		"-------- -------- -------- ---- -------\n virtual            shared\n    size      RSS    clean    # " +
		"object\n-------- -------- -------- ---- -------\n     288       76       72    2 TOTAL\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ParseShowmap(text)
		if err != nil {
			return
		}
		if got.Truncated && got.Total != (ShowmapRow{}) {
			t.Fatalf("%+v", got)
		}
		for _, r := range got.Rows {
			if r.Object == "" || len(r.Object) > maxName || r.PSS.N < 0 {
				t.Fatalf("%+v", r)
			}
		}
		if len(text) == 0 {
			return
		}
		at := rand.New(rand.NewPCG(uint64(len(text)), 1)).IntN(len(text))
		part, err := ParseShowmap(text[:at])
		if err != nil {
			return
		}
		for i, r := range part.Rows {
			if r != got.Rows[i] {
				t.Fatalf("truncated at %d: row %d is %+v, in the whole text %+v", at, i, r, got.Rows[i])
			}
		}
	})
}
