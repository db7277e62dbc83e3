// Package nest sets up the inside of a nest: a network and a file system view
// in which a real adb server and a real adbd run.
//
// adbd listens on every address and gives anyone who reaches it a shell.
// Therefore its network has only a loopback, and no sockets to the hypervisor.
// The root of the file system is a phone's: /data and /system/bin are the
// device's, /system is read-only, and the rest is this machine's. Processes
// keep their pids, by which they find the device's app. A nest requires root;
// package hostdevice makes the namespaces.
package nest
