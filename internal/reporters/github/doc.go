// Package github is the GitHub side of the gate: it reads what started a workflow, keeps one comment on a pull
// request, writes check runs, SARIF and the job summary, and reads artifacts. Others render what it writes.
//
// The one idea: a lost reply proves nothing, so it looks before it writes again. A creation is never repeated before
// the lists had time to show it; everything else is repeated until a time limit, with the pauses that GitHub asks for
// (docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api).
package github
