package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/leakgate/leakgate/internal/harness/bisect"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

func bisectCommand(c *console) *cobra.Command {
	f := &bisectFlags{}
	cmd := &cobra.Command{
		Use: "bisect --good A --bad B --key K -- COMMAND...", GroupID: groupGate,
		Short: "find the commit that introduced a leak",
		Long: `Search the commits between A and B for the one that introduced a leak, with git bisect.
COMMAND builds the app and runs leakgate (run, watch or trip) at each commit; its run
directories go to the directory in the variable ` + bisect.RunsVariable + `.

A commit is bad if its runs prove the leak, and good if they reach a verdict and do not have
the leak. It is skipped if the build failed, nothing could be judged, or a leak of the same
class grows under a key that B does not have: a rename changes the key. A and B are tested
first. At the end, the checkout is restored.`,
		Example: `  leakgate bisect --good v4.1 --bad HEAD --key d97295ca -- ./leak.sh
  leakgate bisect --good v4.1 --bad HEAD --key d97295ca --json -- make leak`,
		Annotations: manual{exits: `0 the commit was found
2 the command line or the checkout is invalid, A has the leak, or B does not have it
5 commits that could not be judged prevent an answer; the remaining candidates are listed
130 interrupted; the checkout is restored`}.annotations(),
		RunE: c.run(f.bisect),
	}
	flags := cmd.Flags()
	flags.Var(word(&f.good, "COMMIT"), "good", "commit without the leak")
	flags.Var(word(&f.bad, "COMMIT"), "bad", "commit with the leak")
	flags.Var(word(&f.key, "KEY"), "key", "key of the leak, or its first 8 digits")
	flags.Var(number(&f.confirm, "N", 1), "confirm",
		"number of runs without the leak that prove a commit good; "+
			"use more than 1 for an intermittent leak (default 1)")
	flags.Var(word(&f.keep, "DIR"), "keep", "keep the run directories in DIR, outside of the checkout")
	flags.BoolVar(&f.asJSON, "json", false, jsonUsage)
	return cmd
}

type bisectFlags struct {
	good, bad, key, keep string
	confirm              int
	asJSON               bool
}

// bisected is the JSON form of the result.
type bisected struct {
	Schema string `json:"schema"`
	// First is the commit that introduced the leak, nil if it is unknown.
	// Candidates lists the commits that may have introduced the leak.
	First      *bisectedCommit  `json:"first_bad"`
	Candidates []bisectedCommit `json:"candidates"`
	Judged     []bisectedCommit `json:"judged"`
}

type bisectedCommit struct {
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Subject string `json:"subject"`
	Outcome string `json:"outcome,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func (f *bisectFlags) check(args []string) error {
	switch {
	case f.good == "", f.bad == "":
		return errors.New("no commits to search: add --good COMMIT and --bad COMMIT")
	case f.key == "":
		return errors.New("no leak to search for: add --key KEY, as reports show it")
	case !keyForm.MatchString(f.key):
		return fmt.Errorf("--key: %w", invalid(f.key, "8 to 64 hexadecimal digits, as reports show them"))
	case len(args) == 0:
		return errors.New("no command to run at each commit: add it after --, such as -- ./leak.sh")
	}
	return nil
}

func (f *bisectFlags) bisect(c console, args []string) int {
	if err := f.check(args); err != nil {
		return c.usage(err)
	}
	// The checkout must be restored even if the terminal closes or nobody reads
	// the output any more.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	unread := make(chan os.Signal, 1)
	signal.Notify(unread, syscall.SIGPIPE)
	defer signal.Stop(unread)
	result, err := bisect.Search(ctx, bisect.Options{
		Dir: ".", Good: f.good, Bad: f.bad, Key: f.key, Command: args, Confirm: f.confirm, Runs: f.keep,
		Say: func(line string) { c.note("%s", line) }, Stdout: c.err, Stderr: c.err,
	})
	switch {
	case ctx.Err() != nil:
		c.problem("interrupted; the checkout is restored")
		if err != nil && !errors.Is(err, ctx.Err()) {
			c.problem("%s", text.Printable(err.Error()))
		}
		return record.ExitInterrupted
	case err != nil:
		c.problem("%s", text.Printable(err.Error()))
		return exitUsage
	}
	if err := f.print(c, result); err != nil {
		c.problem("print the result: %v", err)
		return exitUsage
	}
	if result.First == nil {
		return record.ExitInconclusive
	}
	return exitOK
}

// print writes the result.
func (f *bisectFlags) print(c console, r bisect.Culprit) error {
	if !f.asJSON {
		_, err := fmt.Fprintln(c.out, text.Printable(r.String()))
		return err
	}
	out := bisected{Schema: "leakgate.bisect/1", Candidates: []bisectedCommit{}, Judged: []bisectedCommit{}}
	if r.First != nil {
		out.First = new(shownCommit(*r.First))
	}
	for _, x := range r.Among {
		out.Candidates = append(out.Candidates, shownCommit(x))
	}
	for _, x := range r.Judged {
		shown := shownCommit(x.Commit)
		shown.Outcome, shown.Reason = string(x.Outcome), x.Reason
		out.Judged = append(out.Judged, shown)
	}
	return printJSON(c.out, out)
}

func shownCommit(x bisect.Commit) bisectedCommit {
	return bisectedCommit{Commit: x.Hash, Date: x.Date.Format("2006-01-02"), Subject: x.Subject}
}
