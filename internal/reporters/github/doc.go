// Package github is the GitHub side of the gate: it reads what started a
// workflow, keeps one comment on a pull request, writes check runs, SARIF and
// the job summary, and reads artifacts.
//
// A lost reply proves nothing, so the package reads before it writes again. A
// creation is never repeated before the lists had time to show it. Everything
// else is repeated until a time limit, with the pauses that GitHub requires
// (docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api).
package github
