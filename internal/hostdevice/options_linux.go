package hostdevice

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"

	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// Options describe a device. Each comment names the default, which applies if a
// field is zero.
type Options struct {
	// Program is the path of the hostdevice program, which implements the
	// commands. It is required.
	Program string
	// Serial and Model are listed by adb; the defaults are hostdevice and "Host
	// Device".
	Serial, Model string
	// API is ro.build.version.sdk, which determines the output format of
	// Android's tools; the default is 34. Release is the Android version; the
	// default is 14.
	API     int
	Release string
	// BuildType is user, userdebug or eng; the default is userdebug.
	BuildType string
	// Package is the name of the app; the default is com.example.leaky. Two
	// devices on one machine need different names, because each device shows
	// all processes of the machine.
	Package string
	// Released makes the app not debuggable. run-as then refuses to run
	// programs as the app, and on a user build am dumpheap refuses to dump its
	// heap.
	Released bool
	// Dir is the parent of the device's directory; the default is the directory
	// for temporary files.
	Dir string
	// Scale is the number of device seconds per real second; the default is 1.
	Scale float64
	// ShellUID and AppUID are the UIDs of the shell and of the app. By default,
	// both are the UID of the user who runs the device. If root runs the
	// device, they are 2000 and 10123: with these UIDs, the kernel denies the
	// shell the same access as on a phone. Separate UIDs require root.
	ShellUID, AppUID int
	// Root makes the shell and the app run as root by default if root runs the
	// device. Anyone who can connect to the device then controls this machine,
	// even a client that is limited to run-as.
	Root bool
	// HeapMB is the maximum Java heap of each process of the app, in MiB; the
	// default is 1024. The heap is reserved at the start, but does not occupy
	// memory until it is used.
	HeapMB int
	// FileLimit is the number of files that each process of the app may open;
	// the default is this machine's maximum.
	FileLimit int
}

// These are the UIDs of the shell and of an app on a phone (AOSP
// system/core/libcutils/include/private/android_filesystem_config.h, AID_SHELL;
// app UIDs start at AID_APP_START).
const (
	phoneShellUID = 2000
	phoneAppUID   = 10123
)

// maxScale is the maximum time scale: readers of the property do not accept a
// larger value.
const maxScale = 10000

var (
	packageName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]*(\.[a-zA-Z][a-zA-Z0-9_]*)+$`)
	plainPath   = regexp.MustCompile(`^/[a-zA-Z0-9_./-]*$`)
)

func (o Options) withDefaults() Options {
	def := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	num := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	def(&o.Serial, "hostdevice")
	def(&o.Model, "Host Device")
	def(&o.Release, "14")
	def(&o.BuildType, "userdebug")
	def(&o.Package, "com.example.leaky")
	def(&o.Dir, os.TempDir())
	num(&o.API, 34)
	num(&o.HeapMB, 1024)
	shell, app := os.Getuid(), os.Getuid()
	if os.Getuid() == 0 && !o.Root {
		shell, app = phoneShellUID, phoneAppUID
	}
	num(&o.ShellUID, shell)
	num(&o.AppUID, app)
	if o.Scale == 0 {
		o.Scale = 1
	}
	return o
}

func (o Options) check() error {
	switch {
	case o.Program == "":
		return errors.New("the hostdevice program is required")
	case !(o.Scale > 0 && o.Scale <= maxScale):
		return fmt.Errorf("time scale %g is out of range (0, %d]", o.Scale, maxScale)
	case !packageName.MatchString(o.Package):
		return fmt.Errorf("invalid package name %q", o.Package)
	case !plainPath.MatchString(o.Dir):
		// The path replaces /data/local/tmp in the text of commands. A blank or
		// a quote in the path would change the meaning of a command.
		return fmt.Errorf("directory %q is not absolute or contains special characters of the shell", o.Dir)
	case o.HeapMB < 16 || o.HeapMB > 31<<10:
		return fmt.Errorf("heap of %d MiB for Java is out of range 16 to %d", o.HeapMB, 31<<10)
	case o.FileLimit != 0 && (o.FileLimit < 64 || o.FileLimit > 1<<20):
		return fmt.Errorf("file limit %d is out of range 64 to %d", o.FileLimit, 1<<20)
	case o.Root && os.Getuid() != 0:
		return errors.New("option Root requires root")
	case os.Getuid() != 0 && (o.ShellUID != os.Getuid() || o.AppUID != os.Getuid()):
		return errors.New("separate UIDs for shell and app require root")
	}
	return nil
}

func (o Options) properties() []state.Property {
	debuggable := "1"
	if o.BuildType == "user" {
		debuggable = "0"
	}
	heap := strconv.Itoa(o.HeapMB) + "m"
	return []state.Property{
		{Key: "dalvik.vm.heapgrowthlimit", Value: heap},
		{Key: "dalvik.vm.heapsize", Value: heap},
		{Key: "ro.build.type", Value: o.BuildType},
		{Key: "ro.build.version.release", Value: o.Release},
		{Key: "ro.build.version.sdk", Value: strconv.Itoa(o.API)},
		{Key: "ro.debuggable", Value: debuggable},
		{Key: "ro.product.cpu.abi", Value: "x86_64"},
		{Key: "ro.product.manufacturer", Value: "leakgate"},
		{Key: "ro.product.model", Value: o.Model},
		{Key: "ro.serialno", Value: o.Serial},
		{Key: "sys.boot_completed", Value: "1"},
		{Key: state.ScaleProperty, Value: state.FormatScale(o.Scale)},
		{Key: state.PackageProperty, Value: o.Package},
	}
}

// javaTools lists the programs of a Java development kit that the app needs.
var javaTools = []string{"java", "javac", "jcmd"}

// CheckJava returns an error if this machine cannot run the app, which requires
// a Java development kit that can compile and start the app and dump its heap.
func CheckJava() error {
	for _, tool := range javaTools {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("find a Java development kit: %w", err)
		}
	}
	return nil
}
