// Package github is the GitHub client of the gate: it reads what started a
// workflow, keeps one comment on a pull request, writes check runs, SARIF and
// the job summary, and reads artifacts.
//
// A lost response does not mean that a request failed, so the package reads
// before it writes again. A creation is repeated only after the new object has
// had time to appear in the lists. All other requests are repeated until a time
// limit, with the pauses that GitHub requires
// (docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api).
package github
