package procfs

import "github.com/leakgate/leakgate/internal/known"

// Usage is the memory of a mapping or of a process in kB, as the kernel counts
// it (Documentation/filesystems/proc.rst, smaps). Values that a kernel does not
// print are unknown: SwapPss has existed since Linux 4.3, and Pss_Anon in
// smaps_rollup since 5.3.
type Usage struct {
	Pss          known.Int `json:"pss_kb"`
	SwapPss      known.Int `json:"swap_pss_kb"`
	Rss          known.Int `json:"rss_kb"`
	Swap         known.Int `json:"swap_kb"`
	PrivateDirty known.Int `json:"private_dirty_kb"`
	PrivateClean known.Int `json:"private_clean_kb"`
	PssAnon      known.Int `json:"pss_anon_kb,omitzero"`

	PssFile, PssShmem, SharedClean, SharedDirty, Anonymous known.Int `json:"-"`
}

// Memory is the memory use of a whole process.
type Memory struct {
	Usage
	// Mappings is the number of mappings in smaps; it is unknown for
	// smaps_rollup and for lines that were filtered on the device.
	Mappings known.Int `json:"mappings,omitzero"`
	// Truncated reports whether the input is visibly truncated. If so, the sums
	// of smaps are unknown; values that are present in smaps_rollup remain
	// valid.
	Truncated bool `json:"-"`
	// Warnings name the fields that are present but invalid, and therefore
	// unknown.
	Warnings []error `json:"-"`
}

// kind identifies a numeric field by its index in values.
type kind uint8

const (
	size kind = iota
	rss
	pss
	pssAnon
	pssFile
	pssShmem
	sharedClean
	sharedDirty
	privateClean
	privateDirty
	anonymous
	swap
	swapPss
	numFields
)

var fieldNames = [numFields]string{
	"Size", "Rss", "Pss", "Pss_Anon", "Pss_File", "Pss_Shmem", "Shared_Clean", "Shared_Dirty",
	"Private_Clean", "Private_Dirty", "Anonymous", "Swap", "SwapPss",
}

// fieldOf finds a field by its complete key: "Pss_Anon" is not "Pss".
func fieldOf(key []byte) (kind, bool) {
	// In a switch, the conversion to a string does not allocate. A map lookup
	// would be slower for the 88,000 lines of a large app.
	switch string(key) {
	case "Size":
		return size, true
	case "Rss":
		return rss, true
	case "Pss":
		return pss, true
	case "Pss_Anon":
		return pssAnon, true
	case "Pss_File":
		return pssFile, true
	case "Pss_Shmem":
		return pssShmem, true
	case "Shared_Clean":
		return sharedClean, true
	case "Shared_Dirty":
		return sharedDirty, true
	case "Private_Clean":
		return privateClean, true
	case "Private_Dirty":
		return privateDirty, true
	case "Anonymous":
		return anonymous, true
	case "Swap":
		return swap, true
	case "SwapPss":
		return swapPss, true
	}
	return 0, false
}

type values [numFields]known.Int

func (v *values) usage() Usage {
	return Usage{
		Rss: v[rss], Pss: v[pss], PssAnon: v[pssAnon], PssFile: v[pssFile], PssShmem: v[pssShmem],
		SharedClean: v[sharedClean], SharedDirty: v[sharedDirty],
		PrivateClean: v[privateClean], PrivateDirty: v[privateDirty],
		Anonymous: v[anonymous], Swap: v[swap], SwapPss: v[swapPss],
	}
}

// keyOf splits "Pss: 113 kB". Keys printed by the kernel begin with a capital
// letter; error messages of shell tools ("cat: /proc/1/smaps: ...") do not.
func keyOf(line []byte) (key, rest []byte, ok bool) {
	if len(line) == 0 || line[0] < 'A' || line[0] > 'Z' {
		return nil, nil, false
	}
	for i, c := range line {
		switch {
		case c == ':':
			return line[:i], line[i+1:], true
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
		default:
			return nil, nil, false
		}
	}
	return nil, nil, false
}
