package android

import "github.com/leakgate/leakgate/internal/analysis/heap"

// inspectPresenter implements Shark's inspector MORTAR_PRESENTER.
func (i *Inspector) inspectPresenter(o heap.Object, r *report) {
	if null, known := i.isNull(o, presenterView); known {
		format, args := described(presenterView, nullity(null))
		r.label(format, args...)
	}
}

// inspectScope implements Shark's inspector MORTAR_SCOPE.
func (i *Inspector) inspectScope(o heap.Object, r *report) {
	dead, known := i.flag(o, scopeDead)
	if !known {
		return
	}
	format, args := "mortar.MortarScope.dead is %v", []any{dead}
	if name, ok := i.textOf(o, scopeName); ok {
		format, args = format+" for scope %s", append(args, i.hide.Redact(name))
	} else if !i.taken(o, scopeName) {
		format += " for scope null"
	}
	if dead {
		r.leaking(format, args...)
	} else {
		r.notLeaking(format, args...)
	}
}

func (i *Inspector) scopeLeaks(o heap.Object) bool {
	dead, _ := i.flag(o, scopeDead)
	return dead
}

// inspectCoordinator implements Shark's inspector COORDINATOR.
func (i *Inspector) inspectCoordinator(o heap.Object, r *report) {
	if attached, known := i.flag(o, coordinatorAttached); known {
		format, args := described(coordinatorAttached, attached)
		r.label(format, args...)
	}
}
