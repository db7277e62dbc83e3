// Package adbd is the device side of adb: it serves the commands and files of a
// Phone over the protocols of adb. Neither the client of this project nor the
// adb program can distinguish it from a real phone.
//
// There are two front ends. A Server is an adb server (the smart-socket
// protocol, usually on port 5037) with phones in memory. A Daemon is one device
// for a real adb server (the transport protocol, `adb connect`). Both offer the
// same services: shell with and without the shell protocol, exec and sync.
//
// The package contains only the protocol. It runs no command and reads no file
// by itself, and has no service that needs more than a Phone (no forward,
// install, root, jdwp). Faults are simulated where they occur: cable faults by
// a Line in a Wire hook, all others by the Phone.
//
// The rules are from AOSP's packages/modules/adb (system/core/adb up to Android
// 11): OVERVIEW.TXT and SERVICES.TXT (smart socket), protocol.txt (transport),
// SYNC.TXT and daemon/file_sync_service.cpp (sync), shell_protocol.h and
// daemon/shell_service.cpp (shell), and transport.cpp (lists and error texts);
// and from the answers of the Debian release 29.0.6, which the tests run.
package adbd
