// Package androidsim is a phone in memory. Its processes follow memory models
// (steady, warm-up, GC sawtooth, periodic load, peaks, steps, caches, leaks of each
// kind at a given rate, crash and restart), and everything it prints has the
// format of the Android version that it says it is.
//
// It is a Phone of package adbd: put into an adbd.Server it cannot be told from
// a phone behind an adb server, and nothing needs to be installed. Tests and
// `leakgate demo` feed on it.
//
// # Time scale
//
// The phone's clock is
//
//	uptime = uptime at New + real time since New * Options.Scale
//
// so with a scale of 200 an hour of device time passes in 18 seconds. Everything
// that takes time on the phone takes device time: sleep, timeout, dumpsys, monkey,
// am dumpheap. What a host wants to do every 30 device seconds it must do every
// 30/Scale real seconds; it reads the scale with
//
//	getprop leakgate.time_scale
//
// which prints 1 on this phone without a scale and nothing on a real one. All
// time comes from package time, so a phone in a testing/synctest bubble runs on
// the bubble's clock, and none of its goroutines waits for anything that the
// bubble does not see.
//
// # Truth
//
// The memory of a process is a function of the seed, the process's name and
// user, its incarnation and the device time, and of nothing else but what was
// done to it (a signal for a GC, a freeze, tests). Two readings at one time agree
// whichever way they take: the Pss and SwapPss lines of smaps, smaps_rollup and
// showmap, and the TOTAL of dumpsys meminfo less EGL and GL mtrack, are the same
// number. Phone.Memory tells it without any text.
//
// # Heap dumps
//
// am dumpheap writes a dump as ART does, with what the process's Java leaks hold by
// then as destroyed Activities in a static list: as many as dumpsys meminfo counts,
// which retain as many bytes as the model says. Of the rest of the heap it shows a
// few megabytes. The file is made each time that it is read, so its size costs nothing:
// ProcessSpec.DumpBytes makes it as large as a test needs.
//
// # Screens
//
// An app with App.Screens is driven as a suite drives one: am start opens a screen, the keys
// BACK and HOME of input close and leave it, and am force-stop ends all. What a screen does
// once it is closed (is garbage, lingers, leaks, leaves memory or threads), or when it opens
// (crashes, blocks), is in its Screen. dumpsys meminfo, gfxinfo, the memory and the heap dumps
// of the process agree on it: a dump holds open screens by ActivityThread.mActivities, those
// that leak by a static list, and those that linger by a Message of the main thread.
//
// # Tests of an app
//
// am instrument runs the tests of Options.Instrumentations: it stops the app, runs them in
// a process of its own, and stops it again. What it prints is what AndroidJUnitRunner
// and am print of tests that pass, fail, crash or are skipped. What a test leaks shows in
// dumpsys meminfo and in heap dumps until the process ends. The tests run by the phone's
// clock, also when the shell that has started them is gone.
//
// # The end of a process
//
// Why a process of an app ended (crash, low memory, signal, force-stop) is what dumpsys
// activity exit-info says since Android 11, over reboots, and what logcat has of this
// boot: there are also the collections of each process, and its heap dumps. All are in
// the words of the release. logcat keeps the newest 4096 entries.
//
// # Faults
//
// Whatever can go wrong with a phone can be switched on and off while it runs. Each
// is a method that returns its end; several add up, and none costs anything while
// it is off. Times are those of the device.
//
//	Become, RebootFor           away from adb: offline, unauthorized, rebooting
//	LoseRoot, OldShell          another adbd
//	TearOutput, GarbleOutput,   the output of commands: cut with or without a
//	FloodOutput                 status, with wrong bytes, without an end
//	BreakFile                   a file that is missing, denied, empty or gone
//	DelayDumpsys, HangDumpsys,  dumpsys: its time is up, it never ends, its service
//	CrashSystem                 is not found
//	DieInSample, ReusePID       processes; Kill, Restart and Freeze too
//	StepClock, FillDisk         the wall clock, the disk
//	CutDump                     a heap dump that is cut though am says it is whole
//	AtRequest                   any of them, and an adbd.Line unplugged, at the n-th
//	                            request of adb or in the middle of a pull
//
// /dev/zero, /dev/urandom and yes send for ever, as on any phone. Faults of the
// cable are those of an adbd.Line. Faults lists all of them for tests that choose
// at random.
//
// # Isolation
//
// Commands and files are in memory. The shell is an evaluator of its own over
// the syntax tree of mvdan.cc/sh (mksh, the shell of Android): nothing is ever
// executed or opened on the host. Size of files, variables and outputs, depth of
// recursion and number of jobs have caps, so that a hostile command line cannot
// take the host's memory; an endless one ends with its context.
//
// It refuses what it does not know the way a phone does ("inaccessible or not
// found"). It has no network, no package installation, no display (input accepts
// events and drops all but the keys BACK and HOME), and arrays, coprocesses and select are
// missing from its shell.
package androidsim
