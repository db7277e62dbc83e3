// Package adbd is the device side of adb: it serves the commands and files of a
// Phone over adb's protocols. Neither leakgate's client nor the adb program can
// distinguish it from a real phone.
//
// There are two front ends. A Server is an adb server (the smart-socket
// protocol, usually on port 5037) with phones in memory. A Daemon is one device
// for a real adb server (the transport protocol, `adb connect`). Both offer the
// same services: shell with and without the shell protocol, exec and sync.
//
// The package implements only the protocol. It does not run commands or read
// files itself, and offers no service that needs more than a Phone (no forward,
// install, root, jdwp). Faults are simulated where they occur: cable faults by
// a Line in a Wire hook, all others by the Phone.
//
// The rules are from AOSP's packages/modules/adb (system/core/adb up to Android
// 11): OVERVIEW.TXT and SERVICES.TXT (smart socket), protocol.txt (transport),
// SYNC.TXT and daemon/file_sync_service.cpp (sync), shell_protocol.h and
// daemon/shell_service.cpp (shell), and transport.cpp (lists and error
// messages). Other rules are derived from the responses of Debian's adb 29.0.6,
// which the tests use.
package adbd
