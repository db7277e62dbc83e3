// Package shim implements the commands of a phone on a host device. One program
// contains all of them and acts as the command under whose name it is run.
//
// Commands that only read data (showmap, ps) run here with the rights of the
// shell, so the kernel denies them what the shell may not read. Commands that a
// system service handles on a phone (am, dumpsys, pm, run-as) are passed to the
// device. Tools that exist both on a phone and on this machine are not
// included: the real grep, ls or kill is run.
package shim
