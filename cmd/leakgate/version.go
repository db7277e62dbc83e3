package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/doctor"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/spf13/cobra"
)

func versionCommand(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", GroupID: groupHost,
		Short:       "print the version of leakgate and of its formats",
		Long:        "Print the version of leakgate, of Go and of the formats that leakgate writes.",
		Example:     "  leakgate version\n  leakgate version --json",
		Annotations: manual{exits: "0 the version was printed\n2 the command line is invalid"}.annotations(),
		RunE: c.run(func(c console, args []string) int {
			if err := withoutArguments(args, ""); err != nil {
				return c.usage(err)
			}
			return printVersion(c, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// version returns the module's version, or the commit from which leakgate was
// built.
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

func printVersion(c console, asJSON bool) int {
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
			c.problem("%v", err)
			return exitUsage
		}
		return exitOK
	}
	fmt.Fprintf(c.out, "leakgate %s (%s, %s), policy %s\n", v.Version, v.Go, v.System, v.Policy)
	return exitOK
}
