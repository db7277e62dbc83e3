// Package gatecalibrate measures the error rates of the gate. Its tests run
// programs on a JVM and an app on the simulated phone, many times each, and
// dump their heaps after every loop. Like `leakgate gate`, they compare runs of
// one build and runs of different builds. A few runs are enough for CI; with
// -calibrate, the tests perform all runs and compare the figures in
// docs/gate-calibration.md with their limits.
package gatecalibrate
