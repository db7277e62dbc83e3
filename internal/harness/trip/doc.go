// Package trip repeats a scenario and reports what each repetition adds to a
// process: objects, threads, files, memory by dimension and, from heap dumps,
// the places that accumulate objects. A leak adds the same amount with every
// loop; caches that fill, one-time initialization and noise do not. The idea
// comes from LeakCanary's repeating scenarios (ObjectGrowthDetector); counts,
// native memory and an interval for each rate have been added.
package trip
