package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// leakCanary returns what LeakCanary 2 prints for a heap dump in which a screen
// leaks for each signature (HeapAnalysisSuccess.toString, LeakTrace.toString).
func leakCanary(screens map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"====================================\nHEAP ANALYSIS RESULT\n====================================\n%d "+
			"APPLICATION LEAKS\n\n"+
			"References underlined with \"~~~\" are likely causes.\nLearn more at https://squ.re/leaks.\n\n",
		len(screens))
	for _, screen := range []string{"CartActivity", "WishActivity"} {
		signature := screens[screen]
		if signature == "" {
			continue
		}
		fmt.Fprintf(&b, `15424 bytes retained by leaking objects
Signature: %[1]s
┬───
│ GC Root: System class
│
├─ com.shop.%[2]sBus class
│    Leaking: NO (a class is never leaking)
│    ↓ static %[2]sBus.last
│                      ~~~~
╰→ com.shop.%[2]s instance
@     Leaking: YES (ObjectWatcher was watching this because com.shop.%[2]s received Activity#onDestroy() callback and Activity#mDestroyed is true)
@     Retaining 15.4 kB in 152 objects
@     key = 5de9cc31-3da2-4f44-a5d9-4b6a1f1b7f9d

`, signature, screen)
	}
	b.WriteString("====================================\n0 LIBRARY LEAKS\n\nA Library Leak is a leak caused by a " +
		"known bug in 3rd party code that you do not have control over.\n" +
		"See https://square.github.io/leakcanary/fundamentals-how-leakcanary-works/#4-categorizing-leaks\n" +
		"====================================\n0 UNREACHABLE OBJECTS\n\n" +
		"An unreachable object is still in memory but LeakCanary could not find a strong reference path\nfrom GC " +
		"roots.\n====================================\nMETADATA\n\n" +
		"Please include this in bug reports and Stack Overflow questions.\n\nBuild.VERSION.SDK_INT: 34\nLeakCanary " +
		"version: 2.14\nAnalysis duration: 2000 ms\n====================================")
	// Lines after the last object begin with a zero width space
	// (LeakTrace.ZERO_WIDTH_SPACE).
	return strings.ReplaceAll(b.String(), "@", "\u200b")
}

// asJUnit returns the report as the failure of a test in JUnit XML, asLogcat in
// the form of logcat.
func asJUnit(report string) string {
	escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(report)
	return `<testsuite name="com.shop.CartTest" tests="2" failures="1"><testcase name="opens" classname="com.shop.CartTest"/>` +
		`<testcase name="closes" classname="com.shop.CartTest"><failure>leakcanary.NoLeakAssertionFailedError: Application memory leaks were detected:
` + escaped + `
	at leakcanary.NoLeakAssertionFailedError$Companion.invoke(NoLeakAssertionFailedError.kt:1)</failure></testcase></testsuite>`
}

func asLogcat(report string) string {
	var b strings.Builder
	b.WriteString("11-02 10:00:00.000  4711  4720 I OtherTag: not about leaks\n")
	for line := range strings.SplitSeq(report, "\n") {
		b.WriteString("11-02 10:00:00.000  4711  4720 D LeakCanary: " + line + "\n")
	}
	return b.String()
}

// A LeakCanary report is judged by its signatures, whatever its form.
func TestGateLeakCanary(t *testing.T) {
	known := map[string]string{"CartActivity": strings.Repeat("a1", 20)}
	worse := map[string]string{"CartActivity": strings.Repeat("a1", 20), "WishActivity": strings.Repeat("b2", 20)}
	for form, as := range map[string]func(string) string{
		"text": func(s string) string { return s }, "junit": asJUnit, "logcat": asLogcat,
	} {
		t.Run(form, func(t *testing.T) {
			inFolder(t)
			for name, leaks := range map[string]map[string]string{"known": known, "worse": worse, "clean": nil} {
				if err := os.WriteFile(name, []byte(as(leakCanary(leaks))), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if code, out, errOut := typed(t, nil, "gate", "--leakcanary", "known", "--app", "com.shop"); code != 1 ||
				!strings.Contains(out, "CartActivity") {
				t.Errorf("without a baseline: exit %d\n%s%s", code, out, errOut)
			}
			if code, out, errOut := typed(t, nil, "baseline", "update", "--leakcanary", "known", "--app",
				"com.shop"); code != 0 {
				t.Fatalf("exit %d\n%s%s", code, out, errOut)
			}
			for name, want := range map[string]int{"known": 0, "worse": 1, "clean": 0} {
				code, out, errOut := typed(t, nil, "gate", "--leakcanary", name, "--app", "com.shop")
				if code != want ||
					strings.Contains(out, "WishActivity, held by WishActivityBus.last") != (name == "worse") {
					t.Errorf("%s: exit %d\n%s%s", name, code, out, errOut)
				}
			}
		})
	}
}
