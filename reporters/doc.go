// Package reporters writes text reports: of a run, a diagnosis, a replay, and
// of heap dumps, the difference between them and what holds their objects.
// Verdicts are computed elsewhere and only printed here. Text from a device or
// a dump is printed without control characters.
package reporters
