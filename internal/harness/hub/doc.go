// Package hub is the one watch of a test suite that runs in several processes:
// the first process owns the devices and the run, and the others call it over a
// local socket.
//
// A [Hub] starts the run when it is first needed, lends its devices to one spec
// at a time, checks specs, and judges the suite at its end. A [Remote] is a Hub
// in another process. Package harness attaches them to Ginkgo; this package
// does not depend on it.
package hub
