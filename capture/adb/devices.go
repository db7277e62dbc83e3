package adb

import (
	"strconv"
	"strings"
)

// StateDevice is the state of a device that can be used.
const StateDevice = "device"

// DeviceInfo is one line of `adb devices -l`. All of it is text of the device:
// hostile. What the line does not say is empty.
type DeviceInfo struct {
	Serial string
	// State is device, offline, unauthorized, recovery, ..., or a whole sentence that
	// begins with "no permissions".
	State                  string
	Product, Model, Device string
	// TransportID is the server's number for this connection of the device, 0 where
	// it gives none. A reconnect changes it.
	TransportID int64
	// USB is the port that the device is plugged into, as the server names it; empty
	// for a device of the network, and where the server does not tell.
	USB string
}

// unusable says why a device that is not in state device cannot be used.
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

// name is what a message calls the device. The server cannot read the serial of one
// that it may not open (AOSP adb/transport.cpp, append_transport; adb/client/usb_linux.cpp).
func (d DeviceInfo) name() string {
	if strings.Trim(d.Serial, "?") == "" || d.Serial == "(no serial number)" {
		return "a device without a readable serial"
	}
	return "device " + quoted(d.Serial)
}

// parseDevices reads the lists of host:devices-l, host:track-devices-l and
// host:track-devices. A line without a serial and a state is no device.
func parseDevices(text string) []DeviceInfo {
	var list []DeviceInfo
	for line := range strings.Lines(text) {
		if d, ok := parseDevice(strings.TrimRight(line, "\r\n")); ok {
			list = append(list, d)
		}
	}
	return list
}

// noPermissions begins the one state that is a sentence.
const noPermissions = "no permissions"

// parseDevice reads a line: SERIAL, STATE, then KEY:VALUE fields (AOSP
// adb/transport.cpp, append_transport). A serial may hold blanks: mDNS makes
// "adb-X (2)._adb-tls-connect._tcp" of a second device of one name. So the fields
// are taken from the end, and the state before them is one word but for
// "no permissions".
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

// field takes one KEY:VALUE; false where it is none.
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
