package androidsim

import "io/fs"

// devices holds the files in /dev. Writes to these files are discarded.
var devices = map[string]info{
	"/dev/null": {name: "null", mode: charDevice},
	"/dev/zero": {name: "zero", mode: charDevice},
}

const charDevice = fs.ModeDevice | fs.ModeCharDevice | 0o666

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
