package adbd

import (
	"context"
	"io"
	"io/fs"
	"math"
	"slices"
)

// Phone is the device that the protocol serves: it runs commands and stores
// files. All methods are safe for concurrent use.
type Phone interface {
	// Identity describes the phone; the result may change between two calls.
	Identity() Identity
	// Shell runs one command line like the phone's shell and returns its exit
	// code. Soon after ctx is done, Shell kills everything that it started and
	// returns. An empty command starts an interactive shell, which reads
	// commands from stdin.
	//
	// stdin often stays open longer than the command runs, so Shell must not
	// wait for EOF; a Read that is blocked when Shell returns is released with
	// an error. If the protocol mixes the two outputs, stdout and stderr are
	// the same value. Nothing may be written after Shell has returned. The exit
	// code NoExit ends the stream without an exit code.
	Shell(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) (exit int)
	// Stat, Open, Create and ReadDir serve the sync protocol. If an error wraps
	// an error of io/fs or syscall, the client receives the corresponding
	// error. Stat follows symbolic links, see LinkStater.
	Stat(path string) (fs.FileInfo, error)
	Open(path string) (io.ReadCloser, error)
	// Create creates a file and its parent directories. The content is
	// permanent once Close has returned nil. The writer may also implement
	// Aborter.
	Create(path string, mode fs.FileMode) (io.WriteCloser, error)
	ReadDir(path string) ([]fs.FileInfo, error)
}

// NoExit is the value that Phone.Shell returns for a command whose exit status
// is lost, for example because adbd was killed: the client reads the end of the
// stream without a status.
const NoExit = math.MinInt

// Notifier is a Phone that reports changes of its Identity. If a Phone is not a
// Notifier, its Identity is polled every quarter of a second where necessary.
type Notifier interface {
	// Changed returns a channel that is closed at the next change. Call Changed
	// before Identity to avoid missing a change.
	Changed() <-chan struct{}
}

// changes returns Notifier.Changed, or nil if the phone is not a Notifier.
func changes(phone Phone) <-chan struct{} {
	if n, ok := phone.(Notifier); ok {
		return n.Changed()
	}
	return nil
}

// LinkStater is a Phone that can describe a symbolic link itself. For other
// phones, Stat is used.
type LinkStater interface {
	Lstat(path string) (fs.FileInfo, error)
}

// Aborter is a writer returned by Phone.Create that can discard its data. Abort
// is called instead of Close when a transfer is interrupted; if the writer is
// not an Aborter, the incomplete file stays.
type Aborter interface {
	Abort() error
}

// The states of a phone that this package distinguishes. Any other state, such
// as recovery, is sent to the client and behaves like StateDevice.
const (
	StateDevice       = "device"
	StateOffline      = "offline"
	StateUnauthorized = "unauthorized"
)

// The features that affect how this package responds.
const (
	// FeatureShell is the shell protocol: exit codes, separate stderr, end of
	// stdin. Phones before Android 7 lack it.
	FeatureShell = "shell_v2"
	// FeatureStat and FeatureList provide 64-bit sizes in the sync protocol.
	FeatureStat = "stat_v2"
	FeatureList = "ls_v2"
)

// ModernFeatures returns those features of a present-day phone that this
// package supports.
func ModernFeatures() []string {
	return []string{FeatureShell, FeatureStat, FeatureList, "fixed_push_mkdir"}
}

// Identity is the information about a phone in `adb devices -l` and in the
// banner.
type Identity struct {
	Serial, Product, Model, Device string
	// State is device, offline or unauthorized; an empty value means device.
	State string
	// Session changes whenever the phone's adbd restarts, through a reboot or
	// adb root; connections from before the restart are interrupted.
	Session uint64
	// Features lists the features of the phone, such as shell_v2 and stat_v2. A
	// phone without shell_v2 behaves like an old phone; see ModernFeatures.
	Features []string
}

func (id Identity) state() string {
	if id.State == "" {
		return StateDevice
	}
	return id.State
}

// serves reports whether a phone in this state accepts services.
func (id Identity) serves() bool {
	return id.state() != StateOffline && id.state() != StateUnauthorized
}

func (id Identity) has(feature string) bool { return slices.Contains(id.Features, feature) }
