// Package gatecalibrate measures the error rates of the gate. Its tests run
// programs on a JVM and an app on the simulated phone, many times each, and
// dump their heaps after every loop. They compare runs of one build, and of
// builds that differ, like `leakgate gate`. A few runs are enough for CI; with
// -calibrate the tests run all of them and compare the figures of
// docs/gate-calibration.md with their limits.
package gatecalibrate
