package comparison

// declared returns the suspects whose file is known and within the repository.
func (r *Row) declared() []Suspect {
	var out []Suspect
	for _, s := range r.Suspects {
		if repositoryPath(s.File) != "" {
			out = append(out, s)
		}
	}
	return out
}

// place returns the position at which a suspect of the row is declared. It
// prefers a suspect whose line the change adds, then one whose file the change
// affects, then the suspect nearest to the GC root. If no file is known, it
// returns the fallback.
func (r *Row) place(fallback string) (file string, line int) {
	s := r.introducer()
	if s == nil {
		return fallback, 1
	}
	return s.File, max(s.Line, 1)
}

// introducer returns the suspect that the change most likely introduced; nil if
// no file is known.
func (r *Row) introducer() *Suspect {
	declared := r.declared()
	for _, is := range []func(*Suspect) bool{
		func(s *Suspect) bool { return s.Added != nil && *s.Added },
		func(s *Suspect) bool { return s.Changed != nil && *s.Changed },
		func(*Suspect) bool { return true },
	} {
		for i := range declared {
			if is(&declared[i]) {
				return &declared[i]
			}
		}
	}
	return nil
}

// role describes how a change relates to a suspect.
type role int

const (
	roleUnknown role = iota
	roleUnchanged
	roleChanged
	roleAdded
)

func (s *Suspect) role() role {
	switch {
	case s.Added != nil && *s.Added:
		return roleAdded
	case s.Changed == nil:
		return roleUnknown
	case *s.Changed:
		return roleChanged
	}
	return roleUnchanged
}

// untouched reports whether the change is known not to touch any file that
// declares a suspect.
func (r *Row) untouched() bool {
	declared := r.declared()
	for i := range declared {
		if declared[i].role() != roleUnchanged {
			return false
		}
	}
	return len(declared) > 0
}

// reference returns the field of a suspect together with its class.
func (s *Suspect) reference() string {
	class := simpleName(s.Class)
	switch {
	case class == "":
		return s.Field
	case s.Field == "":
		return class
	}
	return class + "." + s.Field
}
