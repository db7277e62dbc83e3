package androidsim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
)

// bench is a phone behind an adb server, and all the faults that it can have.
type bench struct {
	phone *Phone
	dial  func(context.Context) (net.Conn, error)
	// serial is empty if there is only one device.
	serial string
	faults []Fault
}

// errNoStatus means that the stream ended before the exit status.
var errNoStatus = errors.New("no exit status")

// benchTime is the Options.Scale of the phones in these tests: 100 device
// seconds pass in one real second.
const benchTime = 100

// inMemory returns a phone behind an in-memory adb server, for synctest
// bubbles. repertoire_real_test.go runs the same tests behind the real adb
// server.
func inMemory(t *testing.T) *bench {
	p, line := pair(Options{Scale: benchTime}), new(adbd.Line)
	s := adbd.NewServer(p)
	s.Wire = line.Wire
	t.Cleanup(func() { s.Close() })
	return &bench{p, s.Dial, p.opt.Serial, Faults(p, s, line)}
}

// state returns the state that the adb server reports.
func (b *bench) state() string {
	conn, err := b.ask(soon, "host:devices")
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	list, _ := io.ReadAll(conn)
	for line := range strings.Lines(string(list[min(4, len(list)):])) {
		if serial, state, _ := strings.Cut(strings.TrimSpace(line), "\t"); serial == b.serial {
			return state
		}
	}
	return ""
}

// open opens a service of the phone; the caller must close it.
func (b *bench) open(limit time.Duration, service string) (net.Conn, error) {
	return b.ask(limit, "host:transport:"+b.serial, service)
}

// ask sends requests over one connection and returns it if all of them are
// accepted; if one is refused, it returns an error.
func (b *bench) ask(limit time.Duration, requests ...string) (net.Conn, error) {
	conn, err := b.dial(context.Background())
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(limit))
	for _, request := range requests {
		fmt.Fprintf(conn, "%04x%s", len(request), request)
		status := make([]byte, 4)
		if _, err := io.ReadFull(conn, status); err != nil || string(status) != "OKAY" {
			conn.Close()
			return nil, fmt.Errorf("%s: %q, %v", request, status, err)
		}
	}
	return conn, nil
}

// maxAnswer bounds the output of one command in these tests, in bytes.
const maxAnswer = 1 << 20

// shell runs a command over the shell protocol, like a host.
func (b *bench) shell(limit time.Duration, command string) (a answer, err error) {
	conn, err := b.open(limit, "shell,v2,raw:"+command)
	if err != nil {
		return answer{}, err
	}
	defer conn.Close()
	for len(a.out)+len(a.err) < maxAnswer {
		var head [5]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return a, fmt.Errorf("%w: %w", errNoStatus, err)
		}
		data, err := io.ReadAll(io.LimitReader(conn, int64(min(binary.LittleEndian.Uint32(head[1:]), maxAnswer))))
		if err != nil {
			return a, fmt.Errorf("%w: %w", errNoStatus, err)
		}
		switch head[0] {
		case 1:
			a.out += string(data)
		case 2:
			a.err += string(data)
		case 3:
			if len(data) == 1 {
				a.exit = int(data[0])
				return a, nil
			}
		}
	}
	return a, errors.New("the output is too long")
}

const soon = 10 * time.Second

// hundred is a command that prints a hundred lines of three bytes.
const hundred = "for i in 0 1 2 3 4 5 6 7 8 9; do for j in 0 1 2 3 4 5 6 7 8 9; do echo $i$j; done; done"

var sampleText = regexp.MustCompile(`^(\d+)\.\d\d \d+\.\d\d\n(?s:.*)\nPss: +(\d+) kB\n`)

// sample reads the clock and the memory in one command, like leakgate's fast
// channel.
func (b *bench) sample(limit time.Duration) (up, pss int64, err error) {
	a, err := b.shell(limit, "cat /proc/uptime; cat /proc/$(pidof com.shop)/smaps_rollup")
	if err != nil {
		return 0, 0, err
	}
	found := sampleText.FindStringSubmatch(a.out)
	if found == nil || a.exit != 0 {
		return 0, 0, fmt.Errorf("no sample: %+v", a)
	}
	up, _ = strconv.ParseInt(found[1], 10, 64)
	pss, _ = strconv.ParseInt(found[2], 10, 64)
	return up, pss, nil
}

// portrait returns the properties of the phone that must be the same before and
// after a fault.
func (b *bench) portrait() string {
	a, err := b.shell(soon, "id; getprop; df /data; ls /dev; ls /proc/$(pidof com.shop); "+
		"grep -o '^Pss:' /proc/$(pidof com.shop)/smaps_rollup; grep -c . /proc/uptime; dumpsys meminfo com.shop | "+
		"grep -c TOTAL; cat /system/build.prop")
	names, nerr := b.shell(soon, "ps -A -o NAME") // sorted by pid, and pids differ between calls
	lines := strings.Split(names.out, "\n")
	slices.Sort(lines)
	wall, werr := b.shell(soon, "date +%s")
	at, _ := strconv.ParseInt(strings.TrimSpace(wall.out), 10, 64)
	// The clock of a scaled phone runs fast.
	late := b.phone.wall().Sub(time.Unix(at, 0))
	return fmt.Sprintf("%s %+v %v %v %v %v clock %v", b.state(), a, err, lines, nerr, werr, late.Abs() < time.Hour &&
		b.phone.skew.Load() == 0)
}

func (b *bench) become(t *testing.T, want string) {
	t.Helper()
	got := ""
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got = b.portrait(); got == want {
			return
		}
	}
	t.Errorf("the fault changed the phone permanently:\n%s\nwant\n%s", got, want)
}

// seen maps each fault to a check for its effect through adb, except for faults
// that silence the phone.
var seen = map[string]func(b *bench) bool{
	"output corrupt, status lost": func(b *bench) bool {
		a, err := b.shell(soon, hundred)
		return errors.Is(err, errNoStatus) && len(a.out) == 100
	},
	"output corrupt, status 0": func(b *bench) bool {
		a, err := b.shell(soon, hundred+"; exit 3")
		return err == nil && len(a.out) == 100 && a.exit == 0
	},
	"output garbled": func(b *bench) bool {
		a, err := b.shell(soon, hundred)
		return err == nil && len(a.out) == 300 &&
			a.out[:60] == "00\n01\n02\n03\n04\n05\n06\n07\n08\n09\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n" &&
			a.out[60] != '2'
	},
	"no smaps_rollup":     failing("No such file or directory"),
	"smaps_rollup denied": failing("Permission denied"),
	"smaps_rollup empty": func(b *bench) bool {
		a, err := b.shell(soon, "grep -c . /proc/$(pidof com.shop)/smaps_rollup")
		return err == nil && a.out == "0\n"
	},
	"dumpsys times out": func(b *bench) bool {
		a, err := b.shell(soon, "dumpsys -t 2 meminfo com.shop")
		return err == nil && strings.Contains(a.out, "*** SERVICE 'meminfo' DUMP TIMEOUT (2000ms) EXPIRED ***")
	},
	"dumpsys hangs": func(b *bench) bool {
		_, err := b.shell(300*time.Millisecond, "dumpsys -t 1 meminfo com.shop")
		return errors.Is(err, errNoStatus)
	},
	"system_server crashes": func(b *bench) bool {
		a, err := b.shell(soon, "dumpsys meminfo com.shop")
		return err == nil && a.err == "Can't find service: meminfo\n"
	},
	"clock steps": func(b *bench) bool { return clockBehind(b) > 24*time.Hour },
	"clock far off": func(b *bench) bool {
		return clockBehind(b) > 49*365*24*time.Hour
	},
	"disk full": func(b *bench) bool {
		a, err := b.shell(soon, "echo x >/data/local/tmp/x; df /data")
		return err == nil && strings.Contains(a.err, "No space left on device") &&
			strings.Contains(a.out, " 0 100% /data\n") && push(b) != nil
	},
	"root lost": func(b *bench) bool {
		a, err := b.shell(soon, "id -u; cat /proc/1/smaps_rollup")
		return err == nil && a.out == "2000\n" && strings.Contains(a.err, "Permission denied")
	},
	"connection dropped": func(*bench) bool { return true },
	"line interrupted": func(b *bench) bool {
		a, err := b.shell(soon, "for k in 0 1 2 3 4; do "+hundred+"; done")
		return errors.Is(err, errNoStatus) && len(a.out) < 1000
	},
	"line interrupted when a stream opens": func(b *bench) bool {
		_, first := b.shell(soon, "true")
		_, second := b.shell(soon, "true")
		return first == nil && second != nil
	},
	"line interrupted repeatedly": func(b *bench) bool {
		a, err := b.shell(soon, "cat /proc/$(pidof com.shop)/smaps")
		return errors.Is(err, errNoStatus) && len(a.out) <= 20_000
	},
	"line slow": func(b *bench) bool {
		began := time.Now()
		_, err := b.shell(soon, "true")
		return err == nil && time.Since(began) >= 100*time.Millisecond
	},
	"line garbled": func(b *bench) bool {
		a, err := b.shell(soon, "for k in 0 1 2 3 4 5 6 7 8 9; do "+hundred+"; "+hundred+"; done")
		return err != nil || len(a.out) != 6000 || a.out[:300] != a.out[5700:]
	},
	"line with garbage": func(b *bench) bool {
		_, err := b.shell(soon, "true")
		return err != nil
	},
	"process dies while it is sampled": func(b *bench) bool {
		a, err := b.shell(soon, "d=/proc/$(pidof com.shop); cat $d/stat $d/statm; ls $d")
		return err == nil && strings.Contains(a.err, "/statm: No such process\n") &&
			strings.Contains(a.err, ": No such file or directory\n")
	},
	"process ends while it is sampled": func(b *bench) bool {
		a, err := b.shell(soon, "d=/proc/$(pidof com.shop); cat $d/stat $d/statm; cat $d/statm; ls $d")
		return err == nil && strings.Count(a.out, "\n") == 2 &&
			strings.HasSuffix(a.err, ": No such file or directory\n") && strings.Count(a.err, "\n") == 1
	},
	"pid reused": func(b *bench) bool {
		a, err := b.shell(soon, "pidof logcat; pidof com.shop")
		return err == nil && strings.Count(a.out, "\n") == 1
	},
}

func failing(text string) func(b *bench) bool {
	return func(b *bench) bool {
		a, err := b.shell(soon, "cat /proc/$(pidof com.shop)/smaps_rollup")
		return err == nil && a.out == "" && a.exit == 1 && strings.HasSuffix(a.err, "/smaps_rollup: "+text+"\n")
	}
}

func clockBehind(b *bench) time.Duration {
	a, err := b.shell(soon, "date +%s; cat /proc/uptime")
	first, _, _ := strings.Cut(a.out, "\n")
	n, nerr := strconv.ParseInt(first, 10, 64)
	if err != nil || nerr != nil {
		return 0
	}
	return time.Since(time.Unix(n, 0))
}

// push sends a file over the sync protocol and returns the phone's error.
func push(b *bench) error {
	conn, err := b.open(soon, "sync:")
	if err != nil {
		return nil
	}
	chunk := func(id string, data string) {
		conn.Write(append(binary.LittleEndian.AppendUint32([]byte(id), uint32(len(data))), data...))
	}
	// The response may arrive and the connection may end before everything is
	// written.
	var writing sync.WaitGroup
	writing.Go(func() {
		chunk("SEND", "/data/local/tmp/pushed,33188")
		chunk("DATA", "content")
		conn.Write([]byte("DONE\x00\x00\x00\x00"))
	})
	defer writing.Wait()
	defer conn.Close()
	head := make([]byte, 8)
	if _, err := io.ReadFull(conn, head); err != nil || string(head[:4]) != "FAIL" {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(conn, int64(binary.LittleEndian.Uint32(head[4:]))))
	return errors.New(string(text))
}

// once lists the faults that happen only once, so they are checked once.
var once = []string{
	"line with garbage", "line interrupted", "line interrupted when a stream opens", "process dies while it is sampled",
	"process ends while it is sampled",
}

// showing repeats a check until it finds the effect of the fault, and reports
// whether it did; a fault that happens only once is checked once.
func showing(b *bench, name string) bool {
	look := seen[name]
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if look(b) {
			return true
		}
		if slices.Contains(once, name) {
			return false
		}
	}
	return false
}

// Each fault takes effect through adb; ending it restores the phone.
func TestFaultsThroughADB(t *testing.T) {
	names := map[string]bool{}
	for i := range 100 {
		more := false
		synctest.Test(t, func(t *testing.T) {
			b := inMemory(t)
			if more = i < len(b.faults); !more {
				return
			}
			name := b.faults[i].Name
			if names[name] {
				t.Errorf("two faults have the name %q", name)
			}
			names[name] = true
			if testFault(t, b, b.faults[i]); t.Failed() {
				t.Logf("fault %q", name)
			}
		})
		if !more || t.Failed() {
			return
		}
	}
}

func testFault(t *testing.T, b *bench, f Fault) {
	before := b.portrait()
	if _, _, err := b.sample(soon); err != nil {
		t.Fatalf("before the fault: %v", err)
	}
	end := f.Start()
	defer end()
	if f.Effect == Silences {
		if _, known := seen[f.Name]; known {
			t.Error("the fault does not silence the phone")
		}
		for range 3 {
			if up, pss, err := b.sample(150 * time.Millisecond); err == nil {
				t.Errorf("the silent phone answered %d, %d", up, pss)
			}
		}
	} else if seen[f.Name] == nil {
		t.Fatal("no check for this fault")
	} else if !showing(b, f.Name) {
		t.Error("the fault has no effect")
	}
	end()
	end()
	b.become(t, before)
	if _, _, err := b.sample(soon); err != nil {
		t.Errorf("after the fault: %v", err)
	}
	if b.phone.wrong.Load() != nil {
		t.Error("a fault remains set")
	}
}

func TestStatesThroughADB(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { testStates(t, inMemory(t)) })
}

// testStates checks what adb reports for a phone that is not online.
func testStates(t *testing.T, b *bench) {
	wait := func(state string) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); b.state() != state; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the state is %q, want %q", b.state(), state)
			}
		}
	}
	for _, state := range []string{adbd.StateOffline, adbd.StateUnauthorized} {
		conn, err := b.open(soon, "shell,v2,raw:echo started; sleep 100000")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.ReadFull(conn, make([]byte, 13))
		end := b.phone.SetAdbState(state)
		if rest, err := io.ReadAll(conn); len(rest) != 0 {
			t.Errorf("%s: received %q, %v after the change", state, rest, err)
		}
		wait(state)
		end()
		wait(adbd.StateDevice)
	}

	a, _ := b.shell(soon, "cat /proc/sys/kernel/random/boot_id; echo $(pidof com.shop system_server)")
	back := b.phone.RebootFor(time.Minute) // 0.6 s
	defer back()
	wait(adbd.StateOffline)
	wait(adbd.StateDevice)
	z, err := b.shell(soon, "cat /proc/sys/kernel/random/boot_id; echo $(pidof com.shop system_server)")
	if err != nil || a.out == z.out || len(a.out) != len(z.out) {
		t.Errorf("before the reboot %q, after it %q, %v", a.out, z.out, err)
	}

	// A phone before Android 7 sends no exit status and refuses the shell
	// protocol.
	defer b.phone.OldShell()()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := b.open(soon, "shell:echo out; echo err >&2; exit 3")
		if err == nil {
			out, _ := io.ReadAll(conn)
			conn.Close()
			if string(out) == "out\r\nerr\r\n" {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the old shell returned %v", err)
		}
	}
	if _, err := b.shell(soon, "true"); err == nil {
		t.Error("the old shell accepts the shell protocol")
	}
}

func TestEndlessThroughADB(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { testEndless(t, inMemory(t)) })
}

// testEndless reads a phone's endless outputs and one long line.
func testEndless(t *testing.T, b *bench) {
	const size = 100 << 20
	conn, err := b.open(time.Minute, "exec:cat /dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.CopyN(io.Discard, conn, size); n != size || err != nil {
		t.Errorf("received %d bytes, %v", n, err)
	}
	conn.Close()
	for _, service := range []string{
		"exec:cat /dev/zero", "shell,v2,raw:cat /dev/zero", "shell:cat /dev/zero",
	} {
		conn, err := b.open(soon, service)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.CopyN(io.Discard, conn, 3<<20); err != nil {
			t.Errorf("%s: %d bytes, %v", service, n, err)
		}
		conn.Close()
	}
	for deadline := time.Now().Add(soon); ; time.Sleep(10 * time.Millisecond) {
		b.phone.mu.Lock()
		left := len(b.phone.tasks)
		b.phone.mu.Unlock()
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d commands are still running although nobody reads their output", left)
		}
	}
}

// Several random faults occur at once while a host samples, for the race
// detector. At the end, the phone is in its original state.
func TestFaultsAtRandom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inMemory(t)
		before := b.portrait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 1))
				for ctx.Err() == nil {
					f := b.faults[r.IntN(len(b.faults))]
					end := f.Start()
					time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
					end()
				}
			})
			wg.Go(func() {
				for ctx.Err() == nil {
					b.sample(50 * time.Millisecond)
					b.phone.Memory("com.shop")
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		b.become(t, before)
	})
}
