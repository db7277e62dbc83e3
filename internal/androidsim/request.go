package androidsim

import (
	"io"
	"slices"
	"sync"

	"github.com/leakgate/leakgate/internal/adbd"
)

// RequestKind is what adb asks of the phone.
type RequestKind uint8

// The kinds of requests.
const (
	// CommandRequest is a command line.
	CommandRequest RequestKind = iota
	// StatRequest, ListRequest, PullRequest and PushRequest are those of the sync protocol
	// about a file.
	StatRequest
	ListRequest
	PullRequest
	PushRequest
	// ReadRequest is a piece of a pull that has been read from the file.
	ReadRequest
)

// Request is one thing that adb asks of the phone.
type Request struct {
	Kind RequestKind
	// Text is the command line or the path.
	Text string
	// Bytes are those of the pull so far.
	Bytes int64
}

// OnRequest calls f at each request, before the phone answers, until it ends. f may
// start and end faults and unplug a Line; it must return soon. There can be several
// requests at the same time.
func (p *Phone) OnRequest(f func(Request)) (end func()) { return p.hold(&fault{asked: f}) }

// AtRequest starts a fault, once, at request number n from now on, counted from 1, of
// those that count; nil counts all but ReadRequest. That request already meets the
// fault. hit tells whether it has come so far, and end ends the fault too. A test can
// so unplug the phone at each step of what it watches:
//
//	hit, end := phone.AtRequest(n, nil, line.Unplug)
func (p *Phone) AtRequest(n int, counts func(Request) bool, start func() (end func())) (hit func() bool, end func()) {
	var (
		mu          sync.Mutex
		left        = max(n, 1)
		begun, gone bool
		over        = func() {}
	)
	release := p.OnRequest(func(r Request) {
		if counts == nil && r.Kind == ReadRequest || counts != nil && !counts(r) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 && !gone {
			begun, over = true, start()
		}
	})
	hit = func() bool {
		mu.Lock()
		defer mu.Unlock()
		return begun
	}
	return hit, func() {
		release()
		mu.Lock()
		defer mu.Unlock()
		gone = true
		over()
	}
}

// answers tells those who wait for requests of one; it is false if the phone can no
// longer answer because of it.
func (p *Phone) answers(r Request) bool {
	faults := p.faults()
	if !slices.ContainsFunc(faults, func(f *fault) bool { return f.asked != nil }) {
		return true
	}
	before := p.serves()
	for _, f := range faults {
		if f.asked != nil {
			f.asked(r)
		}
	}
	return !before || p.serves()
}

// serves tells whether adb lets anybody talk to the phone.
func (p *Phone) serves() bool {
	state := p.Identity().State
	return state != adbd.StateOffline && state != adbd.StateUnauthorized
}

// pull is a file while it is pulled.
type pull struct {
	io.Reader
	phone *Phone
	name  string
	bytes int64
}

func (r *pull) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if r.bytes += int64(n); n > 0 && !r.phone.answers(Request{ReadRequest, r.name, r.bytes}) {
		return 0, io.ErrClosedPipe
	}
	return n, err
}

// Close is for Phone.Open.
func (r *pull) Close() error { return nil }
