package diagnose

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/text"
)

// maxSilent is how many polls in a row may get no answer: the device is busy.
const maxSilent = 3

// poll looks at the process, the file and the disk, in one trip. The error is the end of
// the process or of the device.
func (h *heapDump) poll(ctx context.Context) error {
	m, file := shell.NewMarker(), text.ShellQuote(h.remote)
	a, err := shell.Ask(ctx, h.dev, lookDeadline, m.Join([]shell.Part{
		{"stat", statCommand(h.req.Process)},
		// toolbox has no stat.
		{"size", "stat -c %s " + file + " 2>/dev/null || ls -l " + file + " 2>/dev/null"},
		{"df", dfCommand},
	}))
	parts, whole := m.Split(a.Stdout)
	if err == nil && !whole {
		err = fmt.Errorf("%w: the answer is cut", capture.ErrDevice)
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
		return fmt.Errorf("the process died while its heap was dumped: %w", err)
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

// parseSize reads the size from `stat -c %s`, or from `ls -l`, where it stands before
// the date in toolbox and toybox. It is 0 for a file that is not there.
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

// stable waits until the file has a size that stays. ART walks the heap once before it
// writes, and empties a dump that it cannot write (hprof.cc, DumpToFile): one that stays
// empty for long, or is empty again, is the end too.
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

// fetch pulls the dump and proves it whole. One that is still written where nobody tells
// its end is waited for again.
func (h *heapDump) fetch(ctx context.Context, file string) error {
	within, cancel := context.WithTimeout(ctx, h.within(h.way.Limit))
	defer cancel()
	for {
		// A process that has ended since has left its dump; that of another one is not asked for.
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

// grows waits for a dump to become larger than it was, and then for its size to stay.
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
	return h.full(errors.New("the dump is empty: the process's log tells why"))
}

// pull copies the file and keeps it if it is whole. early says that it is all that the
// device has of the dump so far, and not the whole.
func (h *heapDump) pull(ctx context.Context, file string) (early bool, err error) {
	if h.size > h.way.Max {
		return false, fmt.Errorf("the dump has %s, more than %s", text.Size(h.size), text.Size(h.way.Max))
	}
	if err := h.hostRoom(h.size); err != nil {
		return false, err
	}
	a, err := newArtifact(h.req.Dir, file, h.way.Max)
	if err != nil {
		return false, err
	}
	defer a.discard()
	within, cancel := context.WithTimeout(ctx, pullStart+time.Duration(h.size/pullRate)*time.Second)
	defer cancel()
	n, err := h.dev.Pull(within, h.remote, a)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case a.err != nil:
		return false, a.err
	case err != nil:
		return false, fmt.Errorf("pull dump: %w: %w", capture.ErrDevice, err)
	case n != a.size || n < h.size:
		return false, cutError{a.size, h.size}
	}
	if err := wholeDump(a.file, a.size); err != nil {
		return errors.As(err, new(cutError)), err
	}
	size := a.size
	if err := a.commit(h.req.Dir, file); err != nil {
		return false, err
	}
	h.yield.file, h.yield.bytes = file, size
	return false, nil
}

// remove takes the dump off the device, also where the caller's time is over. A device
// gets two tries.
func (h *heapDump) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer cancel()
	var err error
	for range 2 {
		if err = h.removeOnce(ctx); err == nil {
			return
		}
	}
	// It comes first: of many reasons the last are left out.
	h.yield.reasons = slices.Insert(h.yield.reasons, 0, fmt.Sprintf("%s may be left on the device, until the next start removes it: %v", h.remote, err))
	h.yield.left = h.remote
}

func (h *heapDump) removeOnce(ctx context.Context) error {
	m, file := shell.NewMarker(), text.ShellQuote(h.remote)
	a, err := shell.Ask(ctx, h.dev, cleanUp/2, m.Join([]shell.Part{{"rm", "rm -f " + file + " 2>&1"}, {"left", "ls " + file + " 2>/dev/null"}}))
	parts, whole := m.Split(a.Stdout)
	switch {
	case err != nil:
		return err
	case !whole:
		return errors.New("the answer is cut")
	case strings.Contains(string(parts["left"]), h.remote):
		return errors.New(shell.Clip(string(parts["rm"])))
	}
	return nil
}
