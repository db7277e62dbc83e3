// Package bisect finds the commit that introduced a leak: it runs a command at
// the commits that git bisect chooses, and reads the verdict from the run
// directories that the command creates. A commit is bad if its run proves the
// leak. A commit is good only if its run reached a verdict and the leak is
// absent or does not grow. All other commits are skipped. If skipped commits
// prevent an answer, the result is a range. At the end the repository is
// restored.
package bisect
