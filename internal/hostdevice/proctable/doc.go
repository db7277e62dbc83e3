// Package proctable lists the processes of this machine as a phone shows them:
// under the name that stands first in their command line, which Android sets to
// the process name of the app. It reads /proc and nothing else; the device and
// its commands feed on it.
package proctable
