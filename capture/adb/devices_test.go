package adb

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const udev = "no permissions (missing udev rules? user is in the plugdev group); see " +
	"[http://developer.android.com/tools/device.html]"

func TestParseDevices(t *testing.T) {
	tests := []struct {
		line string
		want DeviceInfo
	}{
		{
			"emulator-5554          device product:sdk_gphone64 model:sdk_gphone64 device:emu64a transport_id:1",
			DeviceInfo{"emulator-5554", "device", "sdk_gphone64", "sdk_gphone64", "emu64a", 1, ""},
		},
		{
			"0123456789ABCDEF       unauthorized usb:1-1 transport_id:3",
			DeviceInfo{Serial: "0123456789ABCDEF", State: "unauthorized", TransportID: 3, USB: "1-1"},
		},
		{
			"R58M123                " + udev + " usb:1-2 transport_id:4",
			DeviceInfo{Serial: "R58M123", State: udev, TransportID: 4, USB: "1-2"},
		},
		{
			"adb-8EE2 (2)._adb-tls-connect._tcp device product:a model:b device:c transport_id:7",
			DeviceInfo{"adb-8EE2 (2)._adb-tls-connect._tcp", "device", "a", "b", "c", 7, ""},
		},
		{
			"127.0.0.1:5555         device transport_id:2",
			DeviceInfo{Serial: "127.0.0.1:5555", State: "device", TransportID: 2},
		},
		{
			"device                 device product:p model:Odd device:d transport_id:5",
			DeviceInfo{"device", "device", "p", "Odd", "d", 5, ""},
		},
		{
			"(no serial number)     offline transport_id:5",
			DeviceInfo{Serial: "(no serial number)", State: "offline", TransportID: 5},
		},
		{"????????????           " + udev, DeviceInfo{Serial: "????????????", State: udev}},
		{
			"X                      device usb:1-1 max_speed:5000 transport_id:9",
			DeviceInfo{Serial: "X", State: "device", TransportID: 9, USB: "1-1"},
		},
		{"X                      device transport_id:-9", DeviceInfo{Serial: "X", State: "device"}},
		{"R58M123\tdevice\r", DeviceInfo{Serial: "R58M123", State: "device"}},
		{"R58M123\t" + udev, DeviceInfo{Serial: "R58M123", State: udev}},
	}
	var all strings.Builder
	var want []DeviceInfo
	for _, tt := range tests {
		if got := parseDevices(tt.line + "\n"); !slices.Equal(got, []DeviceInfo{tt.want}) {
			t.Errorf("%q\n got %+v\nwant %+v", tt.line, got, tt.want)
		}
		all.WriteString(tt.line + "\n\n")
		want = append(want, tt.want)
	}
	if got := parseDevices(all.String()); !slices.Equal(got, want) {
		t.Errorf("got devices %+v from all lines, want %+v", got, want)
	}
	for _, none := range []string{"", "\n", "lonely", "   ", "\tdevice", "serial\t", "a:b c:d"} {
		if got := parseDevices(none); len(got) != 0 {
			t.Errorf("%q: %+v, want none", none, got)
		}
	}
}

func TestChoose(t *testing.T) {
	dev := func(serial, state string) DeviceInfo { return DeviceInfo{Serial: serial, State: state} }
	a, b, off, un := dev("A", "device"), dev("B", "device"), dev("C", "offline"), dev("D", "unauthorized")
	crowd := make([]DeviceInfo, 50)
	for i := range crowd {
		crowd[i] = dev(fmt.Sprint("phone", i), "device")
	}
	tests := []struct {
		list   []DeviceInfo
		serial string
		want   string
		kind   error
		text   string
	}{
		{[]DeviceInfo{a}, "", "A", nil, ""},
		{[]DeviceInfo{off, a, un}, "", "A", nil, ""},
		{[]DeviceInfo{a, b}, "B", "B", nil, ""},
		{nil, "", "", ErrNoDevice, "connect one with USB debugging on"},
		{nil, "A", "", ErrNoDevice, `device "A" is not connected, and no other device is`},
		{[]DeviceInfo{a, off}, "Z", "", ErrNoDevice, `connected: "A", "C": check the cable`},
		{
			[]DeviceInfo{a, b}, "", "", ErrSeveralDevices,
			`2 devices are connected ("A", "B"): choose one with --device or ANDROID_SERIAL`,
		},
		{crowd, "", "", ErrSeveralDevices, "and 40 more"},
		{[]DeviceInfo{off}, "", "", ErrOffline, `device "C" is offline: reconnect it`},
		{[]DeviceInfo{a, off}, "C", "", ErrOffline, "adb reconnect"},
		{[]DeviceInfo{un}, "", "", ErrUnauthorized, "accept the USB debugging dialog"},
		{[]DeviceInfo{dev("E", "authorizing")}, "E", "", ErrUnauthorized, "unlock it"},
		{[]DeviceInfo{dev("F", udev)}, "", "", ErrUnauthorized, "udev rules"},
		{
			[]DeviceInfo{dev("????????????", udev)}, "", "", ErrUnauthorized,
			"no permission to open a device without a readable serial over USB: install the udev rules",
		},
		{
			[]DeviceInfo{dev("F", "no permissions (user night is not in the plugdev group); see [x]")}, "", "",
			ErrUnauthorized, "sudo usermod -aG plugdev $LOGNAME",
		},
		{
			[]DeviceInfo{off, un}, "", "", ErrOffline,
			`none of the 2 devices can be used: device "C" is offline: reconnect it or run ` +
				"`adb reconnect offline`",
		},
		{[]DeviceInfo{un, off}, "", "", ErrUnauthorized, `; device "C" is offline`},
		{[]DeviceInfo{dev("G", "recovery")}, "", "", ErrOffline, `in state "recovery": boot it into Android`},
		{
			[]DeviceInfo{dev("\x1b[31mH\n"+strings.Repeat("x", 9999), "device"), a}, "", "", ErrSeveralDevices,
			`"\x1b[31mH\nxxx`,
		},
	}
	for _, tt := range tests {
		got, err := choose(tt.list, tt.serial, "")
		if tt.kind == nil {
			if err != nil || got.Serial != tt.want {
				t.Errorf("choose %q of %v = %v, %v", tt.serial, tt.list, got, err)
			}
			continue
		}
		checkSentence(t, err, tt.kind, tt.text)
	}
}

// kinds lists all kinds of errors.
var kinds = []error{
	ErrNoServer, ErrNoDevice, ErrUnauthorized, ErrOffline, ErrSeveralDevices, ErrDeviceGone, ErrTooMuch, ErrProtocol,
}

// checkSentence checks that an error has exactly one kind, and that it is one
// short, printable line that contains text and says what to do.
func checkSentence(t *testing.T, err, kind error, text string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %v", kind)
		return
	}
	for _, k := range kinds {
		if errors.Is(err, k) != (k == kind) {
			t.Errorf("error %q: is %v = %v", err, k, k != kind)
		}
	}
	msg := err.Error()
	if !strings.Contains(msg, text) {
		t.Errorf("error %q does not contain %q", msg, text)
	}
	if len(msg) > 2500 || strings.ContainsFunc(msg, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) {
		t.Errorf("error of %d bytes is not printable: %q", len(msg), msg)
	}
	if !strings.Contains(msg, ": ") {
		t.Errorf("error %q does not say what to do", msg)
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		text string
		kind error
		says string
	}{
		{"device 'X' not found", ErrDeviceGone, "no longer connected"},
		{"device 'offline unauthorized' not found", ErrDeviceGone, "no longer connected"},
		{"device not found", ErrDeviceGone, "no longer connected"},
		{"no devices/emulators found", ErrDeviceGone, "adb devices"},
		{"no devices found", ErrDeviceGone, "adb devices"},
		{"device offline", ErrOffline, "adb reconnect"},
		{"device offline (transport offline)", ErrOffline, "adb reconnect"},
		{"device still connecting", ErrOffline, "wait"},
		{
			"device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set\nTry 'adb kill-server' if that " +
				"seems wrong.\nOtherwise check for a confirmation dialog on your device.", ErrUnauthorized,
			"accept the USB debugging dialog",
		},
		{"device still authorizing", ErrUnauthorized, "unlock it"},
		{"insufficient permissions for device: " + udev, ErrUnauthorized, "udev"},
		{"closed", ErrDeviceGone, "try again"},
		{"more than one device/emulator", ErrSeveralDevices, "choose one with --device or ANDROID_SERIAL"},
		{"more than one emulator", ErrSeveralDevices, "ANDROID_SERIAL"},
		{"protocol fault (couldn't read status): Success", ErrProtocol, "adb kill-server"},
		{"protocol fault \x1b]0;evil\a" + strings.Repeat("A", 9999), ErrProtocol, "…"},
	}
	for _, tt := range tests {
		checkSentence(t, phase{endpoint: "127.0.0.1:5037", serial: "X\x1b[2J"}.refusal(tt.text), tt.kind, tt.says)
	}
	checkSentence(t, phase{endpoint: "127.0.0.1:5037"}.refusal("no devices/emulators found"), ErrNoDevice,
		"no device is connected")
	err := phase{endpoint: "127.0.0.1:5037"}.refusal("gremlins\n\x00")
	if want := `the adb server at 127.0.0.1:5037 refused the request: "gremlins\n\x00"`; err.Error() != want {
		t.Errorf("unknown refusal: %q, want %q", err, want)
	}
}

// FuzzDevices checks that a list in the format of AOSP's append_transport is
// parsed correctly, and that every returned device occurs in the list.
func FuzzDevices(f *testing.F) {
	f.Add("emulator-5554", "device", "sdk", "Pixel_9", "komodo", int64(3), "x")
	f.Add("adb-X (2)._adb-tls", udev, "", "", "", int64(0), "a  b c:d\n\te")
	f.Fuzz(func(t *testing.T, serial, state, product, model, device string, id int64, junk string) {
		for _, d := range parseDevices(junk) {
			if d.Serial == "" || d.State == "" || strings.ContainsAny(d.Serial+d.State, "\n\t") &&
				!strings.Contains(junk, "\t") || !strings.Contains(junk, d.Serial) || !strings.Contains(junk, d.State) {
				t.Fatalf("%q does not contain %+v", junk, d)
			}
		}
		field := func(s string) string {
			return strings.Map(func(r rune) rune {
				if r > ' ' && r < 0x7f {
					return r
				}
				return '_'
			}, s)
		}
		want := DeviceInfo{
			Serial: field(serial), State: "device", Product: field(product), Model: field(model), Device: field(device),
		}
		if strings.HasPrefix(state, noPermissions) {
			want.State = noPermissions
		}
		if want.Serial == "" {
			want.Serial = "(no serial number)"
		}
		line := fmt.Sprintf("%-22s %s product:%s model:%s device:%s", want.Serial, want.State, want.Product, want.Model,
			want.Device)
		if id > 0 {
			want.TransportID = id
			line += fmt.Sprintf(" transport_id:%d", id)
		}
		if got := parseDevices(line + "\n"); len(got) != 1 || got[0] != want {
			t.Fatalf("%q\n got %+v\nwant %+v", line, got, want)
		}
	})
}
