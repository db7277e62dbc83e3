package androidsim

import (
	"io"
	"slices"
	"sync"

	"github.com/leakgate/leakgate/internal/adbd"
)

// RequestKind is the kind of an adb request.
type RequestKind uint8

// The kinds of requests.
const (
	// CommandRequest is the execution of a command line.
	CommandRequest RequestKind = iota
	// StatRequest, ListRequest, PullRequest and PushRequest are sync protocol
	// requests for a file.
	StatRequest
	ListRequest
	PullRequest
	PushRequest
	// ReadRequest is a chunk of a pull that was just read from the file.
	ReadRequest
)

// Request is one adb request.
type Request struct {
	Kind RequestKind
	// Text is the command line or the path.
	Text string
	// Bytes is the number of bytes pulled so far.
	Bytes int64
}

// OnRequest calls f for each request, before the phone answers, until end is
// called. f may start and end faults and unplug a Line; it must return quickly.
// Requests may be concurrent.
func (p *Phone) OnRequest(f func(Request)) (end func()) { return p.hold(&fault{asked: f}) }

// AtRequest starts a fault once, at the n-th request from now on, counting from
// 1. counts selects the requests to count; nil selects all except ReadRequest.
// The fault already affects the n-th request. hit reports whether that request
// was made; end also ends the fault. This way a test can unplug the phone at
// each step of an operation:
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

// answers passes a request to the functions set by OnRequest; it returns false
// if their actions prevent the phone from answering.
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

func (p *Phone) serves() bool {
	state := p.Identity().State
	return state != adbd.StateOffline && state != adbd.StateUnauthorized
}

// pull reads a file that a client pulls, and reports each chunk as a
// ReadRequest.
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

// Close implements io.Closer for the file that Phone.Open returns.
func (r *pull) Close() error { return nil }
