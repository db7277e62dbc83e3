// Package androidsim simulates phones in memory. Their processes follow memory
// models (steady, warm-up, GC sawtooth, periodic load, peaks, steps, caches,
// leaks of each kind at a given rate, crash and restart), and every output has
// the format of the phone's Android version.
//
// A Phone implements the Phone interface of package adbd. Behind an
// adbd.Server, it cannot be distinguished from a real phone behind an adb
// server, and neither adb nor an emulator needs to be installed. Tests and
// `leakgate demo` use this package.
//
// # Time scale
//
// The clock of the phone is
//
//	uptime = uptime at New + real time since New * Options.Scale
//
// so with a scale of 200 an hour of device time passes in 18 seconds.
// Everything that takes time on the phone takes device time: sleep, dumpsys,
// monkey, am dumpheap. To do something every 30 device seconds, a host must do
// it every 30/Scale seconds of its own time; it reads the scale with
//
//	getprop leakgate.time_scale
//
// which prints 1 on this phone without a scale and nothing on a real one. All
// times come from package time, so a phone in a testing/synctest bubble uses
// the bubble's clock, and its goroutines only wait for events inside the
// bubble.
//
// # Truth
//
// The memory of a process is a function of the seed, the name and user of the
// process, its life, the device time, and what was done to it (a signal for a
// GC, a freeze, tests). Readings taken at the same time agree, whatever their
// source: the sum of the Pss and SwapPss lines of smaps, smaps_rollup and
// showmap equals the TOTAL of dumpsys meminfo minus EGL and GL mtrack.
// Phone.Memory returns these values directly.
//
// # Heap dumps
//
// am dumpheap writes a dump in the format of ART. The Java leaks of the process
// are destroyed Activities in a static list: as many as dumpsys meminfo counts.
// These Activities retain as many bytes as the model specifies. A few megabytes
// represent the rest of the heap. The file is generated on each read, so its
// size costs no memory: ProcessSpec.DumpBytes makes it as large as a test
// needs.
//
// # Screens
//
// A suite can drive an app with App.Screens: am start opens a screen, the BACK
// and HOME keys of the input command close or leave it, and am force-stop stops
// the app. dumpsys meminfo, dumpsys gfxinfo, the memory of the process and its
// heap dumps agree on the screens in memory. In a dump, open screens are in
// ActivityThread.mActivities, leaking screens are in a static list, and a
// Message of the main thread refers to screens that linger.
//
// # Faults
//
// Everything that can go wrong with a phone can be switched on and off while it
// runs. Each fault is a method that returns a function to end it. Faults can be
// combined, and an inactive fault has no overhead. Times are device times.
// Faults of the cable are methods of adbd.Line. Faults lists all faults for
// tests that choose at random.
//
// # Isolation
//
// Commands and files are in memory; nothing is ever executed or opened on the
// host. Package ksh implements the shell and bounds what a command line can
// use; this package bounds the size of files.
//
// There is no network, no package installation and no display: input only acts
// on the keys BACK and HOME.
package androidsim
