// Package proctable lists the processes of this machine as a phone would show
// them: each is identified by the first word of its command line, which Android
// sets to the name of the app's process.
package proctable
