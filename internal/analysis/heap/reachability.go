package heap

// Reachability is the strongest way in which the GC roots reach an object
// (java.lang.ref, "Reachability"; the order is AOSP ahat's).
type Reachability uint8

// Strongly and softly reachable objects are in the dominator tree.
const (
	Strong Reachability = iota
	Soft
	Finalizer
	Weak
	Phantom
	Unreachable
)

var reachabilityNames = [...]string{"strong", "soft", "finalizer", "weak", "phantom", "unreachable"}

// String returns the name of the reachability in lower case.
func (r Reachability) String() string {
	return reachabilityNames[min(int(r), len(reachabilityNames)-1)]
}
