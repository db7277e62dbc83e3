package androidsim

import (
	"fmt"

	"github.com/leakgate/leakgate/internal/androidtext"
)

// showmapEverywhere is the first API level at which user builds include
// showmap, in /system/bin instead of /system/xbin.
const showmapEverywhere = androidtext.ShowmapEverywhere

func showmap(c *call) int {
	api := c.phone.opt.API
	o, ok := androidtext.ParseShowmap(c.Args[1:])
	if !ok {
		c.Out.Flush()
		fmt.Fprint(c.Errs, androidtext.ShowmapUsage(api))
		return 1
	}
	v, found := c.phone.find(o.PID)
	reason := "Permission denied"
	switch {
	case !found || !c.phone.sees(c.Cred, v):
		reason = "No such file or directory"
	case traces(c.Cred, v):
		c.Printf("%s", androidtext.Showmap(api, v.memory().mappings(v), o))
		return 0
	}
	if !o.Quiet {
		c.Out.Flush()
		fmt.Fprint(c.Errs, androidtext.ShowmapError(api, o.PID, reason))
	}
	return 1
}

func (m memory) mappings(v view) []androidtext.Mapping {
	areas := m.areas(v, v.api)
	out := make([]androidtext.Mapping, len(areas))
	for i, a := range areas {
		out[i] = androidtext.Mapping{Start: a.start, End: a.end, Perms: a.perms, Name: a.name, Memory: a.text()}
	}
	return out
}
