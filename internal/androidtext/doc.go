// Package androidtext formats the output of Android's tools: the tables of
// `dumpsys meminfo` and `showmap`, exit records, the log and its filters,
// monkey, and the usage messages, each as printed by the Android version with a
// given API level.
//
// The package works on plain values, without a device, file system or clock.
// The simulated phone and the host device therefore print the same output for
// the same numbers. The layouts follow recorded output of real phones and the
// AOSP sources named in the comments.
package androidtext
