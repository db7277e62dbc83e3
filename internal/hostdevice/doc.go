// Package hostdevice makes this machine act as a phone for tests: commands that
// arrive over adb run here, Java virtual machines that really leak stand in for
// the app, and the commands of a phone that Linux lacks (am, dumpsys meminfo,
// logcat, showmap, getprop, pidof, run-as, monkey) are installed in front of
// the machine's own tools. The values come from the kernel: the growing memory
// is real, smaps_rollup is the real file, and a killed process is really gone.
//
// A device can run faster than real time. At scale S its clock, as shown by
// `cat /proc/uptime` and the first lines of dumpsys, runs S times as fast after
// the device starts, the app leaks S times as fast, and monkey sleeps for 1/S
// of the time. The property leakgate.time_scale contains S, which the device
// reports nowhere else; a real phone has no such property. Start times in
// /proc/PID/stat are not scaled: they identify a process, but cannot be
// compared with the device's clock. If S is 1, the real cat is used.
//
// The app is one package. Each activity starts a process that leaks in its own
// way: am start -n PACKAGE/.Java, .Native, .Threads or .Control starts the
// PACKAGE:java, :native, :thread or :control process; .All starts all four. The
// extras mb_per_h and for_s set the rate and the duration of the leak in device
// time. The other activities, with processes named in the same way:
//
//	.Mapped   leaks in a mapping that has a name, leak.bin
//	.WarmUp   grows to mb_per_h * for_s and stays there
//	.Cache    allocates mb_per_h forever and keeps what it allocated in the last
//	          for_s
//	.Busy     leaks like .Java and produces four times as much garbage, so
//	          its heap is a sawtooth, like that of an app
//	.Files    leaves four files open per MB, until it dies at Options.FileLimit
//	.Private  leaks like .Java and .Threads, in a map whose keys are addresses and
//	          phone numbers, with threads named after them
//	.Screens  opens and closes ten screens at each signal 28; tasks hold half of
//	          them for at most two seconds
//	.Kept     is like .Screens, but keeps one screen
//	.List, .Buffers, .Filling, .Steady
//	          run one loop of a scenario at each signal 28. A loop of .List keeps
//	          an object, one of .Buffers keeps 200 kB outside the Java heap, one
//	          of .Filling keeps both until a cache is full after five loops, and
//	          one of .Steady keeps nothing
//
// An analysis treats .Screens and .Kept as Android apps. For a process that
// dies at Options.HeapMB, the log and exit-info show a crash caused by an
// OutOfMemoryError, as for an Android app.
//
// /data/local/tmp is a directory of the device; the path is replaced in the
// text of a command before the shell reads it.
//
// The shell can be served in two ways. A Daemon of package adbd serves the
// shell on an address without added latency, and kills all processes that a
// command started. Device.Nest serves the shell with Android's own adbd behind
// an adb server, both in separate namespaces. There, no path in a command is
// replaced: adbd's shell runs the command line, and a process that would
// outlive its connection on a phone also does so here. With the UIDs of a
// phone, the kernel then behaves as on a user build.
//
// The device has no screen, no GPU and only one Android user. It is for tests
// on Linux. Anyone who can connect to it gets a shell of the user that runs it:
// serve it on loopback only.
package hostdevice
