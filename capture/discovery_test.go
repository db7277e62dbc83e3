package capture

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/shelltest"
)

// row is one process on a simulated phone.
type row struct {
	pid, parent, uid, start int
	name                    string
}

// table returns a device that responds to the commands of FindProcesses.
func table(rows []row, uuids bool) *shelltest.Device {
	return &shelltest.Device{Run: func(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
		var b strings.Builder
		i := strings.Index(command, "@")
		marker := command[i : i+13]
		end := ""
		if uuids {
			end = "0f8fad5b-d9cb-469f-a165-70867728950e\n"
		}
		each := strings.HasPrefix(command, "for f in")
		if !each {
			fmt.Fprintf(&b, "\n%s files\n", marker)
		}
		for _, r := range rows {
			stat := fmt.Sprintf("%d (x) S %d%s %d 0\n", r.pid, r.parent, strings.Repeat(" 1", 17), r.start)
			status := fmt.Sprintf("Name:\tx\nPid:\t%d\nUid:\t%d\t0\t0\t0\n", r.pid, r.uid)
			if each {
				fmt.Fprintf(&b, "\n%[1]s %[2]d\n%[3]s\x00\n%[1]s %[2]d.id\n%[4]s%[5]s", marker, r.pid, r.name, stat,
					status)
			} else {
				b.WriteString(stat + end + status + end + r.name + "\x00" + end)
			}
		}
		if !each {
			fmt.Fprintf(&b, "\n%s total\n%d\n", marker, len(rows))
		}
		fmt.Fprintf(&b, "\n%s end\n", marker)
		_, err := io.WriteString(stdout, b.String())
		return 0, err
	}}
}

// All processes with the same name are found; a child is recognized by its
// parent process, whatever the order of the pids.
func TestTwinsAndChildren(t *testing.T) {
	rows := []row{
		{4321, 800, 10123, 900, "com.shop"},
		{4100, 1, 10999, 200, "com.shop"},       // another app with the same process name
		{300, 4321, 10123, 950, "com.shop"},     // forked; pids have wrapped around
		{301, 300, 10123, 960, "com.shop"},      // forked by the previous process
		{302, 4321, 10124, 970, "com.shop"},     // an isolated process is not a fork
		{303, 4321, 10123, 980, "com.shop:two"}, // has its own name
		{5000, 800, 10123, 990, "com.shop"},     // started while the first was still running
	}
	for _, uuids := range []bool{true, false} {
		found, err := FindProcesses(t.Context(), table(rows, uuids), []Pattern{"com.shop*"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range found.Processes {
			got = append(got, fmt.Sprintf("%s %d", p.Name, p.PID))
		}
		for _, p := range found.Children {
			got = append(got, fmt.Sprintf("child %d", p.PID))
		}
		want := "com.shop 4100, com.shop 4321, com.shop 302, com.shop 5000, com.shop:two 303, child 300, child 301"
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("found %s\nwant  %s", text, want)
		}
	}
}

// A process cannot hide, move or rename another process through its own name or
// through separators in its files.
func TestForgedSeparators(t *testing.T) {
	const end = "0f8fad5b-d9cb-469f-a165-70867728950e\n"
	for _, name := range []string{
		"com.evil" + end, end + end + end, "com.evil\n" + end + "4321 (x) S 1\n" + end + "Uid:\t0\n" + end + "com.shop",
	} {
		rows := []row{{100, 1, 10666, 5, name}, {4321, 800, 10123, 900, "com.shop"}, {999, 1, 10666, 6, name}}
		found, err := FindProcesses(t.Context(), table(rows, true), []Pattern{"com.shop"})
		if err != nil || len(found.Processes) != 1 ||
			found.Processes[0] != (Process{Name: "com.shop", UID: 10123, PID: 4321, Start: 900}) {
			t.Errorf("%q: %+v, %v", name, found, err)
		}
	}
}

// Names in any script and names with spaces are read; unprintable names are
// counted.
func TestNamesBeyondASCII(t *testing.T) {
	names := []string{
		"com.shop", "com.shop worker 1", "com.shop:größe", "com.shop:中文", "com.shop:наш", "com.shop:(x)[1]",
		"com.shop\x1b[2J", "com.shop\u202e", "com.shop\xff", "com.shop#2", "com.shop" + strings.Repeat("x", 300),
	}
	var rows []row
	for i, name := range names {
		rows = append(rows, row{100 + i, 1, 10100 + i, i + 1, name})
	}
	found, err := FindProcesses(t.Context(), table(rows, true), []Pattern{"com.shop*"})
	if err != nil || len(found.Processes) != 6 || found.Unnamed != 5 {
		t.Errorf("%d processes, %d unnamed: %+v, %v", len(found.Processes), found.Unnamed, found, err)
	}
	for _, name := range names[:5] {
		p, err := ParsePattern(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if found, err := FindProcesses(t.Context(), table(rows, true), []Pattern{p}); err != nil ||
			len(found.Processes) != 1 {
			t.Errorf("%q: %+v, %v", name, found, err)
		}
	}
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\n`)

// FuzzSplitFiles checks that no file of one process is assigned to another, and
// that everything between two UUIDs is in some file, whatever a device prints.
func FuzzSplitFiles(f *testing.F) {
	const end = "0f8fad5b-d9cb-469f-a165-70867728950e\n"
	f.Add([]byte("1 (x) S"+end+"Name:"+end+"com.x\x00"+end), []byte("1\n"))
	f.Add([]byte(end+end+end+end), []byte("1"))
	f.Add([]byte{}, []byte("0"))
	f.Fuzz(func(t *testing.T, text, total []byte) {
		files, ok := splitFiles(text, total)
		if !ok {
			return
		}
		n := 0
		for _, file := range files {
			for _, part := range [][]byte{file.stat, file.status, file.commandLine} {
				if uuid.Match(part) {
					t.Errorf("%q contains a UUID", part)
				}
				n += len(part) + len(end)
			}
		}
		if n > len(text) || uuid.Match(text[n:]) {
			t.Errorf("the parts contain %d of %d bytes: too many, or a UUID is missing", n, len(text))
		}
	})
}
