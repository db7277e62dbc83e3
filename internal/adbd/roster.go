package adbd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// refusal is an error in adb's wording; it is sent to the client unchanged.
type refusal string

func (r refusal) Error() string { return string(r) }

// unauthorizedText is the error that an adb server without vendor keys returns.
const unauthorizedText = "device unauthorized.\n" +
	"This adb server's $ADB_VENDOR_KEYS is not set\n" +
	"Try 'adb kill-server' if that seems wrong.\n" +
	"Otherwise check for a confirmation dialog on your device."

// plug represents one phone while it is plugged in, from Add to Remove.
type plug struct {
	id     uint64
	phone  Phone
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	gone  bool
	conns map[io.Closer]struct{}
}

// hold registers a connection of the phone; it returns false if the phone has
// been removed.
func (p *plug) hold(c io.Closer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *plug) release(c io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// pull closes all connections of the phone and stops its commands. It closes
// the connections first, so a command that is canceled can no longer report an
// exit status.
func (p *plug) pull() {
	p.mu.Lock()
	p.gone = true
	for c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.cancel()
}

// roster holds the phones of a Server.
type roster struct {
	mu      sync.Mutex
	plugs   []*plug
	lastID  uint64
	changed chan struct{}
}

func newRoster() *roster { return &roster{changed: make(chan struct{})} }

// add plugs a phone in and removes an earlier one with the same serial.
func (r *roster) add(ctx context.Context, phone Phone) {
	ctx, cancel := context.WithCancel(ctx)
	serial := phone.Identity().Serial
	r.mu.Lock()
	old := r.take(serial)
	r.lastID++
	r.plugs = append(r.plugs,
		&plug{id: r.lastID, phone: phone, ctx: ctx, cancel: cancel, conns: make(map[io.Closer]struct{})})
	r.notify()
	r.mu.Unlock()
	for _, p := range old {
		p.pull()
	}
}

func (r *roster) remove(serial string) {
	r.mu.Lock()
	old := r.take(serial)
	r.notify()
	r.mu.Unlock()
	for _, p := range old {
		p.pull()
	}
}

// take removes the entries with the given serial from the list and returns
// them. The caller must hold the lock.
func (r *roster) take(serial string) []*plug {
	var taken, kept []*plug
	for _, p := range r.plugs {
		if p.phone.Identity().Serial == serial {
			taken = append(taken, p)
		} else {
			kept = append(kept, p)
		}
	}
	r.plugs = kept
	return taken
}

func (r *roster) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// view returns the phones and a channel that is closed when the list changes.
func (r *roster) view() ([]*plug, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.plugs), r.changed
}

func (r *roster) known(serial string) bool {
	plugs, _ := r.view()
	return slices.ContainsFunc(plugs, func(p *plug) bool { return p.phone.Identity().Serial == serial })
}

// find returns the phone that t selects, whatever its state.
func (r *roster) find(t target) (*plug, Identity, error) {
	plugs, _ := r.view()
	var (
		found *plug
		as    Identity
	)
	for _, p := range plugs {
		id := p.phone.Identity()
		if !t.means(p.id, id.Serial) {
			continue
		}
		if found != nil {
			return nil, Identity{}, refusal(ambiguous[t.kind])
		}
		found, as = p, id
	}
	if found == nil {
		return nil, Identity{}, t.missing()
	}
	return found, as, nil
}

// acquire is like find, but the phone must be usable.
func (r *roster) acquire(t target) (*plug, Identity, error) {
	p, id, err := r.find(t)
	if err != nil {
		return nil, id, err
	}
	switch id.state() {
	case StateOffline:
		return nil, id, refusal("device offline")
	case StateUnauthorized:
		return nil, id, refusal(unauthorizedText)
	}
	return p, id, nil
}

func (t target) means(id uint64, serial string) bool {
	switch {
	case t.id != 0:
		return t.id == id
	case t.serial != "":
		return t.serial == serial
	}
	return t.kind == transportAny || t.kind == transportOf(serial)
}

var (
	ambiguous = map[transport]string{
		transportAny: "more than one device/emulator", transportUSB: "more than one device",
		transportLocal: "more than one emulator",
	}
	absent = map[transport]string{
		transportAny: "no devices/emulators found", transportUSB: "no devices found",
		transportLocal: "no emulators found",
	}
)

func (t target) missing() error {
	switch {
	case t.id != 0:
		return refusal(fmt.Sprintf("no device with transport id '%d'", t.id))
	case t.serial != "":
		return refusal(fmt.Sprintf("device '%s' not found", t.serial))
	}
	return refusal(absent[t.kind])
}

// list formats the phones like `adb devices`, or like `adb devices -l` if long
// is set.
func (r *roster) list(long bool) string {
	plugs, _ := r.view()
	var b strings.Builder
	for _, p := range plugs {
		id := p.phone.Identity()
		if !long {
			fmt.Fprintf(&b, "%s\t%s\n", id.Serial, id.state())
			continue
		}
		fmt.Fprintf(&b, "%-22s %s", id.Serial, id.state())
		if id.state() != StateUnauthorized {
			// The server takes these values from the banner, which arrives
			// after the authorization.
			describe(&b, "product:", id.Product)
			describe(&b, "model:", alphanumeric(id.Model))
			describe(&b, "device:", id.Device)
		}
		fmt.Fprintf(&b, " transport_id:%d\n", p.id)
	}
	return b.String()
}

func describe(b *strings.Builder, key, value string) {
	if value != "" {
		b.WriteString(" " + key + value)
	}
}

// alphanumeric replaces every byte except ASCII letters and digits with an
// underscore.
func alphanumeric(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c > unicode.MaxASCII || !unicode.IsLetter(rune(c)) && !unicode.IsDigit(rune(c)) {
			b[i] = '_'
		}
	}
	return string(b)
}
