package instrument

// Test is one test of an instrumentation as its start names it.
type Test struct {
	// Class and Method are as the runner names them; Method is "" where a class failed as a
	// whole, as in @BeforeClass.
	Class, Method string
	// Number counts the tests of the run from 1, Total is how many the runner announced; 0
	// where it did not say.
	Number, Total int
}

// Name returns CLASS#METHOD, or the class alone where there is no method.
func (t Test) Name() string {
	if t.Method == "" {
		return t.Class
	}
	return t.Class + "#" + t.Method
}

// Outcome is how a test ended.
type Outcome string

// The outcomes. Their texts are those of record.Check.
const (
	Passed           Outcome = "passed"
	Failed           Outcome = "failed"
	Ignored          Outcome = "ignored"
	AssumptionFailed Outcome = "assumption_failed"
	// Crashed is a test whose process died.
	Crashed Outcome = "crashed"
	// Unfinished is a test without an end: the output stopped, or another test began.
	Unfinished Outcome = "unfinished"
)

// Events are called for each test, first Begin and then End, before the next test begins.
type Events struct {
	Begin func(Test)
	// End has the reason of a test that did not pass, at most MaxStack bytes; it may be "".
	End func(t Test, outcome Outcome, stack string)
}

// Totals is what the output as a whole says.
type Totals struct {
	// Announced is how many tests the runner said it would run; nil where it did not.
	Announced *int
	// Seen is how many tests began, and Ended how they ended.
	Seen  int
	Ended map[Outcome]int
	// Seconds is the time of the run as the runner measured it, Code the code with which the
	// instrumentation finished (-1 for Activity.RESULT_OK); nil where the output lacks them.
	Seconds *float64
	Code    *int
	// Crash says why the process ended early, "" where it did not.
	Crash string
	// Problem is what `am` or the runner said why tests could not run, "" for nothing.
	Problem string
}

// Missing returns how many announced tests did not begin.
func (s Totals) Missing() int {
	if s.Announced == nil {
		return 0
	}
	return max(0, *s.Announced-s.Seen)
}
