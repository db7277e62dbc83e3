// Package reporters writes text reports about runs, diagnoses, replays and heap
// dumps, and about the differences between dumps and the paths to their
// objects. Verdicts are computed elsewhere and only printed here. Text from a
// device or a dump is printed without control characters.
package reporters
