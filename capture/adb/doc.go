// Package adb is a client of the adb SERVER protocol (AOSP adb/OVERVIEW.TXT,
// adb/SERVICES.TXT, adb/SYNC.TXT): it lists devices, runs shell commands with
// their exit status, and moves files. It needs a running adb server; where none
// listens on this machine it runs `adb start-server`.
//
// It refuses what makes the adb program unfit for measuring: a connection that
// ends before the exit status is an error and never a short success, no process
// is started per command, a running server of another version is never replaced,
// and every stream from a device has a byte cap.
//
// # The server and the device may come and go
//
// Nothing of a Client or Device is tied to one server or connection: the next call
// connects anew, and finds the device by its serial.
//
// The first start of a server is done at once. A server that was there and has gone
// is waited for first, 3 s from the moment it was missed, since another adb program
// may be replacing it; then one is started, at most every 10 s, one at a time for
// all clients of the process, and never with Options.NoStart. A request that the
// server drops without a word, which is how it ends, is sent once more before
// anything has reached a device. A server that listens is used whatever its
// version.
//
// A server that starts knows no device of the network: those that `adb connect`
// has added before are forgotten. So a device whose serial is HOST:PORT, and which
// the server does not list, is connected by the way, at most every 5 s. This has
// no option: the serial was named to be used, by the caller or by the list that it
// was selected from, and a run of a night must outlive a restart. A device that
// was disconnected by hand is therefore connected again as long as it is used. Left
// alone are devices that the server lists in whatever state, since it brings back
// itself what is offline; names by mDNS, which it finds itself; and USB devices
// whose serial, which is theirs to choose, only looks like an address.
//
// # Commands end with their caller
//
// adbd signals a command whose connection ends either not at all (shell
// v1 without a terminal) or with SIGHUP to the shell alone (shell v2), so the
// children of a compound command run on (AOSP adb/daemon/shell_service.cpp,
// Subprocess::PassDataStreams). So every command line is sent behind a prefix of
// one shell builtin,
//
//	echo TOKEN $$ >&2; COMMAND
//
// with a new random TOKEN each time. The client takes that line out of the output
// and knows the process id. A call that ends early (context, byte cap, failing
// writer) opens a second, short connection that sends SIGKILL to the process
// group: adbd calls setsid before it starts the shell, so the group is the
// command with all its children. The first connection stays open until then, and an
// exit status or end that is on its way is looked for first: while that stream is
// open adbd has not reaped a shell v2 command at all, and any other only this
// moment, so the process id has not gone to somebody else. What has left the group (setsid) or changed its user (run-as,
// su) is out of reach.
//
// The prefix costs no process. Yet some shells start a lone simple command
// without a fork and fork it behind a prefix: a command that runs often saves that
// fork by saying `exec` before its last part.
package adb
