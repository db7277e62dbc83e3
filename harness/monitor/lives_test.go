package monitor

import (
	"slices"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/diagnose"
	"github.com/leakgate/leakgate/internal/harness/ledger"
)

// The log of a diagnosis includes lines of all known processes of the app,
// running and ended. It excludes those of processes from before a reboot and of
// other apps or users.
func TestLivesOfTheApp(t *testing.T) {
	process := func(name string, user, pid int) capture.Process {
		return capture.Process{Name: name, User: user, PID: pid, Start: uint64(pid)}
	}
	running := func(p capture.Process, present bool) *subject {
		return &subject{Account: &ledger.Account{Process: p}, present: present}
	}
	ended := func(p capture.Process, boots int) pastProcess {
		return pastProcess{diagnose.KnownProcess{Process: p, Until: time.Hour}, boots}
	}
	x := running(process("com.shop", 0, 1), true)
	watched := &subjects{order: []*subject{
		x, running(process("com.shop:push", 0, 2), true), running(process("com.shop:gone", 0, 3), false),
		running(process("com.shop:push", 10, 4), true), running(process("com.bank", 0, 5), true),
	}}
	q := &deaths{port: &port{boots: 1, subjects: watched}, past: []pastProcess{
		ended(process("com.shop", 0, 6), 1), ended(process("com.shop", 0, 7), 0), ended(process("com.bank", 0, 8), 1),
		ended(x.Process, 1),
	}}
	var pids []int
	for _, p := range q.livesOfApp(x) {
		pids = append(pids, p.PID)
		if (p.Until > 0) != (p.PID == 6) {
			t.Errorf("%+v", p)
		}
	}
	if !slices.Equal(pids, []int{2, 6}) {
		t.Errorf("pids %v", pids)
	}
}
