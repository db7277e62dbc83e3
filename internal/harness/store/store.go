package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// ErrNone is returned by Load if the store works but has no baseline yet.
var ErrNone = errors.New("no baseline yet")

const (
	// maxContent is the maximum size of a baseline in bytes. A typical baseline
	// has a few hundred kB.
	maxContent = 16 << 20
	// defaultLimit is the time limit of one Load or Update.
	defaultLimit = 2 * time.Minute
	// firstPause and maxPause are the first and the longest wait before an
	// update is retried.
	firstPause, maxPause = 25 * time.Millisecond, 3 * time.Second
)

// Options describes the environment of a store.
type Options struct {
	// Dir is the base of relative file paths, the checkout whose remote is
	// used, the working directory of programs, and the directory in which
	// artifact uploads are prepared. An empty Dir means the current directory.
	Dir string
	// Env is the environment of programs, as NAME=VALUE; nil means the
	// environment of this process.
	Env []string
	// Artifacts reads earlier artifacts; it is needed only for artifact:NAME.
	Artifacts Artifacts
	// Branch is the base branch. Only artifacts of its runs are used. Programs
	// find its name in LEAKGATE_BASELINE_BRANCH.
	Branch string
	// Check rejects content that is not a baseline. Check therefore selects the
	// baselines among several artifacts with the same name. If Check is nil,
	// nothing is rejected.
	Check func([]byte) error
	// Say is called with a line about slow or skipped work. It may be nil.
	Say func(string)
	// Limit is the time limit of one Load or Update; 0 means 2 minutes.
	Limit time.Duration
}

// backend is one way of keeping a baseline. update calls apply with the stored
// contents, newest first, until the result of apply is written or is nil. The
// contents are empty if there is no baseline.
type backend interface {
	load(ctx context.Context) ([][]byte, error)
	update(ctx context.Context, apply func(old [][]byte) ([]byte, error)) error
}

// Store keeps one baseline.
type Store struct {
	backend backend
	name    string
	limit   time.Duration
}

// Open returns the store at an address. It neither reads nor writes the store.
func Open(a Address, o Options) (*Store, error) {
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.Check == nil {
		o.Check = func([]byte) error { return nil }
	}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	s := &Store{name: a.String(), limit: o.Limit}
	switch a.scheme {
	case schemeFile:
		s.backend = newFileStore(a.path, o)
	case schemeGit:
		s.backend = &gitStore{Address: a, Options: o}
	case schemeCommand:
		s.backend = &commandStore{words: a.words, Options: o}
		s.name = schemeCommand + ":" + text.Head(text.Printable(redact(quoteWord(a.words[0]))), maxQuoted)
		if len(a.words) > 1 {
			s.name += " ..." // arguments may be secret
		}
	case schemeArtifact:
		if o.Artifacts == nil {
			return nil, fmt.Errorf("open baseline store %s: artifacts can only be read from GitHub; "+
				"set GITHUB_TOKEN and GITHUB_REPOSITORY, or use %s", s.name, Default)
		}
		if o.Branch == "" {
			return nil, fmt.Errorf("open baseline store %s: base branch unknown; name it", s.name)
		}
		s.backend = &artifactStore{name: a.name, Options: o}
	default:
		return nil, fmt.Errorf("open baseline store: no store given; write %s", Default)
	}
	return s, nil
}

// String returns the name of the store for messages: its address, without the
// arguments of a program.
func (s *Store) String() string { return s.name }

// Load returns the baseline. For artifact:NAME, Load may return several
// baselines, newest first, because concurrent runs upload separate versions.
// The error is ErrNone if the store works but has no baseline.
func (s *Store) Load(ctx context.Context) ([][]byte, error) {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	contents, err := s.backend.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("load baseline from %s: %w", s, explained(ctx, err))
	}
	return contents, nil
}

// Update replaces the baseline with the result of apply for the current
// contents. The contents are sorted newest first. They are empty if there is no
// baseline yet. If another writer is faster, apply is called again with the
// content that the other writer stored. An attempt whose confirmation is lost
// may also be repeated, so apply must recognize its own earlier additions.
// Nothing is written if apply returns nil or the newest content. An error from
// apply aborts the update.
func (s *Store) Update(ctx context.Context, apply func(old [][]byte) ([]byte, error)) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	err := s.backend.update(ctx, func(old [][]byte) ([]byte, error) {
		content, err := apply(old)
		if err != nil || len(old) > 0 && bytes.Equal(content, old[0]) || len(content) == 0 {
			return nil, err
		}
		return content, checkSize(int64(len(content)))
	})
	if err != nil {
		return fmt.Errorf("update baseline in %s: %w", s, explained(ctx, err))
	}
	return nil
}

// limited returns a context that is canceled when the time limit has passed,
// with limitError as its cause.
func (s *Store) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.limit, limitError(s.limit))
}

// limitError is the error for an exceeded time limit.
type limitError time.Duration

func (e limitError) Error() string {
	return fmt.Sprintf("not finished within %v; check that it can be reached", time.Duration(e))
}

// Is makes limitError match os.ErrDeadlineExceeded and
// context.DeadlineExceeded.
func (e limitError) Is(target error) bool {
	return target == os.ErrDeadlineExceeded || target == context.DeadlineExceeded
}

// explained adds the cause to an error if the time limit was exceeded or the
// caller canceled the work.
func explained(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w (%w)", cause, err)
}

func checkSize(n int64) error {
	if n > maxContent {
		return fmt.Errorf("%s, larger than the limit of %s for a baseline; remove old runs from it", text.Bytes(n),
			text.Bytes(maxContent))
	}
	return nil
}

// pause waits before a retry. The wait is longer after more attempts and has
// random jitter, so that writers that collided once do not collide again. If
// the context is done, pause returns the cause.
func pause(ctx context.Context, try int) error {
	most := min(firstPause<<min(try, 10), maxPause)
	timer := time.NewTimer(most/4 + rand.N(most))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
