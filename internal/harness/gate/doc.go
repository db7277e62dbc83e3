// Package gate compares what a run leaves behind with earlier runs and decides
// whether it is worse. Everything is measured per loop of the scenario, so that
// a longer run is not worse for its length: how many objects each loop leaves,
// and what each of them retains. The verdict is a pure function of the
// observations and the rules; nothing here reads a file or a clock.
package gate
