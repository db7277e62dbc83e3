//go:build unix

package lease

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// untrusted says why a folder is not this user's alone; empty if it is.
func untrusted(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Sprintf("belongs to user %d", st.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Sprintf("may be written to by others (%v)", info.Mode().Perm())
	}
	return ""
}
