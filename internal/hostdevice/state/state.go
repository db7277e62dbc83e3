// Package state is what a host device keeps on disk for its commands: where the
// parts of its directory are, its properties and its clock.
//
// The device writes, the commands that it installs read. Everything is plain
// text, so that a command costs no more than opening one small file. It is fed
// by package hostdevice and used by package shim.
package state

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Variable is the environment variable that leads a command to the directory of
// its device. Its value is different for every device, so it also tells which
// processes belong to one.
const Variable = "LEAKGATE_HOSTDEVICE"

// CommandVariable numbers the command line of the shell that a process was
// started from, unique on this machine.
const CommandVariable = "LEAKGATE_HOSTDEVICE_COMMAND"

// FilesVariable is how many files a process of the app may have open.
const FilesVariable = "LEAKGATE_HOSTDEVICE_FILES"

// SharedDir is the one directory of a phone that everybody may write to.
const SharedDir = "/data/local/tmp"

// Dir is the directory of one device.
type Dir string

// Bin holds the commands, Shared stands for /data/local/tmp, App holds the
// classes of the app, Home is the app's own, Log what the app's processes print.
func (d Dir) Bin() string    { return filepath.Join(string(d), "bin") }
func (d Dir) Shared() string { return filepath.Join(string(d), "tmp") }
func (d Dir) App() string    { return filepath.Join(string(d), "app") }
func (d Dir) Home() string   { return filepath.Join(string(d), "home") }
func (d Dir) Log() string    { return filepath.Join(string(d), "log") }

// Nest is where adbd finds what it runs with.
func (d Dir) Nest() string { return filepath.Join(string(d), "nest") }

// Control is the socket of the device.
func (d Dir) Control() string { return filepath.Join(string(d), "control") }

func (d Dir) properties() string { return filepath.Join(string(d), "build.prop") }
func (d Dir) clock() string      { return filepath.Join(string(d), "clock") }

// AttachSocket is what a Java virtual machine opens for jcmd, and leaves behind
// when it is killed (HotSpot attachListener_posix.cpp).
func AttachSocket(pid int) string { return fmt.Sprintf("/tmp/.java_pid%d", pid) }

// Current is the directory of the device that this process was started by.
func Current() (Dir, error) {
	dir := os.Getenv(Variable)
	if dir == "" {
		return "", fmt.Errorf("find device: %s is not set; this command runs in the shell of a host device", Variable)
	}
	return Dir(dir), nil
}

// Property is one system property.
type Property struct{ Key, Value string }

// WriteProperties saves what getprop prints. A key or value must not hold a line end.
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

// Properties reads what WriteProperties saved, in its order.
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

// API reads the API level of the device.
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

// Property reads one; the value of an unknown one is empty, as with getprop.
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
