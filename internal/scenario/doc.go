// Package scenario makes the memory of processes that never ran: noise, warm-ups,
// caches, garbage collection, steps, loads and leaks, from a seed.
//
// A [Scenario] is the recipe, a [Path] one process of it on a grid of 15 s, and [Play]
// shows a path to a detector the way a run would: at the intervals that it demands, a
// breakdown when it is the process's turn. The measured rates of alarms in
// docs/detector.md and the tests of the detector come from here. It knows nothing of
// devices and files.
package scenario
