// Package proctable lists the processes of this machine as a phone shows them:
// each is identified by the first word of its command line, which Android sets
// to the process name of the app.
package proctable
