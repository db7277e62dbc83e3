// Package reporters writes reports for people: of a run, a diagnosis, a replay, and of
// heap dumps, what changed between them and what holds their objects. Every verdict was
// computed elsewhere and is only printed here. Whatever a device or a dump contains, a
// terminal only shows it.
package reporters
