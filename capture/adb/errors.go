package adb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// These kinds of errors are for use with errors.Is. The message of an error
// that wraps one of these kinds is a sentence with the cause and what to do.
var (
	// ErrNoServer means that no adb server responds.
	ErrNoServer = errors.New("no adb server")
	// ErrNoDevice means that the requested device is not connected, or that no
	// device is.
	ErrNoDevice = errors.New("no device")
	// ErrUnauthorized means that the device, or the USB rules of this machine,
	// deny access.
	ErrUnauthorized = errors.New("device unauthorized")
	// ErrOffline means that the device is connected but does not respond, or
	// does not run Android.
	ErrOffline = errors.New("device offline")
	// ErrSeveralDevices means that more than one device qualifies.
	ErrSeveralDevices = errors.New("several devices")
	// ErrDeviceGone means that the device disappeared, or its connection ended,
	// before the response was complete.
	ErrDeviceGone = errors.New("device gone")
	// ErrTooMuch means that a stream reached its byte limit.
	ErrTooMuch = errors.New("too much output")
	// ErrProtocol means that the response violates the protocol.
	ErrProtocol = errors.New("adb protocol fault")
)

// fault is an error whose message is a complete sentence.
type fault struct {
	kind  error
	cause error
	text  string
}

func (f *fault) Error() string { return f.text }

func (f *fault) Unwrap() []error {
	if f.cause == nil {
		return []error{f.kind}
	}
	return []error{f.kind, f.cause}
}

func faultf(kind error, format string, args ...any) error {
	return &fault{kind: kind, text: fmt.Sprintf(format, args...)}
}

// maxQuoted bounds the length of text from a device or server in a message, in
// characters.
const maxQuoted = 160

// quoted returns untrusted text for use in a message: on one line, shortened,
// in quotes.
func quoted(s string) string { return text.Quote(strings.TrimSpace(s), maxQuoted) }

// clean is like quoted but without the quotes, for text from this machine.
func clean(s string) string { return text.Head(strings.TrimSpace(s), maxQuoted) }

// errUnknownService means that the server is too old to support the request.
var errUnknownService = errors.New("needs a newer adb server")

// phase specifies which peer must respond next, for the error message.
type phase struct {
	endpoint string
	serial   string // the device to which the request applies, if any
	bound    bool   // the device must respond, not the server
}

// refusal converts the message of a FAIL response to an error. The messages are
// those of AOSP adb/transport.cpp (acquire_one_transport) and adb/sockets.cpp.
func (p phase) refusal(text string) error {
	has := func(part string) bool { return strings.Contains(text, part) }
	name := p.name()
	switch {
	// The message "device SERIAL not found" is matched first, because the
	// serial may contain any of the words below.
	case strings.HasPrefix(text, "device ") && strings.HasSuffix(text, "not found"), has("no devices"),
		has("no emulators"):
		return p.notFound()
	case has("unauthorized"), has("authorizing"):
		return unauthorized(name)
	case has("no permissions"), has("insufficient permissions"):
		return noPermission(name, text)
	case has("offline"), has("still connecting"):
		return offline(name)
	case has("more than one"):
		return faultf(ErrSeveralDevices,
			"more than one device is connected: choose one with --device or ANDROID_SERIAL")
	case strings.TrimSpace(text) == "closed":
		return faultf(ErrDeviceGone,
			"%s closed the connection before the service started: it disappeared or does not offer the service; "+
				"check the cable and try again", name)
	case has("protocol fault"):
		return faultf(ErrProtocol, "the adb server reports %s: restart it with `adb kill-server`", quoted(text))
	}
	err := fmt.Errorf("the adb server at %s refused the request: %s", p.endpoint, quoted(text))
	if has("unknown host service") {
		err = fmt.Errorf("%w: %w", err, errUnknownService)
	}
	return err
}

func (p phase) name() string {
	if p.serial == "" {
		return "the device"
	}
	return "device " + quoted(p.serial)
}

// errNotListed means that the server does not list the device.
var errNotListed = errors.New("not in the server's list")

func (p phase) notFound() error {
	if p.serial == "" {
		return noDevice()
	}
	return &fault{
		kind: ErrDeviceGone, cause: errNotListed,
		text: fmt.Sprintf("%s is no longer connected: check its cable or network and run `adb devices`", p.name()),
	}
}

// notReached returns the error for a network device to which the server could
// not connect.
func notReached(kind error, serial, from, answer string) error {
	return faultf(kind,
		"device %s%s is not connected, and the adb server could not connect to it (%s): check that it is switched on, "+
			"is on this network and has adb over Wi-Fi enabled", quoted(serial), from, quoted(answer))
}

func noDevice() error {
	return faultf(ErrNoDevice,
		"no device is connected: connect one with USB debugging on, or start an emulator, and check with `adb devices`")
}

func unauthorized(name string) error {
	return faultf(ErrUnauthorized,
		"%s has not authorized this computer: unlock it and accept the USB debugging dialog; without a dialog, "+
			"reconnect it", name)
}

// noPermission returns the error for a device that may not be opened. The
// server's message may say that the user is not in the required group (AOSP
// adb/diagnose_usb.cpp, usb_permissions_short_help_text).
func noPermission(name, text string) error {
	todo := "install the udev rules (Debian: package android-sdk-platform-tools-common), then reconnect it"
	if strings.Contains(text, "not in the plugdev group") {
		todo = "add the user with `sudo usermod -aG plugdev $LOGNAME` and log in again"
	}
	return faultf(ErrUnauthorized, "no permission to open %s over USB: %s", name, todo)
}

func offline(name string) error {
	return faultf(ErrOffline,
		"%s is offline: reconnect it or run `adb reconnect offline`, and wait until `adb devices` shows it as device",
		name)
}

// failure translates a connection error into an error for the user.
func (p phase) failure(ctx context.Context, wait time.Duration, err error) error {
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	var known *fault
	if errors.As(err, &known) {
		return err
	}
	if isTimeout(err) {
		return p.silent(wait)
	}
	if p.bound {
		return &fault{
			kind: ErrDeviceGone, cause: notEOF(err),
			text: fmt.Sprintf("the connection to %s ended before the answer was complete: the device or the adb "+
				"server disappeared; check the cable and try again", p.name()),
		}
	}
	return &fault{
		kind: ErrNoServer, cause: notEOF(err),
		text: fmt.Sprintf("something at %s closed the connection without an answer: restart the adb server with `adb "+
			"kill-server`, or set ANDROID_ADB_SERVER_PORT to a free port", p.endpoint),
	}
}

func (p phase) silent(wait time.Duration) error {
	if p.bound {
		return faultf(ErrOffline, "%s did not respond for %v: reconnect it or run `adb reconnect`", p.name(), wait)
	}
	return faultf(ErrNoServer,
		"something at %s accepts connections but did not respond for %v: restart the adb server with `adb "+
			"kill-server`, or set ANDROID_ADB_SERVER_PORT to a free port", p.endpoint, wait)
}

// notEOF returns nil for an error that wraps io.EOF, and any other error
// unchanged: a caller that reads until io.EOF must not mistake a broken
// connection for the end of the stream.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// dialReason returns the innermost, most specific part of an error from package
// net.
func dialReason(err error) string {
	var resolve *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &resolve):
		return clean(resolve.Error())
	case isTimeout(err):
		return "no answer in time"
	case errors.As(err, &op) && op.Err != nil:
		return clean(op.Err.Error())
	}
	return clean(err.Error())
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}

// contextError returns ctx's error, with its cause if that is more specific.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
