// Package evidence reads what the gate compares: from a run directory, from
// heap dumps of a scenario in the order of its loops, or from a LeakCanary
// report. A run directory may be untrusted: no path in it may point outside the
// directory, and the size of everything that is read is bounded.
package evidence
