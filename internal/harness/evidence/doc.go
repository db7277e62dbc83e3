// Package evidence reads what the gate compares: from a run directory, from
// heap dumps of a scenario in the order of its loops, or from a report of
// LeakCanary. A run directory may be untrusted: no name in it leads outside,
// and everything that is read is bounded.
package evidence
