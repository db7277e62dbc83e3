package dumpsys

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/known"
)

// ParseUID returns the uid that `id` printed ("uid=2000(shell) gid=..."), or -1
// if there is none.
func ParseUID(text string) int {
	_, rest, ok := strings.Cut(text, "uid=")
	if !ok {
		return -1
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	uid, err := strconv.Atoi(rest[:end])
	if err != nil {
		return -1
	}
	return uid
}

// ParseDiskFree returns the number of free bytes in the file system mounted at
// mount, from the output of df. There are two formats: toybox (Android 7 and
// later) prints the columns Filesystem, 1K-blocks, Used, Available, Use% and
// Mounted on (toybox toys/posix/df.c); toolbox prints Filesystem, Size, Used,
// Free and Blksize, with sizes such as 1.1G (system/core toolbox/df.c).
func ParseDiskFree(text, mount string) known.Int {
	column, unit := -1, 0.0
	var row []string
	rows := 0
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] == "Filesystem" {
			column, unit = freeColumn(words)
			continue
		}
		if row == nil || slices.Contains(words, mount) && !slices.Contains(row, mount) {
			row = words
		}
		rows++
	}
	// If there is only one row, it is used even if its mount point differs.
	if column < 0 || column >= len(row) || rows > 1 && !slices.Contains(row, mount) {
		return known.Int{}
	}
	return diskSize(row[column], unit)
}

// freeColumn finds the column of the free space in df's header, and returns the
// index of the column and its unit in bytes.
func freeColumn(words []string) (column int, unit float64) {
	column, unit = -1, 1
	for i, w := range words {
		switch w {
		case "Available", "Avail", "Free":
			column = i
		case "1K-blocks", "1024-blocks":
			unit = 1024
		case "512-blocks":
			unit = 512
		}
	}
	return column, unit
}

// diskSize parses a size such as 112 or 25.2G and returns bytes. The unit
// parameter is the unit of a number without a suffix, in bytes.
func diskSize(text string, unit float64) known.Int {
	if at := strings.IndexAny(text, "KMGT"); at > 0 && at == len(text)-1 {
		unit *= math.Pow(1024, float64(1+strings.IndexByte("KMGT", text[at])))
		text = text[:at]
	}
	if text == "" || strings.Trim(text, "0123456789.") != "" {
		return known.Int{}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n*unit >= 1<<60 {
		return known.Int{}
	}
	return known.Of(int64(n * unit))
}

// ParseMemorySize parses a size such as 256m, as in ART's properties, and
// returns bytes (art/cmdline, MemoryKiB and ParseMemoryOption of -Xmx: a number
// with k, m or g).
func ParseMemorySize(text []byte) known.Int {
	digits := strings.TrimSpace(string(text))
	shift := 0
	if n := len(digits); n > 0 {
		at := strings.IndexByte("kmg", digits[n-1]|0x20)
		if at >= 0 {
			digits, shift = digits[:n-1], 10*(at+1)
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 32)
	if err != nil || n <= 0 {
		return known.Int{}
	}
	return known.Of(n << shift)
}

// DefaultTimeout is the default timeout of dumpsys on the device, in seconds of
// device time (frameworks/native cmds/dumpsys).
const DefaultTimeout = 10

// TimeoutOption returns the option that sets the timeout of dumpsys to a number
// of seconds, followed by a space. It returns "" for releases before Android 7
// (API level 24), which do not support -t.
func TimeoutOption(api, seconds int) string {
	if api < 24 {
		return ""
	}
	return fmt.Sprintf("-t %d ", seconds)
}
