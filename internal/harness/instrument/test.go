package instrument

// Test is one test of an instrumentation, as described by its start status.
type Test struct {
	// Class and Method are the names that the runner prints. Method is "" if an
	// entire class failed, as in @BeforeClass.
	Class, Method string
	// Number is the position of the test in the run, counted from 1; Total is
	// the number of tests that the runner announced. Number and Total are 0 if
	// they are unknown.
	Number, Total int
}

// Name returns CLASS#METHOD, or only the class if there is no method.
func (t Test) Name() string {
	if t.Method == "" {
		return t.Class
	}
	return t.Class + "#" + t.Method
}

// Outcome is how a test ended.
type Outcome string

// The outcomes, with the values of record.Check.Outcome.
const (
	Passed           Outcome = "passed"
	Failed           Outcome = "failed"
	Ignored          Outcome = "ignored"
	AssumptionFailed Outcome = "assumption_failed"
	// Crashed is the outcome of a test whose process died.
	Crashed Outcome = "crashed"
	// Unfinished is the outcome of a test without a result, because the output
	// stopped or another test began.
	Unfinished Outcome = "unfinished"
)

// Events holds the functions that are called for each test: first Begin and
// then End, before the next test begins.
type Events struct {
	Begin func(Test)
	// End is called when a test ends. stack is the reason why the test did not
	// pass, at most MaxStack bytes; it may be "".
	End func(t Test, outcome Outcome, stack string)
}

// Totals summarizes the output.
type Totals struct {
	// Announced is the number of tests that the runner announced, or nil if it
	// announced no number.
	Announced *int
	// Seen is the number of tests that began; Ended holds the number of tests
	// by outcome.
	Seen  int
	Ended map[Outcome]int
	// Seconds is the duration of the run as measured by the runner; Code is the
	// exit code of the instrumentation (-1 for Activity.RESULT_OK). Seconds and
	// Code are nil if the output does not contain them.
	Seconds *float64
	Code    *int
	// Crash is the reason why the process ended early, or "" if it did not.
	Crash string
	// Problem is the message of `am` or the runner that explains why tests
	// could not run, or "" if there is none.
	Problem string
}

// Missing returns how many announced tests did not begin.
func (s Totals) Missing() int {
	if s.Announced == nil {
		return 0
	}
	return max(0, *s.Announced-s.Seen)
}
