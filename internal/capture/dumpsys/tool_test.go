package dumpsys

import (
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/known"
)

func TestFreeSpaceOfBothFormsOfDf(t *testing.T) {
	const header = "Filesystem     1K-blocks     Used Available Use% Mounted on\n"
	for name, c := range map[string]struct {
		text string
		want known.Int
	}{
		"toybox": {
			header + "/dev/block/dm-43 112249236 20213444 92035792  19% /data\n", known.Of(92035792 << 10),
		},
		"toybox, CRLF": {
			strings.ReplaceAll(header+"/dev/fuse 100 20 80 20% /data\n", "\n", "\r\n"), known.Of(80 << 10),
		},
		"other mount point": {header + "/dev/block/dm-43 100 20 80  20% /data/user/0\n", known.Of(80 << 10)},
		"several file systems": {
			header + "tmpfs 9 9 9 9% /dev\n/dev/x 100 20 80 20% /data\n/dev/y 7 7 7 7% /cache\n", known.Of(80 << 10),
		},
		"other file systems only": {header + "tmpfs 9 9 9 9% /dev\n/dev/y 7 7 7 7% /cache\n", known.Int{}},
		"toolbox": {
			"Filesystem               Size     Used     Free   Blksize\n/data                   12.5G     8.2G     " +
				"4.3G   4096\n", known.Of(4617089843),
		},
		"toolbox, megabytes": {"Filesystem  Size Used Free Blksize\n/data 512M 500M 12M 4096\n", known.Of(12 << 20)},
		"512-byte blocks": {
			"Filesystem 512-blocks Used Available Capacity Mounted on\n/x 10 2 8 2% /data\n", known.Of(4096),
		},
		"full":                {header + "/dev/x 100 100 0 100% /data\n", known.Of(0)},
		"negative":            {header + "/dev/x 100 100 -5 100% /data\n", known.Int{}},
		"no number":           {header + "/dev/x 100 100 lots 100% /data\n", known.Int{}},
		"too large":           {header + "/dev/x 1 1 99999999999999999999 1% /data\n", known.Int{}},
		"cut":                 {header + "/dev/x 100\n", known.Int{}},
		"only a header":       {header, known.Int{}},
		"error":               {"df: /data: Permission denied\n", known.Int{}},
		"nothing":             {"", known.Int{}},
		"only a unit, no row": {"Filesystem 1K-blocks Used K Available\n/data 1 1 1 K\n", known.Int{}},
	} {
		if got := ParseDiskFree(c.text, "/data"); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestMemorySize(t *testing.T) {
	for text, want := range map[string]known.Int{
		"256m\n": known.Of(256 << 20), "1g": known.Of(1 << 30), "8192K": known.Of(8192 << 10),
		"16777216\r\n": known.Of(16777216),
		"":             {}, "m": {}, "-1m": {}, "256mm": {}, "99999999999m": {}, "0m": {}, "0x10": {},
	} {
		if got := ParseMemorySize([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
