// Package proctable lists the processes of this machine as a phone shows them:
// by the first word of their command line, which Android sets to the process
// name of the app.
package proctable
