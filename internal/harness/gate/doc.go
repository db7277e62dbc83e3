// Package gate compares the leaks of a run with those of earlier runs and
// decides whether the run is worse. Everything is measured per loop of the
// scenario, so a longer run is not considered worse just because of its length:
// how many objects each loop leaves, and how much memory each of these objects
// retains. The verdict is a pure function of the observations and the rules;
// the package reads no file and no clock.
package gate
