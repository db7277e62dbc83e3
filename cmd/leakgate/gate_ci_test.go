package main

import (
	"os"
	"strings"
	"testing"
)

// With --dump, the commit and the merge request are taken from the GitLab job.
func TestGateByDumpsInGitLab(t *testing.T) {
	dir := inFolder(t)
	h, commit := heapsOf(t, dir), strings.Repeat("a", 40)
	job := map[string]string{"GITLAB_CI": "true", "CI_COMMIT_SHA": commit, "CI_COMMIT_REF_NAME": "main"}
	if code, _, errOut := typed(t, job, "baseline", "update", "--dump", h.base); code != 0 {
		t.Fatal(errOut)
	}
	if raw, err := os.ReadFile(baselineName); err != nil || !strings.Contains(string(raw), commit) {
		t.Errorf("the baseline does not contain the commit: %v\n%s", err, raw)
	}
	job["CI_MERGE_REQUEST_IID"] = "7"
	if code, _, errOut := typed(t, job, "baseline", "update", "--dump", h.worse); code != 2 ||
		!strings.Contains(errOut, "pull request 7") {
		t.Errorf("exit %d\n%s", code, errOut)
	}
}

// A job for a pull request does not update the baseline, even if the number of
// the pull request is unknown.
func TestBaselineOfAnUnknownPullRequest(t *testing.T) {
	dir := inFolder(t)
	h, g := heapsOf(t, dir), newHub(t)
	g.pull.headRepo = "mallory/app"
	without := g.pulled()
	without["GITHUB_EVENT_PATH"], without["GITHUB_REF"] = "", ""
	for name, env := range map[string]map[string]string{
		"workflow that runs after a fork's workflow": g.completed(), "pull request without an event file": without,
	} {
		if code, _, errOut := typed(t, env, "baseline", "update", "--dump", h.worse, "--baseline",
			"file:x.json"); code != 2 ||
			!strings.Contains(errOut, "this job tests a pull request") {
			t.Errorf("%s: exit %d\n%s", name, code, errOut)
		}
	}
}
