package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/doctor"
	"github.com/leakgate/leakgate/reporters/record"
)

func versionVerb() verb {
	return verb{
		name: "version", args: "[--json]",
		summary: "build and versions",
		help:    "Prints the version of the program, of Go, and of the formats that it writes.",
		example: "leakgate version",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			asJSON := fs.Bool("json", false, "print JSON")
			return func(c console, _ []string) int { return tellVersion(c, *asJSON) }
		},
	}
}

// version is the module's version, or the commit that the build was made from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && info.Main.Version == "(devel)" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return info.Main.Version
}

func tellVersion(c console, asJSON bool) int {
	v := struct {
		Version string   `json:"version"`
		Go      string   `json:"go"`
		System  string   `json:"system"`
		Schemas []string `json:"schemas"`
		Policy  string   `json:"policy"`
	}{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH,
		[]string{record.RunSchema, record.SamplesSchema, parseSchema, doctor.Schema}, detector.DefaultPolicy().Name}
	if asJSON {
		if err := json.NewEncoder(c.out).Encode(v); err != nil {
			fmt.Fprintf(c.err, "leakgate version: %v\n", err)
			return exitUsage
		}
		return exitOK
	}
	fmt.Fprintf(c.out, "leakgate %s (%s, %s), policy %s\n", v.Version, v.Go, v.System, v.Policy)
	return exitOK
}
