// Package nest sets up the network and the file system in which a real adb
// server and a real adbd run, in separate namespaces.
//
// adbd listens on every address and gives a shell to anyone who can connect to
// it. Therefore its network has only a loopback interface, and sockets to the
// hypervisor are forbidden. The root of the file system looks like a phone's:
// /data and /system/bin are the device's directories, /system is read-only, and
// the rest is this machine's. There is no separate pid namespace, so the shell
// finds the processes of the device's app. A nest requires root; package
// hostdevice creates the namespaces.
package nest
