package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// These are exit codes of the program of command:PROGRAM, in addition to 0.
const (
	// exitNone is returned by get if the store works but contains no baseline
	// yet.
	exitNone = 3
	// exitChanged is returned by put if the stored baseline is not the one that
	// LEAKGATE_BASELINE_SHA256 identifies. Nothing was written.
	exitChanged = 4
)

// commandStore is a store that runs a program provided by the user. "PROGRAM
// ARGUMENTS get" prints the baseline, or exits with 3 if none exists; "PROGRAM
// ARGUMENTS put" reads the new baseline from its standard input. Any other exit
// code is an error. The program runs in Options.Dir with the environment of
// leakgate and
//
//	LEAKGATE_BASELINE_BRANCH   the base branch, empty if unknown
//	LEAKGATE_BASELINE_SHA256   put: SHA-256, in hexadecimal digits, of the content that the new one is
//	                           made from; empty if there was none
//
// If the stored content has a different SHA-256, put may exit with 4: the
// update is then repeated with the newest content. A program that does not
// compare the SHA-256 may overwrite what another writer stores between get and
// put.
type commandStore struct {
	words []string
	Options
}

func (c *commandStore) load(ctx context.Context) ([][]byte, error) {
	out, err := c.run(ctx, "get", nil)
	var exit *exitError
	if errors.As(err, &exit) && exit.code == exitNone {
		return nil, ErrNone
	}
	if exit != nil {
		return nil, fmt.Errorf("%w; exit with %d if there is no baseline yet", err, exitNone)
	}
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s get printed nothing; exit with %d if there is no baseline yet",
			quoted(c.words[0]), exitNone)
	}
	return [][]byte{out}, nil
}

func (c *commandStore) update(ctx context.Context, apply func(old [][]byte) ([]byte, error)) error {
	for try := 0; ; try++ {
		old, err := c.load(ctx)
		if err != nil && !errors.Is(err, ErrNone) {
			return err
		}
		content, err := apply(old)
		if err != nil || content == nil {
			return err
		}
		sum := ""
		if len(old) > 0 {
			s := sha256.Sum256(old[0])
			sum = hex.EncodeToString(s[:])
		}
		_, err = c.run(ctx, "put", content, "LEAKGATE_BASELINE_SHA256="+sum)
		var exit *exitError
		if !errors.As(err, &exit) || exit.code != exitChanged {
			return err
		}
		c.Say("the baseline was changed by another writer; trying again")
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

func (c *commandStore) run(ctx context.Context, verb string, input []byte, env ...string) ([]byte, error) {
	argv := append(append([]string{}, c.words...), verb)
	env = append(append([]string{}, c.Env...), append(env, "LEAKGATE_BASELINE_BRANCH="+c.Branch)...)
	return program{argv: argv, dir: c.Dir, env: env, input: input, most: maxContent}.run(ctx)
}
