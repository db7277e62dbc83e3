package detector

import "time"

// robustMachine is the state machine of policy "robust".
type robustMachine struct {
	r Robust
	n int
}

func newRobustMachine(r Robust) *robustMachine { return &robustMachine{r: r} }

func (m *robustMachine) addSample(Sample) []Transition               { m.n++; return nil }
func (m *robustMachine) addBreakdown(Breakdown) []Transition         { return nil }
func (m *robustMachine) diagnosisDone(at time.Duration) []Transition { return nil }
func (m *robustMachine) restart(at time.Duration) []Transition       { return nil }
func (m *robustMachine) gap(at time.Duration) []Transition           { return nil }
func (m *robustMachine) change(at time.Duration) []Transition        { return nil }
func (m *robustMachine) mark(Mark)                                   {}
func (m *robustMachine) among(int)                                   {}
func (m *robustMachine) explain(func(Look))                          {}
func (m *robustMachine) demand() Demand                              { return Demand{Interval: m.r.NormalInterval} }
func (m *robustMachine) verdict() Verdict                            { return Verdict{Gate: Pass, Samples: m.n} }
func (m *robustMachine) against(base *robustMachine) Verdict         { return m.verdict() }
