// Package hostdevice makes this machine a phone for tests: commands that come
// over adb run here, really leaking Java virtual machines stand in for the app,
// and what a phone has and a Linux machine has not (am, dumpsys meminfo, logcat,
// showmap, getprop, pidof, run-as, monkey) is installed as commands in front of
// the machine's own tools. Numbers are the kernel's own: the memory that grows
// is real, smaps_rollup is the real file, a killed process is really gone.
//
// A device can live faster than the world. At scale S its clock, as `cat
// /proc/uptime` and the head of dumpsys show it, runs S times as fast from the
// moment it started, the app leaks S times as fast, and monkey sleeps S times as
// short. The property leakgate.time_scale tells S, and it is the only way in
// which a device tells it; a real phone has no such property. Start times in
// /proc/PID/stat stay those of the machine: they identify a process and do not
// date it. Where S is 1, nothing stands in front of the real cat.
//
// The app is one package with four activities, one way to leak each:
// am start -n PACKAGE/.Java, .Native, .Threads or .Control starts the process
// PACKAGE:java, :native, :thread or :control; .All starts the four. The extras
// mb_per_h and for_s set the rate and its duration in device time. .Mapped
// (PACKAGE:mapped) leaks in a mapping that has a name, leak.bin. Two more grow
// and leak nothing: .WarmUp (PACKAGE:warmup) comes to mb_per_h * for_s and stays,
// .Cache (PACKAGE:cache) takes mb_per_h for ever and keeps that of the last for_s.
// .Busy (PACKAGE:busy) leaks as .Java does and makes four times as much garbage, so
// that its heap is a saw as an app's is; .Files (PACKAGE:files) leaves four files open
// for each MB, until it dies of Options.FileLimit. Whatever dies of Options.HeapMB has a crash
// by an OutOfMemoryError in the log and in exit info, as an app of Android has. .Private (PACKAGE:private) leaks as
// .Java and .Threads do, in a map whose keys are addresses and numbers of people, with
// threads that are named after them. .Screens (PACKAGE:screens) opens and closes ten screens
// at each signal 28, half of which tasks hold for two seconds at most; .Kept (PACKAGE:kept)
// does so, too, and keeps one of them. An analysis takes these two for apps of Android.
// .List, .Buffers, .Filling and .Steady (PACKAGE:list and so on) do one loop of a scenario at
// each signal 28: they keep an object of it, 200 kB outside of the Java heap, both until a cache
// is full after five loops, and nothing.
//
// /data/local/tmp is a directory of the device; the path is replaced in the
// text of a command before the shell sees it.
//
// Its shell has two faces. A Daemon of package adbd serves it on an address, as
// fast as that goes, and ends what a command has started. Device.Nest serves it by
// Android's own adbd behind an adb server, both in namespaces of their own, where
// nothing is replaced: a command line is what adbd's shell makes of it, and what
// outlives its connection on a phone outlives it here. With the users of a phone the
// kernel then gives the answers of a user build.
//
// It has no screen, no GPU and no users. It is for tests, Linux only, and gives
// whoever reaches it a shell of the user that runs it: serve it on loopback. It
// is fed by package adbd, whose Phone it is.
package hostdevice
