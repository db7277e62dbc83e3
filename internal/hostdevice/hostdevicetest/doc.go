// Package hostdevicetest starts a host device behind a real adb server for a
// test, and stops both when the test ends.
package hostdevicetest
