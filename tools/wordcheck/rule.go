package main

import (
	_ "embed"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed phrases.txt
var phrasesText string

//go:embed exceptions.txt
var exceptionsText string

// phrase is a pattern that must not occur, and what to write instead.
type phrase struct {
	name    string
	pattern *regexp.Regexp
	better  string
}

// exception allows a phrase in the files that match a pattern.
type exception struct {
	files  string
	phrase string
	used   bool
	line   int
}

type rules struct {
	phrases    []phrase
	exceptions []exception
}

func defaultRules() (*rules, error) { return parseRules(phrasesText, exceptionsText) }

// parseRules parses the lists of phrases and of exceptions. A line of phrases
// is `PHRASE => BETTER`; PHRASE is a regular expression whose blanks match any
// white space. A line of exceptions is `FILES | PHRASE | REASON`; FILES is a
// pattern of [path.Match] or a folder with a slash at its end, and PHRASE is a
// phrase as written in the list, the name of a column rule, or *.
func parseRules(phrases, exceptions string) (*rules, error) {
	r := &rules{}
	names := map[string]bool{"*": true, ruleColumns: true, ruleComment: true, ruleMarkdown: true}
	for i, line := range content(phrases) {
		if line == "" {
			continue
		}
		name, better, ok := strings.Cut(line, " => ")
		if !ok || strings.TrimSpace(better) == "" {
			return nil, fmt.Errorf("phrases.txt:%d: want PHRASE => BETTER", i+1)
		}
		name = strings.TrimSpace(name)
		if names[name] {
			return nil, fmt.Errorf("phrases.txt:%d: %q is in the list twice", i+1, name)
		}
		names[name] = true
		re, err := regexp.Compile(`(?i)\b(?:` + strings.ReplaceAll(name, " ", `\s+`) + `)`)
		if err != nil {
			return nil, fmt.Errorf("phrases.txt:%d: %w", i+1, err)
		}
		r.phrases = append(r.phrases, phrase{name: name, pattern: re, better: strings.TrimSpace(better)})
	}
	for i, line := range content(exceptions) {
		if line == "" {
			continue
		}
		parts := strings.SplitN(line, "|", 3)
		if len(parts) != 3 || strings.TrimSpace(parts[2]) == "" {
			return nil, fmt.Errorf("exceptions.txt:%d: want FILES | PHRASE | REASON", i+1)
		}
		e := exception{files: strings.TrimSpace(parts[0]), phrase: strings.TrimSpace(parts[1]), line: i + 1}
		if !names[e.phrase] {
			return nil, fmt.Errorf("exceptions.txt:%d: %q is not in phrases.txt", i+1, e.phrase)
		}
		r.exceptions = append(r.exceptions, e)
	}
	return r, nil
}

// content returns the lines of a list; comments and blank lines are returned as
// "".
func content(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			line = ""
		}
		lines[i] = strings.TrimSpace(line)
	}
	return lines
}

func (e *exception) covers(file string) bool {
	if strings.HasSuffix(e.files, "/") {
		return strings.HasPrefix(file, e.files)
	}
	ok, _ := path.Match(e.files, file)
	return ok || e.files == file
}

// report prints the findings that no exception covers, and the exceptions that
// cover no finding. It returns the total number of both.
func (r *rules) report(out io.Writer, files []string, found []finding) int {
	left := 0
	for _, f := range found {
		if r.allowed(f) {
			continue
		}
		left++
		fmt.Fprintf(out, "%s:%d: %s\n", f.file, f.line, f.text)
	}
	for _, e := range r.exceptions {
		switch {
		case !slices.ContainsFunc(files, e.covers):
			left++
			fmt.Fprintf(out, "exceptions.txt:%d: no tracked file matches %s\n", e.line,
				e.files)
		case !e.used:
			left++
			fmt.Fprintf(out, "exceptions.txt:%d: nothing in %s needs it\n", e.line,
				e.files)
		}
	}
	return left
}

func (r *rules) allowed(f finding) bool {
	allowed := false
	for i := range r.exceptions {
		if e := &r.exceptions[i]; (e.phrase == "*" || e.phrase == f.phrase) && e.covers(f.file) {
			e.used, allowed = true, true
		}
	}
	return allowed
}
