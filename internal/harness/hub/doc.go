// Package hub shares one run among all processes of a test suite: the first
// process owns the devices and the run, and the others call it over a local
// socket.
//
// A [Hub] starts the run when it is first needed, lends its devices to one spec
// at a time, checks specs, and judges the suite at its end. A [Remote] is a
// client of a Hub in another process. Package harness connects both to Ginkgo;
// package hub does not depend on Ginkgo.
package hub
