package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/shell"
)

// rights holds the other users that the shell may become to read one process.
type rights struct {
	asked bool
	// root and app are the prefixes with which commands run as root and as the
	// app; rootErr and appErr explain why a prefix is missing.
	root, app       shell.Prefix
	rootErr, appErr error
}

// newRights returns what is known before any user is tried: the shell's own
// user, and how the fast channel reads the process.
func newRights(facts capture.Facts, r Request) rights {
	unasked := errors.New("not tried yet")
	out := rights{rootErr: unasked, appErr: unasked}
	switch prefix := r.Level.Prefix; {
	case facts.UID == 0:
		out.rootErr, out.appErr, out.asked = nil, notAllowed{"the shell is already root"}, true
	case prefix.IsSU():
		out.root, out.rootErr = prefix, nil
	case !prefix.IsZero():
		out.app, out.appErr = prefix, nil
	}
	if errors.Is(out.rootErr, unasked) {
		// Each call of su may show a prompt, over the app that is being tested.
		for _, f := range r.Findings {
			if f.Source == capture.SU && f.Answer == capture.Refused {
				out.rootErr = notAllowed{f.Reason}
			}
		}
	}
	switch {
	case facts.UID == 0:
	case r.Process.Isolated():
		out.appErr = notAllowed{"an isolated process has a uid of its own"}
	case !r.Process.Installed():
		out.appErr = notAllowed{"not a process of an installed app"}
	}
	return out
}

// hint returns the user that the fast channel uses to read the process.
func hint(l capture.Level) As {
	switch {
	case l.Prefix.IsSU():
		return AsRoot
	case !l.Prefix.IsZero():
		return AsApp
	}
	return AsShell
}

// rightsTimeout is the maximum wall-clock time for trying the users: su may
// wait for confirmation on the screen.
const rightsTimeout = 3 * time.Second

// prefix returns what to put before a command so that it runs as this user, or
// an error that says why the shell may not become this user. The first call for
// a user whose prefix is not yet known tries all users, in one round trip. su
// comes last, because it may not return; it is tried only once.
func (d *diagnosing) prefix(ctx context.Context, as As) (shell.Prefix, error) {
	if as == AsShell {
		return shell.Prefix{}, nil
	}
	if r := d.rights; !r.asked && (as == AsRoot && unsettled(r.rootErr) || as == AsApp && unsettled(r.appErr)) {
		d.probeRights(ctx)
	}
	if as == AsRoot {
		return d.rights.root, d.rights.rootErr
	}
	return d.rights.app, d.rights.appErr
}

// unsettled reports whether it is still unknown if the shell may become a user.
func unsettled(err error) bool { return err != nil && !errors.As(err, new(notAllowed)) }

func (d *diagnosing) probeRights(ctx context.Context) {
	r, p := &d.rights, d.req.Process
	r.asked = true
	var parts []shell.Part
	app, su := shell.RunAs(p.Package(), p.User), shell.SU()
	command := func(w shell.Prefix) string { return w.Wrap("id") + " </dev/null 2>&1" }
	wantsApp, wantsRoot := unsettled(r.appErr), unsettled(r.rootErr)
	if wantsApp {
		parts = append(parts, shell.Part{"app", command(app)})
	}
	if wantsRoot {
		parts = append(parts, shell.Part{"su0", command(su[0])}, shell.Part{"suC", command(su[1])})
	}
	m := shell.NewMarker()
	a, err := shell.Ask(ctx, d.dev, rightsTimeout, m.Join(parts))
	begun, whole := m.Split(a.Stdout)
	texts, silent := m.SplitTruncated(a.Stdout), noAnswer(err)
	if text, told := texts["app"]; wantsApp && told {
		r.app, r.appErr = app, wants(text, p.UID)
	} else if wantsApp {
		r.appErr = fmt.Errorf("it %w", silent)
	}
	if !wantsRoot {
		return
	}
	r.rootErr = wants(texts["su0"], 0)
	switch _, asked := begun["su0"]; {
	case r.rootErr == nil:
		r.root = su[0]
	case wants(texts["suC"], 0) == nil:
		r.root, r.rootErr = su[1], nil
	case whole:
	case !asked && wantsApp:
		r.rootErr = fmt.Errorf("su not tried: run-as %w", silent)
	case errors.Is(err, context.DeadlineExceeded):
		r.rootErr = notAllowed{fmt.Sprintf("su %v: it may be waiting for confirmation", silent)}
	default:
		r.rootErr = fmt.Errorf("su %w", silent)
	}
}

// noAnswer returns the error for a part that is missing from incomplete output.
func noAnswer(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("did not answer within %v", rightsTimeout)
	case err != nil:
		return fmt.Errorf("did not answer: %w", err)
	}
	return errors.New("returned a truncated answer")
}

// wants returns nil if `id` printed this uid, and otherwise an error that says
// what was printed instead.
func wants(text []byte, uid int) error {
	switch got := dumpsys.ParseUID(string(text)); {
	case got == uid:
		return nil
	case got >= 0:
		return notAllowed{fmt.Sprintf("it runs as uid %d", got)}
	}
	said := shell.Clip(string(text))
	if e := deviceWords(text); e != nil {
		said = strings.TrimPrefix(e.Error(), "device reports ")
	}
	return notAllowed{cmp.Or(said, "it prints nothing")}
}
