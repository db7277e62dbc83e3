// Package adb is a client of the adb SERVER protocol (AOSP adb/OVERVIEW.TXT,
// adb/SERVICES.TXT, adb/SYNC.TXT): it lists devices, runs shell commands with
// their exit status, and transfers files. It needs a running adb server; if
// none listens on this machine it runs `adb start-server`.
//
// It avoids what makes the adb program unsuitable for measuring: a connection
// that ends before the exit status is an error and never a short success, no
// process is started per command, a running server of another version is never
// replaced, and every stream from a device has a byte limit.
//
// # Servers and devices that disappear
//
// Nothing in a Client or Device is tied to one server or connection: the next
// call reconnects, and finds the device by its serial.
//
// The first start of a server is immediate. A server that disappeared is first
// waited for, 3 s from when it was missed, since another adb program may be
// replacing it; then one is started, at most every 10 s, one at a time for all
// clients of the process, and never with Options.NoStart. A request that the
// server drops without an answer, which is how it exits, is sent once more as
// long as nothing has reached a device. A server that listens is used whatever
// its version.
//
// A new server knows no network devices: earlier `adb connect` calls are
// forgotten. So a device whose serial is HOST:PORT, and which the server does
// not list, is connected when it is needed, at most every 5 s. This is not
// optional: the serial was chosen by the caller or from a list, and an
// overnight run must survive a restart. A device that was disconnected by hand
// is therefore reconnected as long as it is used. Three kinds are not
// connected: devices that the server lists in whatever state, since it
// reconnects offline ones itself; mDNS names, which it discovers itself; and
// USB devices whose serial, which the vendor chooses freely, only looks like an
// address.
//
// # Commands end with their caller
//
// When a connection ends, adbd signals its command either not at all (shell v1
// without a terminal) or with SIGHUP to the shell only (shell v2), so the
// children of a compound command continue (AOSP adb/daemon/shell_service.cpp,
// Subprocess::PassDataStreams). So every command line is sent behind a prefix
// of one shell builtin,
//
//	echo TOKEN $$ >&2; COMMAND
//
// with a new random TOKEN each time. The client removes that line from the
// output and learns the process id. A call that ends early (context, byte
// limit, failing writer) opens a second, short connection that sends SIGKILL to
// the process group: adbd calls setsid before it starts the shell, so the group
// is the command with all its children. The first connection stays open until
// then, and is first checked for a pending exit status or end: while that
// stream is open adbd has not reaped a shell v2 command at all, and any other
// only just now, so the process id cannot have been reused. Processes that have
// left the group (setsid) or changed their user (run-as, su) cannot be killed.
//
// The prefix costs no process. But some shells execute a lone simple command
// without a fork, and fork it behind a prefix: a command that runs often saves
// that fork with `exec` before its last part.
package adb
