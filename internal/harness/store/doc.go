// Package store keeps the baseline of the gate between runs: in a file, on a
// branch of a git repository, with a program that the user provides, or as an
// artifact of GitHub Actions. The store treats a baseline as opaque data of
// limited size.
package store
