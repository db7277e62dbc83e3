// Package androidtext prints what Android's tools print: the tables of
// `dumpsys meminfo` and `showmap`, exit records, the log and its filters, the
// output of monkey, and the usage texts, each as the release with a given API
// level prints it.
//
// Every text is made from plain values, without a device, a file or a clock, so
// that the simulated phone and the host device print the same text for the same
// numbers. The layouts follow AOSP's sources, named beside each of them, and
// recorded output of real phones.
package androidtext
