// Package scenario simulates the memory of processes: noise, warm-ups, caches,
// garbage collection, steps, loads and leaks, from a seed.
//
// A [Scenario] is the recipe, a [Path] one process on a grid of 15 s, and
// [Play] feeds a path to a detector like a run would: at the intervals that it
// demands, with a breakdown when it is the process's turn. The measured alarm
// rates in docs/detector.md and the tests of the detector come from here.
package scenario
