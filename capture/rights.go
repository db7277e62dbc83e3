package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// rights are the other users that the shell may become for one process.
type rights struct {
	asked bool
	// root and app are the ways there; an error is why there is none.
	root, app       wrapper
	rootErr, appErr error
}

// newRights begins with what is known: of the shell's own user, and of the way by which
// the fast channel reads the process.
func newRights(facts Facts, r Request) rights {
	unasked := errors.New("not asked yet")
	out := rights{rootErr: unasked, appErr: unasked}
	switch prefix := r.Level.prefix; {
	case facts.UID == 0:
		out.rootErr, out.appErr, out.asked = nil, notAllowed{"the shell is root already"}, true
	case prefix.isSU():
		out.root, out.rootErr = prefix, nil
	case prefix.words != "":
		out.app, out.appErr = prefix, nil
	}
	switch {
	case facts.UID == 0:
	case r.Process.Isolated():
		out.appErr = notAllowed{"an isolated process has a user of its own"}
	case r.Process.UID%perUser < 10000:
		out.appErr = notAllowed{"not a process of an installed app"}
	}
	return out
}

// hint is the user by which the fast channel reads the process.
func hint(l Level) As {
	switch {
	case l.prefix.isSU():
		return AsRoot
	case l.prefix.words != "":
		return AsApp
	}
	return AsShell
}

// askRights is the real time that a device has to tell: su may wait for a person.
const askRights = 3 * time.Second

// prefix gives what a command of this user begins with. The first that must be asked for
// asks for all, in one trip; su last, which may not come back, and never twice.
func (d *diagnosing) prefix(ctx context.Context, as As) (wrapper, error) {
	if as == AsShell {
		return wrapper{}, nil
	}
	if r := d.rights; !r.asked && (as == AsRoot && r.rootErr != nil || as == AsApp && r.appErr != nil && !errors.As(r.appErr, new(notAllowed))) {
		d.askRights(ctx)
	}
	if as == AsRoot {
		return d.rights.root, d.rights.rootErr
	}
	return d.rights.app, d.rights.appErr
}

func (d *diagnosing) askRights(ctx context.Context) {
	r, p := &d.rights, d.req.Process
	r.asked = true
	var parts []part
	app := wrapper{words: runAsWords(p)}
	su := []wrapper{{words: "su 0"}, {words: "su -c", asText: true}}
	command := func(w wrapper) string { return w.wrap("id") + " </dev/null 2>&1" }
	wantsApp := r.appErr != nil && !errors.As(r.appErr, new(notAllowed))
	if wantsApp {
		parts = append(parts, part{"app", command(app)})
	}
	if r.rootErr != nil {
		parts = append(parts, part{"su0", command(su[0])}, part{"suC", command(su[1])})
	}
	m := newMarker()
	a, err := ask(ctx, d.dev, askRights, m.join(parts))
	begun, whole := m.split(a.out)
	texts, silent := m.ended(a.out), noAnswer(err)
	if text, told := texts["app"]; wantsApp && told {
		r.app, r.appErr = app, wants(text, p.UID)
	} else if wantsApp {
		r.appErr = fmt.Errorf("it %w", silent)
	}
	if r.rootErr == nil {
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
		r.rootErr = fmt.Errorf("su was not asked: run-as %w", silent)
	case errors.Is(err, context.DeadlineExceeded):
		r.rootErr = notAllowed{fmt.Sprintf("su %v: it may wait for a person", silent)}
	default:
		r.rootErr = fmt.Errorf("su %w", silent)
	}
}

// noAnswer is what is missing of an answer that is not whole.
func noAnswer(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("gives no answer in %v", askRights)
	case err != nil:
		return fmt.Errorf("gives no answer: %w", err)
	}
	return errors.New("gives an answer that is cut")
}

// wants is nil if `id` printed this user.
func wants(text []byte, uid int) error {
	switch got := parseID(string(text)); {
	case got == uid:
		return nil
	case got >= 0:
		return notAllowed{fmt.Sprintf("it gives user %d", got)}
	}
	said := clip(string(text))
	if e := spoken(text); e != nil {
		said = strings.TrimPrefix(e.Error(), "device says ")
	}
	return notAllowed{cmp.Or(said, "it says nothing")}
}
