package state

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
)

func logDir(t testing.TB) Dir {
	t.Helper()
	dir := Dir(t.TempDir())
	if err := errors.Join(os.Mkdir(dir.Log(), 0o755), dir.MakeLog()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestLog(t *testing.T) {
	dir := logDir(t)
	at := time.UnixMilli(1700000000123)
	want := []androidtext.LogEntry{
		{Time: at, Buffer: "main", PID: 1, TID: 2, Priority: 'I', Tag: "tag", Text: "a\tb"},
		{Time: at, Buffer: "crash", PID: 3, TID: 4, Priority: 'E'},
	}
	from := int64(0)
	for i, e := range want {
		if err := dir.AppendLog(e); err != nil {
			t.Fatal(err)
		}
		got, next, err := dir.ReadLog(from)
		if err != nil || len(got) != 1 || got[0] != want[i] || next <= from {
			t.Errorf("%v, %d, %v; want %v", got, next, err, want[i])
		}
		from = next
	}
	if err := dir.AppendLog(androidtext.LogEntry{Time: at, Priority: 'I', Tag: "lines", Text: "one\ntwo"}); err != nil {
		t.Fatal(err)
	}
	if got, _, err := dir.ReadLog(from); err != nil || len(got) != 2 || got[1].Text != "two" {
		t.Errorf("%v, %v", got, err)
	}
	if err := dir.ClearLog(); err != nil {
		t.Fatal(err)
	}
	if err := dir.AppendLog(want[0]); err != nil {
		t.Fatal(err)
	}
	if got, _, err := dir.ReadLog(from); err != nil || len(got) != 1 || got[0] != want[0] {
		t.Errorf("log after Clear: %v, %v", got, err)
	}
	if _, _, err := Dir(t.TempDir()).ReadLog(0); err == nil {
		t.Error("reading a missing log succeeded")
	}
}

func TestLogIsBounded(t *testing.T) {
	dir := logDir(t)
	long := strings.Repeat("x", logLimit/3)
	for range 5 {
		if err := dir.AppendLog(
			androidtext.LogEntry{Time: time.Now(), Priority: 'I', Tag: "t", Text: long}); err != nil {
			t.Fatal(err)
		}
	}
	if got, next, err := dir.ReadLog(0); err != nil || len(got) != 2 || next > logLimit {
		t.Errorf("%d entries in %d bytes, %v", len(got), next, err)
	}
}

// FuzzReadLog checks that, whatever the log contains, appending the entries
// that were read yields the same entries again, and that incomplete lines are
// not read.
func FuzzReadLog(f *testing.F) {
	f.Add("1\tmain\t2\t3\tI\ttag\ttext\n")
	f.Add("1\tmain\t2\t3\tI\ttag\ttext")
	f.Add("\n\t\t\t\t\t\t\n-9\t\t-9\t-9\tX\t\t\r\n")
	f.Add("-9\t\t-9\t-9\tF\t\t\r\n-9\t\t-9\t-9\t\xd8\t\t\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		dir := logDir(t)
		if err := os.WriteFile(dir.logFile(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		list, next, err := dir.ReadLog(0)
		if err != nil || len(list) > strings.Count(text, "\n") || next != int64(strings.LastIndex(text, "\n")+1) {
			t.Fatalf("%d entries, %d bytes, %v", len(list), next, err)
		}
		if err := dir.ClearLog(); err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if err := dir.AppendLog(e); err != nil {
				t.Fatal(err)
			}
		}
		again, _, err := dir.ReadLog(0)
		if err != nil || len(again) != len(list) {
			t.Fatalf("second read: got %d entries and error %v, want %d entries", len(again), err, len(list))
		}
		for i := range list {
			if !again[i].Time.Equal(list[i].Time) || again[i].Text != list[i].Text || again[i].Tag != list[i].Tag ||
				again[i].Buffer != list[i].Buffer {
				t.Errorf("%+v became %+v", list[i], again[i])
			}
		}
	})
}
