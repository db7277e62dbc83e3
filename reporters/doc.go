// Package reporters writes reports for people and machines: the text of a run, of a
// diagnosis and of a heap dump, and leaks.csv. Every verdict was computed by the
// detector and is only printed here.
package reporters
