package adbd

import (
	"context"
	"io"
	"strings"
)

// stream is one open service, the same for both front ends. One goroutine reads
// from it; Read returns io.EOF when the peer has closed its side, which means
// that the peer no longer expects a response.
type stream interface {
	io.Reader
	io.Writer
	// Close ends the stream gracefully: written data reaches the peer, and Read
	// soon returns.
	Close() error
}

// service is a shell command or a file session that a peer has opened; run
// returns when the service and everything that it started have ended.
type service interface {
	run(ctx context.Context, phone Phone, s stream)
}

// lookup returns the service with the name that the peer sent. A phone rejects
// unknown services, which the peer reports as "closed".
func lookup(id Identity, name string) (service, bool) {
	kind, rest, found := strings.Cut(name, ":")
	if !found {
		return nil, false
	}
	kind, options, _ := strings.Cut(kind, ",")
	switch {
	case kind == "shell":
		return lookupShell(id, options, rest)
	case kind == "exec" && options == "":
		return shellService{command: rest}, true
	case name == "sync:":
		return syncService{stat64: id.has(FeatureStat), list64: id.has(FeatureList)}, true
	}
	return nil, false
}

// lookupShell parses the options between "shell" and the colon: v2, raw, pty
// and TERM=x; others are ignored, as on a phone (ShellService in
// daemon/services.cpp).
func lookupShell(id Identity, options, command string) (service, bool) {
	// By default, only the interactive shell has a terminal; on phones without
	// the shell protocol, every command has a terminal.
	s := shellService{command: command, terminal: command == "" || !id.has(FeatureShell)}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "v2":
			s.packets = true
		case "raw":
			s.terminal = false
		case "pty":
			s.terminal = true
		}
	}
	if options != "" && !id.has(FeatureShell) {
		return nil, false
	}
	return s, true
}
