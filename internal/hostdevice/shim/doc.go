// Package shim is what the commands of a phone do on a host device. One program
// carries them all and is started under the name of the command it stands for.
//
// Those that only read run here, with the rights of the shell, so that what the
// kernel refuses to the shell is refused (showmap, ps). Those that a system
// service answers on a phone are handed to the device (am, dumpsys, pm, run-as). A
// tool that a phone has and this machine has too is no part of it: the real
// grep, ls or kill runs. It refuses to work outside the shell of a device.
package shim
