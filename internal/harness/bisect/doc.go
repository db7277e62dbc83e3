// Package bisect finds the commit that brought a leak: it runs a command at the commits that git
// bisect chooses, and reads the verdict from the run directories that the command leaves behind.
// A leak that is proved makes a commit bad. A commit is good only if its run has judged and the
// leak is not there or does not grow; everything else is skipped, and an answer that skipped
// commits prevent is a range. The repository is left as it was.
package bisect
