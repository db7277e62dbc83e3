// Package lease prevents two runs from using one device, or one run directory,
// at the same time. A run takes a lease on each resource, which is identified
// by a key. A second run that needs the same key waits, or fails with an error
// that names the first run.
package lease
