// Package adb is a client of the adb SERVER protocol (AOSP adb/OVERVIEW.TXT,
// adb/SERVICES.TXT, adb/SYNC.TXT): it lists devices, runs shell commands with
// their exit status, and transfers files. It needs a running adb server; if
// none listens on this machine, it runs `adb start-server`.
//
// Unlike the adb program, it is suitable for measuring: a connection that ends
// before the exit status is always an error, no process is started per command,
// a running server of another version is never replaced, and every stream from
// a device has a byte limit.
//
// # Servers and devices that disappear
//
// A Client or Device is not tied to one server or connection: the next call
// reconnects, and finds the device by its serial.
//
// The first start of a server is immediate. If a server disappears, the client
// first waits 3 s for it to return, since another adb program may be replacing
// it. If it does not return, the client starts one: at most once every 10 s,
// one at a time for all clients of the process, and never with Options.NoStart.
// A request that the server drops without a response, as it does when it exits,
// is sent once more if nothing has reached a device. A listening server is used
// whatever its version.
//
// A new server does not list network devices: earlier `adb connect` calls are
// lost. So a device whose serial is HOST:PORT, and which the server does not
// list, is connected when it is needed, at most once every 5 s.
// Options.NoConnect turns these connections off. These connections are made by
// default, because the serial was chosen by the caller or from a list, and
// because an overnight run must survive a restart. A device that was
// disconnected by hand is therefore reconnected as long as it is used. Three
// kinds of devices are not connected by the client: those that the server
// lists, whatever their state, since the server itself reconnects offline ones;
// those with mDNS names, which the server discovers; and USB devices whose
// serial, which the vendor chooses freely, only looks like an address.
//
// # Commands end with their caller
//
// When a connection ends, adbd does not signal its command at all (shell v1
// without a terminal), or signals only the shell with SIGHUP (shell v2). The
// children of a compound command continue (AOSP adb/daemon/shell_service.cpp,
// Subprocess::PassDataStreams). So every command line is sent after a prefix
// that consists of one shell builtin,
//
//	echo TOKEN $$ >&2; COMMAND
//
// with a new random TOKEN each time. The client removes that line from the
// output and reads the process id from it. A call that ends early (context,
// byte limit, failing writer) opens a second, short connection that sends
// SIGKILL to the process group: adbd calls setsid before it starts the shell,
// so the group is the command with all its children. The first connection stays
// open until then. Before the kill, the client checks whether the exit status
// or the end of the stream has already arrived. While the first connection is
// open, adbd has not yet reaped a command of shell v2. A command of another
// service may have been reaped, but only moments before. The process id
// therefore cannot have been reused. Processes that have left the group
// (setsid) or changed their user (run-as, su) cannot be killed.
//
// The prefix does not start a process. But some shells execute a lone simple
// command without a fork, and need a fork if a prefix precedes it. A command
// that runs often can avoid that fork with `exec` before its last part.
package adb
