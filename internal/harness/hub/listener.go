package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// Listener serves the other processes of a suite.
type Listener struct {
	server *http.Server
	path   string
	done   chan struct{}
}

// maxRequest is the maximum size of a request, in bytes. A request may contain
// the stacks of specs.
const maxRequest = 4 << 20

// reply is a response: a value, or an error.
type reply struct {
	Value any    `json:"value,omitempty"`
	Error string `json:"error,omitempty"`
}

// Serve listens on a socket until Close is called.
func Serve(h *Hub, path string) (*Listener, error) {
	removeDead(filepath.Dir(path))
	_ = os.Remove(path) // the socket of a suite that was killed
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for the other processes of the suite: %w", err)
	}
	mux := http.NewServeMux()
	handle(mux, "start",
		func(ctx context.Context, again bool) (string, error) { err := h.Start(ctx, again); return h.Dir(), err })
	handle(mux, "open", h.Open)
	handle(mux, "recount", func(ctx context.Context, n int) (struct{}, error) { return struct{}{}, h.Recount(ctx, n) })
	handle(mux, "collect",
		func(ctx context.Context, r CollectRequest) (struct{}, error) { return struct{}{}, h.Collect(ctx, r) })
	handle(mux, "close", h.Close)
	handle(mux, "now", h.Now)
	handle(mux, "snapshot", h.Snapshot)
	handle(mux, "settle", h.Settle)
	handle(mux, "dump", h.Dump)
	handle(mux, "look", func(ctx context.Context, _ struct{}) (struct{}, error) { return struct{}{}, h.Discover(ctx) })
	handle(mux, "death", h.Death)
	handle(mux, "exec", h.Exec)
	handle(mux, "stress", h.Stress)
	handle(mux, "serial", func(_ context.Context, turn int) (string, error) { return h.turns.deviceOf(turn), nil })
	mux.HandleFunc("/turn", h.serveTurn)
	s := &Listener{
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}, path: path, done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener) // this returns when Close is called
	}()
	return s, nil
}

// deadAge is the minimum age at which a socket without a listener is assumed to
// belong to a killed suite; the owner of a newer socket may be about to listen.
const deadAge = time.Minute

// removeDead removes the sockets of suites that were killed.
func removeDead(folder string) {
	files, _ := os.ReadDir(folder) // a directory that cannot be read is left unchanged
	for _, f := range files {
		info, err := f.Info()
		if err != nil || f.Type()&fs.ModeSocket == 0 || time.Since(info.ModTime()) < deadAge {
			continue
		}
		path := filepath.Join(folder, f.Name())
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "unix", path)
		switch {
		case err == nil:
			_ = conn.Close() // the socket is in use
		case errors.Is(err, syscall.ECONNREFUSED):
			_ = os.Remove(path)
		}
	}
}

// Close stops the server and cancels its pending requests.
func (s *Listener) Close() error {
	err := s.server.Close()
	<-s.done
	if rerr := os.Remove(s.path); err == nil && !errors.Is(rerr, os.ErrNotExist) {
		err = rerr
	}
	return err
}

// handle registers the function that serves one type of request. If a client
// disconnects, its request is canceled.
func handle[Q, A any](mux *http.ServeMux, name string, do func(context.Context, Q) (A, error)) {
	mux.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
		var q Q
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a, err := do(r.Context(), q)
		out := reply{Value: a}
		if err != nil {
			out.Error = text.Printable(err.Error())
		}
		_ = json.NewEncoder(w).Encode(out) // a disconnected client needs no response
	})
}

// turnLine is one line of the response to a request for a turn. If the client
// has to wait, the first line names the current holder of the device. The last
// line names the device that the client gets.
type turnLine struct {
	Waiting bool
	Holder  string
	Granted bool
	Device  string
	Turn    int
	Error   string
}

// serveTurn lends a device for the duration of the request, so the device
// becomes free when the client process dies.
func (h *Hub) serveTurn(w http.ResponseWriter, r *http.Request) {
	var spec string
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&spec); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	tell := func(l turnLine) {
		_ = json.NewEncoder(w).Encode(l) // the request ends when the client disconnects
		_ = http.NewResponseController(w).Flush()
	}
	t, err := h.turn(r.Context(), spec, func(holder string) { tell(turnLine{Waiting: true, Holder: holder}) })
	if err != nil {
		tell(turnLine{Error: err.Error()})
		return
	}
	defer t.Release()
	tell(turnLine{Granted: true, Device: t.Serial(), Turn: t.number})
	<-r.Context().Done()
}
