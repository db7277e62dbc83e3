// Package scenario simulates the memory of processes from a seed: noise,
// warm-ups, caches, garbage collection, steps, loads and leaks.
//
// A [Scenario] describes a process, a [Path] is one simulated process on a grid
// of 15 s, and [Play] feeds a path to a detector as a run would: at the
// intervals that the detector demands, with a breakdown when it is the
// process's turn. The measured alarm rates in docs/detector.md and the tests of
// the detector use this package.
package scenario
