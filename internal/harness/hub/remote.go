package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/reporters/record"
)

// Remote is the hub of a suite that runs in another process.
type Remote struct {
	http http.Client

	mu  sync.Mutex
	dir string
}

// NewRemote returns a client of the hub that listens on a socket. It connects
// when it is first used.
func NewRemote(path string) *Remote {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return &Remote{http: http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// maxReply is the maximum size of a response, in bytes.
const maxReply = 64 << 20

// errNoHub is returned if the first process does not respond correctly, for
// example because it has exited.
var errNoHub = errors.New("the first process of the suite, which owns the device, does not respond")

// post sends a request and returns the body of the response.
func (c *Remote) post(ctx context.Context, name string, q any) (io.ReadCloser, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://hub/"+name, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%w: %w", errNoHub, err)
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close() // the body is not read
		return nil, fmt.Errorf("%w correctly: %s", errNoHub, answer.Status)
	}
	return answer.Body, nil
}

// ask sends a request and decodes the response.
func ask[A any](ctx context.Context, c *Remote, name string, q any) (A, error) {
	var out struct {
		Value A
		Error string
	}
	body, err := c.post(ctx, name, q)
	if err != nil {
		return out.Value, err
	}
	defer body.Close()
	if err := json.NewDecoder(io.LimitReader(body, maxReply)).Decode(&out); err != nil {
		if ctx.Err() != nil {
			return out.Value, context.Cause(ctx)
		}
		return out.Value, fmt.Errorf("%w: %w", errNoHub, err)
	}
	if out.Error != "" {
		return out.Value, errors.New(out.Error)
	}
	return out.Value, nil
}

// Start works like [Hub.Start].
func (c *Remote) Start(ctx context.Context, again bool) error {
	dir, err := ask[string](ctx, c, "start", again)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dir = dir
	}
	return err
}

// Dir returns the run directory as of the latest start, or "" before any start.
func (c *Remote) Dir() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dir
}

// Open works like [Hub.Open].
func (c *Remote) Open(ctx context.Context, r OpenRequest) (Opened, error) {
	return ask[Opened](ctx, c, "open", r)
}

// Recount works like [Hub.Recount].
func (c *Remote) Recount(ctx context.Context, number int) error {
	_, err := ask[struct{}](ctx, c, "recount", number)
	return err
}

// Collect works like [Hub.Collect].
func (c *Remote) Collect(ctx context.Context, r CollectRequest) error {
	_, err := ask[struct{}](ctx, c, "collect", r)
	return err
}

// Close works like [Hub.Close].
func (c *Remote) Close(ctx context.Context, r CloseRequest) (record.Check, error) {
	return ask[record.Check](ctx, c, "close", r)
}

// Now works like [Hub.Now].
func (c *Remote) Now(ctx context.Context, process string) ([]Standing, error) {
	return ask[[]Standing](ctx, c, "now", process)
}

// Snapshot works like [Hub.Snapshot].
func (c *Remote) Snapshot(ctx context.Context, r ProcessRequest) (monitor.ProcessSnapshot, error) {
	return ask[monitor.ProcessSnapshot](ctx, c, "snapshot", r)
}

// Settle works like [Hub.Settle].
func (c *Remote) Settle(ctx context.Context, r ProcessRequest) (bool, error) {
	return ask[bool](ctx, c, "settle", r)
}

// Dump works like [Hub.Dump].
func (c *Remote) Dump(ctx context.Context, r ProcessRequest) (record.Diagnosis, error) {
	return ask[record.Diagnosis](ctx, c, "dump", r)
}

// Discover works like [Hub.Discover].
func (c *Remote) Discover(ctx context.Context) error {
	_, err := ask[struct{}](ctx, c, "look", struct{}{})
	return err
}

// Death works like [Hub.Death].
func (c *Remote) Death(ctx context.Context, pid int) (string, error) {
	return ask[string](ctx, c, "death", pid)
}

// Exec works like [Hub.Exec].
func (c *Remote) Exec(ctx context.Context, r ExecRequest) (Executed, error) {
	return ask[Executed](ctx, c, "exec", r)
}

// Stress works like [Hub.Stress].
func (c *Remote) Stress(ctx context.Context, r StressRequest) (Stressed, error) {
	return ask[Stressed](ctx, c, "stress", r)
}

// Turn works like [Hub.Turn].
func (c *Remote) Turn(ctx context.Context, spec string, waiting func(holder string)) (Lent, error) {
	held, release := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, release)
	body, err := c.post(held, "turn", spec)
	if err != nil {
		release()
		return nil, err
	}
	lines := json.NewDecoder(body)
	for {
		var l turnLine
		err := lines.Decode(&l)
		switch {
		case err == nil && l.Granted:
			stop() // the turn outlives the request to wait
			return &remoteTurn{hub: c, number: l.Turn, device: l.Device, release: release, body: body}, nil
		case err == nil && l.Error == "":
			waiting(l.Holder)
			continue
		case err == nil:
			err = errors.New(l.Error)
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		default:
			err = fmt.Errorf("%w: %w", errNoHub, err)
		}
		release()
		_ = body.Close() // the rest of the body is not read
		return nil, err
	}
}

// remoteTurn is a turn that lasts as long as its request.
type remoteTurn struct {
	hub     *Remote
	number  int
	release context.CancelFunc
	body    io.Closer

	mu     sync.Mutex
	device string
}

// serialTime is the wall-clock time within which the hub must return the device
// of a turn.
const serialTime = 5 * time.Second

func (t *remoteTurn) Serial() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.device == "" { // the run may have started in the meantime
		ctx, done := context.WithTimeout(context.Background(), serialTime)
		defer done()
		t.device, _ = ask[string](ctx, t.hub, "serial", t.number)
	}
	return t.device
}

func (t *remoteTurn) Release() {
	t.release()
	_ = t.body.Close() // the rest of the body is not read
}
