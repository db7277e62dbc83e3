// Package adbd is the device side of adb: it serves what a Phone runs and
// stores over the protocols of adb, indistinguishable from a phone to the
// client of this project and to the adb program.
//
// There are two front ends. A Server is an adb server (the smart-socket
// protocol, usually on port 5037) with phones in memory. A Daemon is one device
// for a real adb server (the transport protocol, `adb connect`). Both offer the
// same services: shell with and without the shell protocol, exec and sync.
//
// The package contains only the protocol. It runs no command and reads no file
// by itself, and has no service that needs more than a Phone (no forward,
// install, root, jdwp). Faults are simulated where they occur: those of the
// cable by a Line in a Wire hook, all others by the Phone.
//
// Sources of the rules, all in AOSP's packages/modules/adb (system/core/adb up
// to Android 11): OVERVIEW.TXT and SERVICES.TXT (smart socket), protocol.txt
// (transport), SYNC.TXT and daemon/file_sync_service.cpp (sync),
// shell_protocol.h and daemon/shell_service.cpp (shell), transport.cpp (lists
// and error texts), and the answers of the Debian release 29.0.6, which the
// tests run.
package adbd
