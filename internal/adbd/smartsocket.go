package adbd

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// serverVersion is the ADB_SERVER_VERSION of adb 29 to 35. A client that
// expects another version would kill the server and start its own.
const serverVersion = 41

// maxText is the maximum length of a message in bytes: the length is sent as
// four hex digits.
const maxText = 0xffff

// readRequest reads one smart-socket request: a length of four hex digits, then
// the request. After an error the connection is unusable.
func readRequest(r io.Reader) (string, error) {
	var digits [4]byte
	if _, err := io.ReadFull(r, digits[:]); err != nil {
		return "", fmt.Errorf("read a request: %w", err)
	}
	n, err := strconv.ParseUint(string(digits[:]), 16, 16)
	if err != nil {
		return "", fmt.Errorf("read the length of a request: %w", err)
	}
	if n == 0 {
		return "", fmt.Errorf("read a request: the length is 0")
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return "", fmt.Errorf("read a request of %d bytes: %w", n, err)
	}
	return string(text), nil
}

// withLength prefixes text with its length in four hex digits. Like the adb
// server, it truncates text that is too long.
func withLength(text string) string {
	text = text[:min(len(text), maxText)]
	return fmt.Sprintf("%04x%s", len(text), text)
}

// A transport is how a phone is connected; clients can request a particular
// type.
type transport int

const (
	transportAny transport = iota
	transportUSB
	transportLocal
)

var transportNames = map[string]transport{"any": transportAny, "usb": transportUSB, "local": transportLocal}

// transportOf derives the type of transport from the serial: emulators and
// HOST:PORT are local.
func transportOf(serial string) transport {
	if strings.HasPrefix(serial, "emulator-") || hostPort(serial) == len(serial) {
		return transportLocal
	}
	return transportUSB
}

// target selects a phone for a request. The zero value selects the only phone.
type target struct {
	kind   transport
	serial string
	id     uint64
}

// parseHost splits a request of the host: family into the selected phone and
// the requested service. known reports whether a serial exists, which matters
// because a serial may contain colons.
func parseHost(request string, known func(serial string) bool) (t target, service string, ok bool) {
	family, rest, found := strings.Cut(request, ":")
	if !found {
		return target{}, "", false
	}
	switch family {
	case "host":
		return target{}, rest, true
	case "host-usb":
		return target{kind: transportUSB}, rest, true
	case "host-local":
		return target{kind: transportLocal}, rest, true
	case "host-transport-id":
		digits, service, found := strings.Cut(rest, ":")
		id, err := strconv.ParseUint(digits, 10, 64)
		return target{id: id}, service, found && err == nil && id != 0
	case "host-serial":
		serial, service, ok := cutSerial(rest, known)
		return target{serial: serial}, service, ok
	}
	return target{}, "", false
}

// cutSerial splits SERIAL:SERVICE. It prefers the longest serial that exists;
// otherwise the serial is a leading HOST:PORT, or ends at the first colon.
func cutSerial(text string, known func(serial string) bool) (serial, service string, ok bool) {
	for i := len(text) - 1; i > 0; i-- {
		if text[i] == ':' && known(text[:i]) {
			return text[:i], text[i+1:], true
		}
	}
	if n := hostPort(text); n > 0 && n < len(text) {
		return text[:n], text[n+1:], true
	}
	serial, service, found := strings.Cut(text, ":")
	return serial, service, found && serial != ""
}

// hostPort returns the length of a leading HOST:PORT that is followed by a
// colon or by nothing, or 0 if there is none.
func hostPort(text string) int {
	colon := strings.IndexByte(text, ':')
	if strings.HasPrefix(text, "[") {
		colon = strings.Index(text, "]:") + 1
	}
	if colon <= 0 {
		return 0
	}
	end := colon + 1
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	if end == colon+1 || end < len(text) && text[end] != ':' {
		return 0
	}
	return end
}

// parseTransport parses what follows "transport" or "tport" in a request that
// binds the connection to a phone.
func parseTransport(service string) (t target, withID, ok bool) {
	if rest, found := strings.CutPrefix(service, "tport:"); found {
		if serial, found := strings.CutPrefix(rest, "serial:"); found {
			return target{serial: serial}, true, serial != ""
		}
		kind, ok := transportNames[rest]
		return target{kind: kind}, true, ok
	}
	if serial, found := strings.CutPrefix(service, "transport:"); found {
		return target{serial: serial}, false, serial != ""
	}
	if digits, found := strings.CutPrefix(service, "transport-id:"); found {
		id, err := strconv.ParseUint(digits, 10, 64)
		return target{id: id}, false, err == nil && id != 0
	}
	rest, found := strings.CutPrefix(service, "transport-")
	kind, known := transportNames[rest]
	return target{kind: kind}, false, found && known
}

// waitStates maps each state that a wait-for request can name to the states
// that satisfy it; an empty list means any state.
var waitStates = map[string][]string{
	"device": {StateDevice}, "recovery": {"recovery"}, "rescue": {"rescue"},
	"sideload": {"sideload"}, "bootloader": {"bootloader"}, "any": nil,
}

// waitDisconnect is the state in a wait-for request that waits for the phone to
// disappear.
const waitDisconnect = "disconnect"

// parseWait parses the KIND-STATE part of wait-for-KIND-STATE.
func parseWait(text string) (kind transport, state string, ok bool) {
	name, state, found := strings.Cut(text, "-")
	kind, known := transportNames[name]
	_, listed := waitStates[state]
	return kind, state, found && known && (listed || state == waitDisconnect)
}
