package diagnose

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/text"
)

// maxSilent is the number of consecutive unanswered polls after which the dump
// fails.
const maxSilent = 3

// poll checks the process, the file and the disk, in one round trip. An error
// means that the process has ended or that the device does not respond.
func (h *heapDump) poll(ctx context.Context) error {
	m, file := shell.NewMarker(), text.ShellQuote(h.remote)
	a, err := shell.Ask(ctx, h.dev, checkTimeout, m.Join([]shell.Part{
		{"stat", statCommand(h.req.Process)},
		// toolbox has no stat.
		{"size", "stat -c %s " + file + " 2>/dev/null || ls -l " + file + " 2>/dev/null"},
		{"df", dfCommand},
	}))
	parts, whole := m.Split(a.Stdout)
	if err == nil && !whole {
		err = fmt.Errorf("%w: truncated answer", capture.ErrDevice)
	}
	if err == nil {
		h.size = parseSize(string(parts["size"]))
		h.seeFree(parts["df"])
		err = identity(h.req.Process, parts["stat"])
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, capture.ErrGone):
		h.silent = 0
		return fmt.Errorf("the process died while its heap was being dumped: %w", err)
	case err != nil:
		if h.silent++; h.silent < maxSilent {
			return nil
		}
		return fmt.Errorf("watch the dump: %w", err)
	}
	h.silent = 0
	return nil
}

var dateField = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)

// parseSize parses the size from the output of `stat -c %s` or of `ls -l`,
// where the size precedes the date in toolbox and toybox. The size of a missing
// file is 0.
func parseSize(text string) int64 {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		for i, word := range words {
			if i > 0 && dateField.MatchString(word) {
				words = words[i-1 : i]
				break
			}
		}
		if len(words) != 1 {
			continue
		}
		if n, err := strconv.ParseInt(words[0], 10, 64); err == nil && n >= 0 {
			return n
		}
	}
	return 0
}

// stable waits until the size of the file no longer changes. ART walks the heap
// once before it writes, and empties a dump that it cannot write (hprof.cc,
// DumpToFile): a dump that stays empty for long, or becomes empty again, also
// counts as finished.
func (h *heapDump) stable(ctx context.Context) error {
	last, same := int64(0), 0
	for {
		if err := h.wait(ctx, h.interval()); err != nil {
			return err
		}
		if err := h.poll(ctx); err != nil {
			return err
		}
		switch {
		case h.silent > 0:
			continue
		case h.size != last:
			same = 0
		}
		same++
		emptied := h.size == 0 && last > 0
		last = h.size
		if emptied || h.size > 0 && same >= stablePolls || same >= emptyPolls {
			return nil
		}
	}
}

// fetch pulls the dump and verifies that it is complete. If the end of the dump
// is not reported and the dump is still being written, fetch waits and pulls
// the dump again.
func (h *heapDump) fetch(ctx context.Context, file string) error {
	within, cancel := context.WithTimeout(ctx, h.scaled(h.method.Limit))
	defer cancel()
	for {
		// If the process has ended in the meantime, its dump is still valid; a
		// dump of another process is not.
		if err := h.poll(ctx); err != nil && (!errors.Is(err, capture.ErrGone) || errors.Is(err, errOther)) {
			return err
		}
		if h.silent > 0 {
			if err := h.wait(ctx, h.interval()); err != nil {
				return err
			}
			continue
		}
		if h.size == 0 {
			return h.empty()
		}
		size := h.size
		early, err := h.pull(ctx, file)
		switch {
		case !early:
			return err
		case h.settled || !h.grows(within, size):
			return h.full(err)
		}
	}
}

// grows waits for a dump to grow, and then for its size to stay the same. It
// reports whether both happened.
func (h *heapDump) grows(ctx context.Context, size int64) bool {
	for range emptyPolls {
		if h.wait(ctx, h.interval()) != nil || h.poll(ctx) != nil {
			return false
		}
		if h.silent == 0 && h.size != size {
			return h.stable(ctx) == nil
		}
	}
	return false
}

func (h *heapDump) empty() error {
	return h.full(errors.New("the dump is empty: see the process's log for the reason"))
}

// pull copies the file and keeps it if it is complete. early reports whether
// the copy is incomplete because the device may not have finished writing the
// dump.
func (h *heapDump) pull(ctx context.Context, file string) (early bool, err error) {
	a, early, err := h.receive(ctx, file)
	if err != nil {
		return early, err
	}
	defer func() { a.discard() }()
	if h.damaged(ctx, a) {
		h.result.reasons = append(h.result.reasons,
			"the dump arrived damaged (checksum mismatch), and it was pulled again")
		a.discard()
		if a, early, err = h.receive(ctx, file); err != nil {
			return early, err
		}
		if h.damaged(ctx, a) {
			return false, errors.New("the dump arrives damaged each time (checksum mismatch): " +
				"check the cable, or use one instead of Wi-Fi")
		}
	}
	if err := wholeDump(a.file, a.size); err != nil {
		return errors.As(err, new(truncatedDump)), err
	}
	size := a.size
	if err := a.commit(h.req.Dir, file); err != nil {
		return false, err
	}
	h.result.file, h.result.bytes = file, size
	return false, nil
}

// receive copies the file to the host. The artifact is nil on error.
func (h *heapDump) receive(ctx context.Context, file string) (out *artifact, early bool, err error) {
	if h.size > h.method.Max {
		return nil, false, fmt.Errorf("the dump is larger than the limit: %s, limit %s",
			text.Size(h.size), text.Size(h.method.Max))
	}
	if err := h.checkHostSpace(h.size); err != nil {
		return nil, false, err
	}
	// If the end of the dump is not reported, a dump that is still growing is
	// pulled again.
	a, err := newArtifact(h.req.Dir, file, min(h.method.Max, h.size+h.size/4+pullGrowth))
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if out == nil {
			a.discard()
		}
	}()
	limit := pullStart + time.Duration(h.size/pullRate)*time.Second
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	n, err := h.dev.Pull(within, h.remote, a)
	switch {
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	case errors.As(a.err, new(tooLarge)):
		return nil, true, fmt.Errorf("the device sends more than %s for a dump of %s",
			text.Size(a.max), text.Size(h.size))
	case a.err != nil:
		return nil, false, a.err
	case err != nil && within.Err() != nil:
		return nil, false, fmt.Errorf("pull dump: not finished in %v, after %s of %s",
			limit, text.Size(a.size), text.Size(h.size))
	case err != nil:
		return nil, false, fmt.Errorf("pull dump: %w", err) // the error shows whether the device has responded
	case n != a.size || n < h.size:
		return nil, false, truncatedDump{a.size, h.size}
	}
	return a, false, nil
}

// checksumRate is the speed at which the slowest supported device reads its own
// disk, in bytes per second.
const checksumRate = 20 * mebibyte

// damaged reports whether the file on the device has the same size as the copy
// but different content; it returns false if this is unknown. toybox has
// md5sum; toolbox before Android 6 has md5.
func (h *heapDump) damaged(ctx context.Context, a *artifact) bool {
	m, file := shell.NewMarker(), text.ShellQuote(h.remote)
	answer, err := shell.Ask(ctx, h.dev, checkTimeout+time.Duration(a.size/checksumRate)*time.Second,
		m.Join([]shell.Part{
			{"sum", "md5sum " + file + " 2>/dev/null || md5 " + file + " 2>/dev/null"},
			{"size", "stat -c %s " + file + " 2>/dev/null || ls -l " + file + " 2>/dev/null"},
		}))
	parts, whole := m.Split(answer.Stdout)
	sum, _, _ := strings.Cut(string(parts["sum"]), " ")
	if err != nil || !whole || parseSize(string(parts["size"])) != a.size || !md5Form.MatchString(sum) {
		return false
	}
	hash := md5.New() // detects accidental changes, not forgery
	if _, err := io.Copy(hash, io.NewSectionReader(a.file, 0, a.size)); err != nil {
		return false // the code that reads the dump detects this too
	}
	return !strings.EqualFold(sum, hex.EncodeToString(hash.Sum(nil)))
}

var md5Form = regexp.MustCompile(`^[0-9a-fA-F]{32}$`)

// remove deletes the dump on the device, even if the caller's context is done.
// If the device does not respond, remove tries once more.
func (h *heapDump) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer cancel()
	var err error
	for range 2 {
		if err = h.removeOnce(ctx); err == nil {
			return
		}
	}
	// This reason comes first, because the last reasons are dropped if there
	// are too many.
	h.result.reasons = slices.Insert(h.result.reasons, 0,
		fmt.Sprintf("%s may be left on the device (leakgate retries the removal at its next start; "+
			"`adb shell rm -rf %[1]s` removes it now): %v",
			h.remote, err))
	h.result.left = h.remote
}

func (h *heapDump) removeOnce(ctx context.Context) error {
	m, file := shell.NewMarker(), text.ShellQuote(h.remote)
	a, err := shell.Ask(ctx, h.dev, cleanUp/2,
		m.Join([]shell.Part{{"rm", removeWords + file + " 2>&1"}, {"left", "ls -d " + file + " 2>/dev/null"}}))
	parts, whole := m.Split(a.Stdout)
	switch {
	case err != nil:
		return err
	case !whole:
		return errors.New("truncated answer")
	case strings.Contains(string(parts["left"]), h.remote):
		return errors.New(shell.Clip(string(parts["rm"])))
	}
	return nil
}
