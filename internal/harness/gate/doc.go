// Package gate compares what a run leaves behind with earlier runs and decides
// whether it is worse. Everything is measured per loop of the scenario, so that
// a longer run is not considered worse because of its length: how many objects
// each loop leaves, and how much memory each of them retains. The verdict is a
// pure function of the observations and the rules; the package reads no file
// and no clock.
package gate
