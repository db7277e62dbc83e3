package main

import (
	"encoding/json"
	"os"
	"slices"
)

// phasesFlag is the flag for the file to which leakgate writes its phases.
const phasesFlag = "--phases"

// phases contains what leakgate reports about the parts of its work.
type phases struct {
	Objects int64   `json:"objects"`
	Edges   int64   `json:"edges"`
	Phases  []phase `json:"phases"`
}

// phase is one part of leakgate's work: how long it took, and the memory in use
// at its end.
type phase struct {
	Name     string  `json:"name"`
	Seconds  float64 `json:"seconds"`
	RSSBytes int64   `json:"rss_bytes"`
}

// takePhases reads the phases file of a run and removes it. If the file cannot
// be read, it returns no phases, but the figures of the whole process are still
// used.
func takePhases(path string) *phases {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	if err := os.Remove(path); err != nil {
		return nil
	}
	var p phases
	if json.Unmarshal(data, &p) != nil || len(p.Phases) == 0 {
		return nil
	}
	return &p
}

// of returns the total duration of the named phases, in seconds.
func (p *phases) of(names []string) (sum float64) {
	if p == nil {
		return 0
	}
	for _, x := range p.Phases {
		if slices.Contains(names, x.Name) {
			sum += x.Seconds
		}
	}
	return sum
}
