package trace

// Status reports whether an object should still exist.
type Status uint8

const (
	// Unknown means that it is not known whether the object is needed.
	Unknown Status = iota
	// NotLeaking means that the object is needed.
	NotLeaking
	// Leaking means that the object is no longer needed.
	Leaking
)

// String returns the status as written in leak traces: UNKNOWN, NO or YES.
func (s Status) String() string { return [...]string{"UNKNOWN", "NO", "YES"}[s] }

// Inspection is the result of inspecting the class and the fields of one
// object. An object may have reasons for both statuses; Labels are facts that
// help the reader of a trace. All strings come from the dump and are not
// escaped.
type Inspection struct {
	Leaking, NotLeaking, Labels []string
}
