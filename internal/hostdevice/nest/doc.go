// Package nest is the inside of a nest: a network and a view of the file system of
// their own, in which a real adb server and a real adbd meet.
//
// adbd listens on every address that it has and gives whoever reaches it a shell,
// so it has a network with nothing in it but a loopback, and no sockets to the
// hypervisor. In its view of the files the root is a phone's: /data and /system/bin
// are those of the device, nothing can be written to /system, and the rest is this
// machine's. Processes keep their numbers, by which they find the device's app.
// It refuses to work without root. Package hostdevice makes the namespaces and
// feeds it its plan.
package nest
