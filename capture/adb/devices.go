package adb

import (
	"strconv"
	"strings"
)

// StateDevice is the state of a usable device.
const StateDevice = "device"

// DeviceInfo is one line of `adb devices -l`. All fields are untrusted text
// from the device. Missing values are empty.
type DeviceInfo struct {
	Serial string
	// State is device, offline, unauthorized, recovery, ..., or a whole
	// sentence that begins with "no permissions".
	State                  string
	Product, Model, Device string
	// TransportID is the server's number for the current connection to the
	// device, or 0 if unknown. It changes with each reconnect.
	TransportID int64
	// USB is the USB port of the device, in the server's notation; it is empty
	// for a network device or if unknown.
	USB string
}

// unusable returns an error that says why a device in any state but "device"
// cannot be used.
func (d DeviceInfo) unusable() error {
	name := d.name()
	switch state := d.State; {
	case state == "unauthorized", state == "authorizing":
		return unauthorized(name)
	case strings.HasPrefix(state, noPermissions):
		return noPermission(name, state)
	case state == "offline", state == "connecting", state == "":
		return offline(name)
	default:
		return faultf(ErrOffline, "%s is in state %s: boot it into Android", name, quoted(state))
	}
}

// name returns the name of the device for use in messages. The server cannot
// read the serial of a device that it may not open (AOSP adb/transport.cpp,
// append_transport; adb/client/usb_linux.cpp).
func (d DeviceInfo) name() string {
	if strings.Trim(d.Serial, "?") == "" || d.Serial == "(no serial number)" {
		return "a device without a readable serial"
	}
	return "device " + quoted(d.Serial)
}

// parseDevices parses the lists of host:devices-l, host:track-devices-l and
// host:track-devices. It skips lines without a serial and a state.
func parseDevices(text string) []DeviceInfo {
	var list []DeviceInfo
	for line := range strings.Lines(text) {
		if d, ok := parseDevice(strings.TrimRight(line, "\r\n")); ok {
			list = append(list, d)
		}
	}
	return list
}

// noPermissions is the beginning of the only state that is a sentence.
const noPermissions = "no permissions"

// parseDevice parses a line: SERIAL, STATE, then KEY:VALUE fields (AOSP
// adb/transport.cpp, append_transport). A serial may contain spaces: if two
// devices have the same name, mDNS calls the second one "adb-X
// (2)._adb-tls-connect._tcp". So the fields are parsed from the end, and the
// state before them is one word, except for "no permissions".
func parseDevice(line string) (DeviceInfo, bool) {
	var d DeviceInfo
	rest, long := line, !strings.Contains(line, "\t")
	for long {
		rest = strings.TrimRight(rest, " ")
		at := strings.LastIndexByte(rest, ' ')
		if at < 0 || !d.field(rest[at+1:]) {
			break
		}
		rest = rest[:at]
	}
	d.Serial, d.State = splitState(rest)
	return d, d.Serial != "" && d.State != ""
}

func splitState(text string) (serial, state string) {
	if serial, state, ok := strings.Cut(text, "\t"); ok {
		return strings.TrimSpace(serial), strings.TrimSpace(state)
	}
	if at := strings.Index(text, " "+noPermissions); at >= 0 {
		return strings.TrimSpace(text[:at]), strings.TrimSpace(text[at:])
	}
	text = strings.TrimSpace(text)
	at := strings.LastIndexByte(text, ' ')
	if at < 0 {
		return text, ""
	}
	return strings.TrimSpace(text[:at]), text[at+1:]
}

// field parses one KEY:VALUE field; it returns false for any other text.
func (d *DeviceInfo) field(text string) bool {
	key, value, ok := strings.Cut(text, ":")
	if !ok || key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return false
	}
	switch key {
	case "product":
		d.Product = value
	case "model":
		d.Model = value
	case "device":
		d.Device = value
	case "usb":
		d.USB = value
	case "transport_id":
		if id, err := strconv.ParseInt(value, 10, 64); err == nil && id > 0 {
			d.TransportID = id
		}
	}
	return true
}
