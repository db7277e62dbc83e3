// Package gatecalibrate measures how often the gate is wrong. Its tests run programs on a JVM and an
// app on the simulated phone, many times each, dump their heaps after every loop, and compare runs of
// one build, and of builds that differ, as `leakgate gate` does. A few runs are enough for CI; with
// -calibrate the tests run all of them and hold the figures of docs/gate-calibration.md to their bars.
package gatecalibrate
