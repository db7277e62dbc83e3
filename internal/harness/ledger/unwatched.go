package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// unwatched lists names of processes that have the user ID of the app, but are
// not watched.
type unwatched []string

const (
	// maxUnwatched is the maximum number of names.
	maxUnwatched = 20
	// sandboxAPI is the first API level on which the pages of WebViews are
	// rendered in separate processes, except on 32-bit devices with little
	// memory until API 29 (chromium/src android_webview/renderer/README.md).
	sandboxAPI = 26
	// sandboxName is part of the names of these processes.
	sandboxName = ":sandboxed_process"
)

func (u *unwatched) add(names []string) {
	for _, name := range names {
		name = text.Head(name, maxText)
		if len(*u) < maxUnwatched && !slices.Contains(*u, name) {
			*u = append(*u, name)
		}
	}
}

// warnings returns warnings about the processes of the app that a run on this
// device did not watch.
func (u unwatched) warnings(p *Part) []string {
	var out []string
	if len(u) > 0 {
		out = append(out,
			fmt.Sprintf("device %s: processes with the user ID of the app that are not watched: %s; to watch them, "+
				"add their names to app.processes or --process", p.header.Device, strings.Join(u, ", ")))
	}
	if a := p.showsPages(); a != nil {
		out = append(out,
			fmt.Sprintf("device %s: %s has WebViews, but the processes that render their pages are not watched; to "+
				"watch them, add com.google.android.webview:* to app.processes or --process", p.header.Device, a.Key()))
	}
	return out
}

// showsPages returns a process whose WebViews are rendered in processes that
// are not watched, or nil if there is none.
func (p *Part) showsPages() *Account {
	var shows *Account
	for _, a := range p.accounts {
		if strings.Contains(a.Name, sandboxName) {
			return nil
		}
		if shows == nil && p.header.API >= sandboxAPI && a.objects["WebViews"].Max > 0 {
			shows = a
		}
	}
	return shows
}
