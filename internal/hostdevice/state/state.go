// Package state reads and writes the data that a host device keeps on disk for
// its commands: the layout of its directory, its properties, its clock and its
// log.
//
// The device writes the data and its commands read it. Everything is plain
// text, so a command can start after opening one small file.
package state

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Variable is the environment variable that contains the directory of the
// device to which a command belongs. Its value differs between devices, so it
// also identifies a device's processes.
const Variable = "LEAKGATE_HOSTDEVICE"

// CommandVariable is the environment variable that identifies the shell command
// line that started a process. Its value is a number that is unique on this
// machine.
const CommandVariable = "LEAKGATE_HOSTDEVICE_COMMAND"

// FilesVariable is the environment variable that limits the number of files
// that a process of the app may open.
const FilesVariable = "LEAKGATE_HOSTDEVICE_FILES"

// SharedDir is the only directory on a phone to which every user may write.
const SharedDir = "/data/local/tmp"

// Dir is the path of a device's directory.
type Dir string

// Bin, Shared, App, Home and Log return directories: Bin contains the commands,
// Shared corresponds to /data/local/tmp, App contains the app's classes, Home
// is the app's own directory, and Log contains the output of the app's
// processes.
func (d Dir) Bin() string    { return filepath.Join(string(d), "bin") }
func (d Dir) Shared() string { return filepath.Join(string(d), "tmp") }
func (d Dir) App() string    { return filepath.Join(string(d), "app") }
func (d Dir) Home() string   { return filepath.Join(string(d), "home") }
func (d Dir) Log() string    { return filepath.Join(string(d), "log") }

// Nest returns the directory for the files of package nest, which isolates a
// real adb server and adbd.
func (d Dir) Nest() string { return filepath.Join(string(d), "nest") }

// Control returns the path of the device's socket.
func (d Dir) Control() string { return filepath.Join(string(d), "control") }

func (d Dir) properties() string { return filepath.Join(string(d), "build.prop") }
func (d Dir) clock() string      { return filepath.Join(string(d), "clock") }

// AttachSocket returns the path of the socket that a Java virtual machine opens
// for jcmd and leaves behind if it is killed (HotSpot
// attachListener_posix.cpp).
func AttachSocket(pid int) string { return fmt.Sprintf("/tmp/.java_pid%d", pid) }

// Current returns the directory of the device that started this process.
func Current() (Dir, error) {
	dir := os.Getenv(Variable)
	if dir == "" {
		return "", fmt.Errorf("find device: %s is not set; this command runs in the shell of a host device", Variable)
	}
	return Dir(dir), nil
}

// Property is a system property.
type Property struct{ Key, Value string }

// WriteProperties saves the properties that getprop prints. Keys and values
// must not contain a newline.
func (d Dir) WriteProperties(list []Property) error {
	var b strings.Builder
	for _, p := range list {
		if strings.ContainsAny(p.Key, "=\n") || strings.Contains(p.Value, "\n") {
			return fmt.Errorf("write properties: %q = %q does not fit one line", p.Key, p.Value)
		}
		fmt.Fprintf(&b, "%s=%s\n", p.Key, p.Value)
	}
	if err := os.WriteFile(d.properties(), []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write properties: %w", err)
	}
	return nil
}

// Properties returns what WriteProperties saved, in the same order.
func (d Dir) Properties() ([]Property, error) {
	text, err := os.ReadFile(d.properties())
	if err != nil {
		return nil, fmt.Errorf("read properties: %w", err)
	}
	var list []Property
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		list = append(list, Property{key, value})
	}
	return list, nil
}

// API returns the API level of the device.
func (d Dir) API() (int, error) {
	text, err := d.Property("ro.build.version.sdk")
	if err != nil {
		return 0, err
	}
	api, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("read API level: %w", err)
	}
	return api, nil
}

// Property returns the value of a property or, like getprop, "" if it is
// unknown.
func (d Dir) Property(key string) (string, error) {
	list, err := d.Properties()
	if err != nil {
		return "", err
	}
	for _, p := range list {
		if p.Key == key {
			return p.Value, nil
		}
	}
	return "", nil
}
