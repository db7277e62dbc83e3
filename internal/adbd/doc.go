// Package adbd is the phone side of adb: it puts what a Phone runs and holds
// behind the protocols that adb speaks, so that the client of this project, and
// the adb program itself, cannot tell it from a phone.
//
// There are two fronts. A Server poses as an adb server (the smart-socket
// protocol, usually on port 5037) with phones in memory. A Daemon poses as one
// device to a real adb server (the transport protocol, `adb connect`). Both
// offer the same services: shell with and without the shell protocol, exec and
// sync.
//
// The package holds protocol only. It runs no command and reads no file by
// itself and answers no service that needs more than a Phone (no forward,
// install, root, jdwp). Faults are played where they happen: those of the cable
// by a Line, put into a Wire hook, all others by the Phone.
//
// Sources of the rules, all in AOSP's packages/modules/adb (system/core/adb up
// to Android 11): OVERVIEW.TXT and SERVICES.TXT (smart socket), protocol.txt
// (transport), SYNC.TXT and daemon/file_sync_service.cpp (sync),
// shell_protocol.h and daemon/shell_service.cpp (shell), transport.cpp (lists
// and error texts), and the answers of the Debian release 29.0.6, which the
// tests run.
package adbd
