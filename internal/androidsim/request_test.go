package androidsim

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
)

// journey performs a host's typical requests (commands, and a pull over the
// sync protocol) and returns how many steps succeeded.
func (b *bench) journey() (steps int, err error) {
	for _, command := range []string{"cat /proc/uptime", "am dumpheap com.shop " + dumpFile, "stat -c %s " + dumpFile} {
		if _, err := b.shell(soon, command); err != nil {
			return steps, err
		}
		steps++
	}
	conn, err := b.open(soon, "sync:")
	if err != nil {
		return steps, err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "RECV%s%s", []byte{byte(len(dumpFile)), 0, 0, 0}, dumpFile)
	var head [8]byte
	for {
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return steps, err
		}
		if string(head[:4]) != "DATA" {
			break
		}
		n := int64(head[4]) | int64(head[5])<<8 | int64(head[6])<<16 | int64(head[7])<<24
		if _, err := io.CopyN(io.Discard, conn, n); err != nil {
			return steps, err
		}
	}
	if string(head[:4]) != "DONE" {
		return steps, fmt.Errorf("pull: %q", head)
	}
	steps++
	_, err = b.shell(soon, "rm "+dumpFile)
	if err == nil {
		steps++
	}
	return steps, err
}

// TestUnplugAtEachRequest checks that the journey ends at the request during
// which the phone is unplugged, and completes once the phone is plugged in
// again.
func TestUnplugAtEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, line := pair(Options{Scale: benchTime}), new(adbd.Line)
		s := adbd.NewServer(p)
		s.Wire = line.Wire
		t.Cleanup(func() { s.Close() })
		b := &bench{phone: p, dial: s.Dial, serial: p.opt.Serial}
		whole := func() {
			t.Helper()
			if n, err := b.journey(); n != 5 || err != nil {
				t.Fatalf("%d steps: %v", n, err)
			}
		}
		// A command that the phone has read continues without a connection: an
		// rm from this journey could remove the next journey's dump.
		settle := func() { time.Sleep(time.Minute) }
		whole()
		for name, unplug := range map[string]func() func(){
			"line": line.Unplug, "offline": func() func() { return p.SetAdbState(adbd.StateOffline) },
		} {
			n := 1
			for ; ; n++ {
				hit, end := p.AtRequest(n, nil, unplug)
				steps, err := b.journey()
				if !hit() {
					end()
					if steps != 5 || err != nil {
						t.Errorf("%s: without a fault %d steps, %v", name, steps, err)
					}
					break
				}
				if err == nil || steps >= n {
					t.Errorf("%s at request %d: %d steps succeeded, %v", name, n, steps, err)
				}
				end()
				settle()
				whole()
			}
			if n != 6 {
				t.Errorf("%s: %d requests", name, n-1)
			}
		}
		// This request is in the middle of the pull.
		hit, end := p.AtRequest(1, func(r Request) bool { return r.Kind == ReadRequest && r.Bytes > 1<<20 },
			line.Unplug)
		if steps, err := b.journey(); steps != 3 || err == nil || !hit() {
			t.Errorf("unplugged during the pull: %d steps succeeded, %v", steps, err)
		}
		end()
		end()
		settle()
		whole()
		if p.wrong.Load() != nil {
			t.Error("a fault remains set")
		}
	})
}

// A fault never starts if end is called before its request arrives.
func TestAtRequestEnds(t *testing.T) {
	p := pair(Options{})
	begun := 0
	start := func() func() { begun++; return func() { begun-- } }
	hit, end := p.AtRequest(2, nil, start)
	ask(t, p, "true")
	end()
	ask(t, p, "true")
	if hit() || begun != 0 {
		t.Errorf("begun %d times", begun)
	}
	hit, end = p.AtRequest(0,
		func(r Request) bool { return r.Kind == CommandRequest && strings.HasPrefix(r.Text, "dumpsys") }, start)
	ask(t, p, "true")
	if hit() {
		t.Error("a command that does not match is counted")
	}
	ask(t, p, "dumpsys -l")
	ask(t, p, "dumpsys -l")
	if !hit() || begun != 1 {
		t.Errorf("begun %d times", begun)
	}
	end()
	if begun != 0 {
		t.Error("the fault did not end")
	}
}
