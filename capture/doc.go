// Package capture finds the processes of an app on a device, determines how
// their memory can be read there, and reads it over two channels. The fast
// channel is one shell round trip for all due processes; the detail channel
// runs one `dumpsys meminfo` at a time.
//
// All output of a device is untrusted: names are quoted for the shell, sizes
// are capped, and a missing value is unknown, never zero. The package does not
// schedule readings: harness/monitor does.
package capture
