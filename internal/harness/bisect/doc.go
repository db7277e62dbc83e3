// Package bisect finds the commit that introduced a leak: it runs a command at
// the commits that git bisect chooses, and reads the verdict from the run
// directories that the command leaves behind. A proven leak makes a commit bad.
// A commit is good only if its run reached a verdict and the leak is absent or
// does not grow; everything else is skipped. If skipped commits prevent an
// answer, the result is a range. The repository is restored.
package bisect
