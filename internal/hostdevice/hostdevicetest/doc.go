// Package hostdevicetest starts a host device behind a real adb server for a
// test, and ends both with it. It is fed by tests of whatever talks to a phone.
package hostdevicetest
