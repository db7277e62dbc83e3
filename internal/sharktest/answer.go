package sharktest

import (
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Mode selects the classes in a dump that Shark treats specially.
type Mode string

// Android uses all of AndroidReferenceMatchers, the inspectors and the metadata
// for Android. JVM is for dumps without android.os.Build, on which the Android
// mode fails. JVM uses the JDK's inspectors and only three matchers:
// REFERENCES, FINALIZER_WATCHDOG_DAEMON and MAIN; it reads no metadata.
const (
	Android Mode = "android"
	JVM     Mode = "jvm"
)

// Finder selects the leaking objects.
type Finder string

// Filter selects the objects that the filters of all inspectors of the mode
// find; Keyed selects those that LeakCanary's ObjectWatcher watched and
// retained.
const (
	Filter Finder = "filter"
	Keyed  Finder = "keyed"
)

// Class returns a Finder that selects all objects whose class has exactly this
// name.
func Class(name string) Finder { return Finder("class:" + name) }

// Request describes one analysis.
type Request struct {
	// Dump is the path of an uncompressed heap dump.
	Dump   string
	Mode   Mode
	Finder Finder
}

// Answer is Shark's result.
type Answer struct {
	Request Request `json:"-"`
	// Failure is the reason why Shark returned no result, or "". If Failure is
	// set, all other fields are empty.
	Failure string `json:"failure"`
	// Leaking lists the IDs of the objects that the finder selected, in the
	// finder's order.
	Leaking []uint64 `json:"leaking"`
	// Metadata is nil for a JVM dump.
	Metadata map[string]string `json:"metadata"`
	// Leaks lists the application's leaks, followed by library leaks.
	Leaks []Leak `json:"leaks"`
	// Unreachable lists the leaking objects to which no path leads.
	Unreachable []Object `json:"unreachable"`
}

// The types of leaks.
const (
	Application = "application"
	Library     = "library"
)

// Leak is a group of traces with the same signature.
type Leak struct {
	Type             string `json:"type"`
	Signature        string `json:"signature"`
	ShortDescription string `json:"shortDescription"`
	// Pattern and Description are set for a known library leak.
	Pattern         string  `json:"pattern"`
	Description     string  `json:"description"`
	RetainedBytes   int64   `json:"retainedBytes"`
	RetainedObjects int64   `json:"retainedObjects"`
	Traces          []Trace `json:"traces"`
}

// Trace is a path from a root to a leaking object.
type Trace struct {
	// Root is the kind of GC root, such as JNI_GLOBAL.
	Root string `json:"root"`
	// Path lists the references; the first reference originates in the root's
	// object.
	Path []Reference `json:"path"`
	// Leaking is the object at the end of the path.
	Leaking Object `json:"leaking"`
	// Text is the trace as Shark prints it.
	Text string `json:"text"`
}

// Reference is one step on a path.
type Reference struct {
	Origin Object `json:"origin"`
	// Kind is INSTANCE_FIELD, STATIC_FIELD, LOCAL or ARRAY_ENTRY.
	Kind string `json:"kind"`
	// Owner is the name of the class that declares the field, Name is the field
	// or index, and Generic is the string that replaces the index in the
	// signature.
	Owner   string `json:"owner"`
	Name    string `json:"name"`
	Generic string `json:"generic"`
	Suspect bool   `json:"suspect"`
}

// Object is an object on a path, with the results of the inspectors.
type Object struct {
	ID uint64 `json:"id"`
	// Type is CLASS, ARRAY or INSTANCE.
	Type  string `json:"type"`
	Class string `json:"class"`
	// Status is LEAKING, NOT_LEAKING or UNKNOWN.
	Status string   `json:"status"`
	Reason string   `json:"reason"`
	Labels []string `json:"labels"`
	// RetainedBytes and RetainedObjects are -1 if Shark did not compute them.
	RetainedBytes   int64 `json:"retainedBytes"`
	RetainedObjects int64 `json:"retainedObjects"`
}

//go:embed java/SharkAnswers.java
var program string

// Analyze runs Shark and returns an answer for each request. One JVM processes
// all requests, one after the other.
func (s *Shark) Analyze(tb testing.TB, requests []Request) []Answer {
	tb.Helper()
	var lines strings.Builder
	for _, r := range requests {
		dump, err := filepath.Abs(r.Dump)
		if err != nil {
			tb.Fatalf("find dump: %v", err)
		}
		for _, field := range []string{dump, string(r.Mode), string(r.Finder)} {
			if strings.ContainsAny(field, "\r\n") {
				tb.Fatalf("run Shark: a line break in %q", field)
			}
			lines.WriteString(field + "\n")
		}
	}
	file := filepath.Join(tb.TempDir(), "requests")
	if err := os.WriteFile(file, []byte(lines.String()), 0o644); err != nil {
		tb.Fatalf("run Shark: %v", err)
	}
	out := s.Compile(tb, "SharkAnswers", program).Run(tb, file)
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	decoder.DisallowUnknownFields()
	answers := make([]Answer, len(requests))
	for i := range answers {
		if err := decoder.Decode(&answers[i]); err != nil {
			tb.Fatalf("decode Shark's result for %s: %v", requests[i].Dump, err)
		}
		answers[i].Request = requests[i]
	}
	return answers
}
