// Package trip repeats a scenario and reports what each repetition leaves behind in a process:
// objects, threads, files, memory by dimension and, from heap dumps, the places that hold more
// and more. A leak adds the same with every loop; what fills a cache, starts once or is noise
// does not. The idea is that of LeakCanary's repeating scenarios (ObjectGrowthDetector), with
// counts and native memory beside the heap, and an interval for each rate.
package trip
