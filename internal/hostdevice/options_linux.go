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

// Options describe a device. The zero value of a field means what its comment says.
type Options struct {
	// Program is the hostdevice program, which the commands are made of. Needed.
	Program string
	// Serial and Model are what adb lists; hostdevice and "Host Device".
	Serial, Model string
	// API is ro.build.version.sdk; 34. Release is the version; 14.
	API     int
	Release string
	// BuildType is user, userdebug or eng; userdebug.
	BuildType string
	// Package is the name of the app; com.example.leaky. Two devices at a time
	// on one machine need two names, since both show all its processes.
	Package string
	// Released makes the app one that is not debuggable: on a user build, run-as
	// and am dumpheap refuse it.
	Released bool
	// Dir is the directory in which the device makes its own; the directory for
	// temporary files.
	Dir string
	// Scale is device seconds per real second; 1.
	Scale float64
	// ShellUID and AppUID are the users of the shell and of the app; 0 means the user that runs
	// the device, and for root 2000 and 10123: with those the kernel refuses to the shell what
	// it refuses on a phone. They need root.
	ShellUID, AppUID int
	// Root makes root, which runs the device, the user of a shell and an app without another.
	// Whoever reaches the device then owns this machine, and by run-as also who has only the app.
	Root bool
	// HeapMB is the largest Java heap of a process of the app, in MiB; 1024. It
	// is reserved, not used.
	HeapMB int
	// FileLimit is how many files a process of the app may have open; 0 is as many as
	// this machine allows.
	FileLimit int
}

// The users that a phone has for its shell and its first app (AOSP
// system/core/libcutils/include/private/android_filesystem_config.h, AID_SHELL and AID_APP_START).
const (
	phoneShellUID = 2000
	phoneAppUID   = 10123
)

// maxScale bounds the time scale; the readers of the property take no more.
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
		return errors.New("the hostdevice program is needed for the commands")
	case !(o.Scale > 0 && o.Scale <= maxScale):
		return fmt.Errorf("time scale %g is not in (0, %d]", o.Scale, maxScale)
	case !packageName.MatchString(o.Package):
		return fmt.Errorf("%q is no name of a package", o.Package)
	case !plainPath.MatchString(o.Dir):
		// The path stands for /data/local/tmp in the text of commands, where a
		// blank or a quote would change their meaning.
		return fmt.Errorf("directory %q is not absolute or has characters that a shell reads", o.Dir)
	case o.HeapMB < 16 || o.HeapMB > 31<<10:
		return fmt.Errorf("a Java heap of %d MiB is not from 16 to %d", o.HeapMB, 31<<10)
	case o.FileLimit != 0 && (o.FileLimit < 64 || o.FileLimit > 1<<20):
		return fmt.Errorf("%d open files are not from 64 to %d", o.FileLimit, 1<<20)
	case o.Root && os.Getuid() != 0:
		return errors.New("only root can have a shell of root")
	case os.Getuid() != 0 && (o.ShellUID != os.Getuid() || o.AppUID != os.Getuid()):
		return errors.New("users of their own for shell and app need root")
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

// JavaTools are the programs of a Java development kit that the app needs.
var javaTools = []string{"java", "javac", "jcmd"}

// CheckJava tells whether this machine can run the app: a Java development kit
// is needed to compile and start it and to dump its heap.
func CheckJava() error {
	for _, tool := range javaTools {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("find a Java development kit: %w", err)
		}
	}
	return nil
}
