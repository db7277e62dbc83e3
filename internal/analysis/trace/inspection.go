package trace

// Status reports whether an object should still exist.
type Status uint8

const (
	// Unknown is an object whose status is not known.
	Unknown Status = iota
	// NotLeaking is an object that is needed.
	NotLeaking
	// Leaking is an object that is no longer needed.
	Leaking
)

// String returns the word of leak traces: UNKNOWN, NO, YES.
func (s Status) String() string { return [...]string{"UNKNOWN", "NO", "YES"}[s] }

// Inspection is the result of inspecting the class and the fields of one
// object. An object may have reasons for both statuses; Labels are facts that
// help a reader. All texts come from the dump and are not escaped.
type Inspection struct {
	Leaking, NotLeaking, Labels []string
}
