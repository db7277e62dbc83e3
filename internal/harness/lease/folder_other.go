//go:build !unix

package lease

import "io/fs"

// untrusted returns an empty reason, because on Windows both the cache folder
// and the temporary folder belong to the user alone.
func untrusted(fs.FileInfo) string { return "" }
