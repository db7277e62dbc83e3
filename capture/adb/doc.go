// Package adb is a client of the adb SERVER protocol (AOSP adb/OVERVIEW.TXT,
// adb/SERVICES.TXT, adb/SYNC.TXT): it lists devices, runs shell commands with
// their exit status, and moves files. It needs a running adb server; where none
// answers on this machine it starts `adb start-server` once.
//
// It refuses what makes the adb program unfit for measuring: a connection that
// ends before the exit status is an error and never a short success, no process
// is started per command, a running server of another version is never replaced,
// and every stream from a device has a byte cap.
//
// # Commands end with their caller
//
// adbd signals a command whose connection ends either not at all (exec and shell
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
