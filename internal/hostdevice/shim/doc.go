// Package shim implements the commands of a phone on a host device. One program
// contains them all and runs under the name of the command.
//
// Commands that only read run here, with the rights of the shell, so that the
// kernel denies what the shell may not read (showmap, ps). Commands that a
// system service handles on a phone are passed to the device (am, dumpsys, pm,
// run-as). Tools that both a phone and this machine have are not included: the
// real grep, ls or kill runs.
package shim
