package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/internal/text"
)

func acceptCommand(c *console) *cobra.Command {
	f := &acceptFlags{}
	cmd := &cobra.Command{
		Use: "accept KEY", GroupID: groupGate,
		Short: "accept a leak until a given date",
		Long: `Add a leak to the file of accepted leaks, by its key, with a reason, an owner and an expiry
date. Commit the file: the gate and test suites read it. An accepted leak does not fail a run;
an expired entry does.

--current accepts all leaks that grow in a run: a starting point for an app that already leaks.`,
		Example: `  leakgate accept d97295ca --reason SHOP-12 --owner kim --until 2027-01-31
  leakgate accept --current --run main --reason x --owner kim --until 2027-01-31`,
		Annotations: manual{exits: `0 the leaks are in the file
2 the command line, the file or the run directory is invalid`, page: "docs/formats/accepted.md"}.annotations(),
		RunE: c.run(f.accept),
	}
	flags := cmd.Flags()
	flags.Var(word(&f.reason, "TEXT"), "reason", "why the leak is accepted")
	flags.Var(word(&f.owner, "NAME"), "owner", "who will fix the leak")
	flags.Var(word(&f.until, "DATE"), "until", "last day on which the entry applies, such as 2027-01-31")
	flags.Var(word(&f.file, "FILE"), "accepted", "file to add to (default "+acceptedName+")")
	flags.BoolVar(&f.current, "current", false, "accept all leaks that grow in the run")
	flags.Var(word(&f.run, "DIR"), "run", "run directory for --current")
	return cmd
}

type acceptFlags struct {
	reason, owner, until, file, run string
	current                         bool
}

// keyForm matches a key, or at least the first 8 digits of one.
var keyForm = regexp.MustCompile(`^[0-9a-f]{8,64}$`)

func (f *acceptFlags) check(args []string) (time.Time, error) {
	switch {
	case f.current && len(args) > 0:
		return time.Time{}, errors.New("--current accepts all leaks of a run: remove the KEY")
	case f.current && f.run == "":
		return time.Time{}, errors.New("--current needs a run: add --run DIR")
	case !f.current && f.run != "":
		return time.Time{}, errors.New("--run needs --current")
	case !f.current && len(args) != 1:
		return time.Time{}, fmt.Errorf("want one leak key, got %d; reports show the keys", len(args))
	case !f.current && !keyForm.MatchString(args[0]):
		return time.Time{}, fmt.Errorf("KEY: %w",
			invalid(args[0], "8 to 64 hexadecimal digits in lower case, as reports show them"))
	case f.reason == "", f.owner == "", f.until == "":
		return time.Time{}, errors.New("an accepted leak needs --reason, --owner and --until")
	}
	until, err := time.ParseInLocation(time.DateOnly, f.until, time.Local)
	if err != nil {
		return until, fmt.Errorf("--until: %w", invalid(f.until, "a date, such as 2027-01-31"))
	}
	if f.until < time.Now().Format(time.DateOnly) {
		return until, fmt.Errorf("--until: %s is in the past", f.until)
	}
	return until, nil
}

func (f *acceptFlags) accept(c console, args []string) int {
	until, err := f.check(args)
	if err != nil {
		return c.usage(err)
	}
	keys := args
	if f.current {
		if keys, err = f.growing(c); err != nil {
			c.problem("%s", printableError(err))
			return exitUsage
		}
	}
	added, err := f.write(keys, until)
	if err != nil {
		c.problem("%v", err)
		return exitUsage
	}
	if added == 0 {
		c.note("nothing to add to %s", text.Printable(cmp.Or(f.file, acceptedName)))
		return exitOK
	}
	c.note("%s added to %s; commit it", text.Count(added, "leak was", "leaks were"),
		text.Printable(cmp.Or(f.file, acceptedName)))
	return exitOK
}

// growing returns the keys of the leaks that grow in the run. It reads the
// record of the run. A comparison of heap dumps has no run.json, so gate.json
// is read instead.
func (f *acceptFlags) growing(c console) ([]string, error) {
	ctx, stop := untilInterrupt()
	defer stop()
	rows, err := f.provedRows(ctx)
	var keys []string
	for i := range rows {
		keys = append(keys, rows[i].Key)
	}
	if err == nil && len(keys) == 0 {
		c.problem("no leak grows in this run")
	}
	return keys, err
}

func (f *acceptFlags) provedRows(ctx context.Context) ([]comparison.Row, error) {
	_, err := os.Stat(filepath.Join(f.run, "run.json"))
	if errors.Is(err, fs.ErrNotExist) {
		if result, rerr := readComparison(f.run); rerr == nil {
			return slices.DeleteFunc(result.Leaks, func(r comparison.Row) bool { return !grows(result, &r) }), nil
		}
	}
	ev, err := readRun(ctx, f.run)
	if err != nil {
		return nil, err
	}
	return (&gateSettings{}).proved(ev), nil
}

// grows reports whether --current must accept a row of a comparison: growth of
// one of the app's measures, or a leak in the app that its object counts prove.
func grows(c *comparison.Comparison, r *comparison.Row) bool {
	if r.Library || r.Status == comparison.Accepted || !keyForm.MatchString(r.Key) {
		return false
	}
	if r.Type == gate.TypeMeasure {
		return true
	}
	if r.Type != gate.TypeLeak {
		return false
	}
	return slices.ContainsFunc(c.Processes, func(p comparison.ProcessRow) bool {
		return p.Process == r.Process && p.Device == r.Device && ledger.Proves(r.Counts, p.Settled)
	})
}

// write adds the leaks that are not in the file yet, and returns their number.
func (f *acceptFlags) write(keys []string, until time.Time) (int, error) {
	path := cmp.Or(f.file, acceptedName)
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // write through a symbolic link instead of replacing it
	}
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("read accepted leaks: %w", err)
	}
	var known []string
	if len(old) > 0 {
		list, err := config.ParseAccepted(path, old)
		if err != nil {
			return 0, err
		}
		for _, a := range list {
			if a.Key != "" {
				known = append(known, a.Key)
			}
		}
	}
	// Reports show only the first eight digits of a key, so either key may be a
	// prefix of the other.
	has := func(key string) bool {
		return slices.ContainsFunc(known,
			func(k string) bool { return strings.HasPrefix(k, key) || strings.HasPrefix(key, k) })
	}
	var added []config.Accepted
	for _, key := range keys {
		if !has(key) {
			known = append(known, key)
			added = append(added, config.Accepted{Key: key, Reason: f.reason, Owner: f.owner, Until: until})
		} else if !f.current {
			return 0, fmt.Errorf("%s already has the leak %s: change its entry there", path, key)
		}
	}
	if len(added) == 0 {
		return 0, nil
	}
	out, err := config.AppendAccepted(path, old, added)
	if err != nil {
		return 0, err
	}
	return len(added), replaceShared(path, out)
}

// replaceShared writes a file of a checkout that other users may read: a new
// file gets the permissions of the user's umask, an existing one keeps its own.
// A reader sees either the old content or the new.
func replaceShared(path string, content []byte) (err error) {
	failed := func(err error) error { return fmt.Errorf("write %s: %w", path, withoutPath(err)) }
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-"+rand.Text()[:8])
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return failed(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(failed(err), os.Remove(part))
		}
	}()
	if info, serr := os.Stat(path); serr == nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// mostShown bounds the number of leaks that an error lists.
const mostShown = 10

// rowOf finds a leak by a prefix of its key.
func rowOf(rows []comparison.Row, key string) (*comparison.Row, error) {
	var found []*comparison.Row
	for i := range rows {
		if row := &rows[i]; len(key) <= len(row.Key) && row.Key[:len(key)] == key {
			found = append(found, row)
		}
	}
	switch {
	case len(found) == 0 && len(rows) == 0:
		return nil, errors.New("the run has no leaks")
	case len(found) == 0:
		list := ""
		for i := range rows[:min(len(rows), mostShown)] {
			list += fmt.Sprintf("\n  %s  %s", shortKey(rows[i].Key), text.Printable(rows[i].Class))
		}
		return nil, fmt.Errorf("the run has no leak %s; it has%s", text.Quote(key, 80), list)
	case len(found) > 1 && found[0].Key != found[1].Key:
		return nil, fmt.Errorf("several keys begin with %s: add more digits of the key", text.Quote(key, 80))
	}
	return found[0], nil
}

// shortKey returns the prefix of a key that reports show.
func shortKey(key string) string { return text.Printable(key[:min(len(key), 8)]) }
