// Package capture is the way in: it finds the processes of an app on a device,
// probes how their memory can be read there, and reads it over two channels. The
// fast channel is one shell round trip for all due processes; the detail channel
// is one `dumpsys meminfo` at a time.
//
// It asks the device, parses what comes back and says what could not be had. It
// refuses to judge numbers, to wait for its own turn (the engine owns time) and
// to trust what a device prints: names are quoted for the shell, sizes are
// capped, and a value that is not there is unknown, never zero. It is fed by
// harness/monitor and by the verbs that ask a device once.
package capture
