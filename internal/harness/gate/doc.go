// Package gate compares the leaks of a run with those of earlier runs and
// decides whether the run is worse. The package measures how many objects each
// loop of the scenario leaves, and how much memory each of these objects
// retains. A longer run is therefore not considered worse just because of its
// length. The verdict is a pure function of the observations and the rules; the
// package reads neither files nor the clock.
package gate
