// Package hostdevicetest starts a host device behind a real adb server for a
// test, and ends both with the test.
package hostdevicetest
