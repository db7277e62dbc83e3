package config

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
)

const (
	mostArguments      = 100
	longestArgumentKey = 200
	longestExpression  = 1000
	longestDelay       = 10 * time.Minute
	componentText      = `^[A-Za-z][A-Za-z0-9_.]*(/[A-Za-z_.][A-Za-z0-9_.$]*)?$`
	argumentKeyText    = `^[A-Za-z_][A-Za-z0-9_.-]*$`
	classText          = `^[^,]*[^,\s][^,]*$`
	roomArgument       = "delay_msec"
	classArgument      = "class"
)

var (
	componentPattern   = regexp.MustCompile(componentText)
	argumentKeyPattern = regexp.MustCompile(argumentKeyText)

	componentKind = kind[string]{
		component, same,
		form{"the package of the tests, a slash and the runner", []object{matching(componentText)}, false},
	}
	classKind  = kind[string]{className, same, form{"CLASS or CLASS#METHOD", []object{freeText(classText)}, false}}
	regexpKind = kind[string]{
		expression, same, form{"a regular expression in RE2 syntax", []object{freeText(notBlank)}, false},
	}
	delayKind = kind[time.Duration]{
		withUnit(restrict(duration,
			func(d time.Duration) bool { return d > 0 && d <= longestDelay && d%time.Millisecond == 0 },
			"whole milliseconds, more than 0 and at most 10m"),
			func(float64) string { return "s" }),
		writeDuration,
		form{"a duration of whole milliseconds over 0, at most 10m", []object{matching(timePattern)}, true},
	}
)

// component parses PACKAGE/CLASS in the same way as
// ComponentName.unflattenFromString, or a package alone (AOSP cmds/am
// Instrument.java, parseComponentName).
func component(text string) (string, *fault) {
	if len(text) > 2*longestName {
		return "",
			&fault{
				message: fmt.Sprintf("%s is too long: a component has at most %d characters", quoted(text),
					2*longestName),
			}
	}
	if !componentPattern.MatchString(text) {
		return "",
			&fault{
				message: quoted(text) +
					" is not a component: write the package of the tests, a slash and the runner, such as " +
					"com.shop.test/androidx.test.runner.AndroidJUnitRunner",
			}
	}
	return text, nil
}

// className parses one entry of the runner's `class` argument, whose entries
// are separated by commas.
func className(text string) (string, *fault) {
	if strings.Contains(text, ",") {
		return "", &fault{message: quoted(text) + " has a comma: write each class as a separate entry", part: ","}
	}
	if strings.TrimSpace(text) == "" {
		return "", &fault{message: "is blank: write CLASS or CLASS#METHOD"}
	}
	return line(text)
}

// expression checks a regular expression and returns it unchanged.
func expression(text string) (string, *fault) {
	switch {
	case strings.TrimSpace(text) == "":
		return "", &fault{message: "is blank: write a regular expression"}
	case len(text) > longestExpression:
		return "",
			&fault{message: fmt.Sprintf("is too long: a regular expression has at most %d bytes", longestExpression)}
	}
	_, err := regexp.Compile(text)
	if err == nil {
		return text, nil
	}
	f := &fault{message: quoted(text) + " is not a regular expression"}
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		f.message += ": " + string(e.Code)
		if e.Expr != "" && e.Expr != text {
			f.message += " in " + quoted(e.Expr)
			f.part = e.Expr
		}
	}
	return "", f
}

// instrumentKey returns the key of the instrumented tests. A single value is
// the short form of a mapping with only the component.
func instrumentKey(into **Instrument) key {
	i := *into
	if i == nil {
		i = &Instrument{}
	}
	classes := listed("class", &i.Classes, classKind, distinct, list(&i.Classes, className, distinct)).
		document("The test classes and methods to run.", "[com.shop.CartTest, com.shop.LoginTest#signsIn]")
	classes.unset = "all tests"
	keys := []key{
		optional("component", &i.Component, componentKind, "").
			document("The runner. Required; it may also be written directly as the value of instrument.",
				"com.shop.test/androidx.test.runner.AndroidJUnitRunner"),
		classes,
		argumentsKey(&i.Arguments),
		optional("delay_after_test", &i.DelayAfterTest, delayKind, "10s, or more on a device with a faster clock").
			document("The pause after each test, during which the test is checked (delay_msec).", "15s"),
	}
	const instead = "write the runner, such as com.shop.test/androidx.test.runner.AndroidJUnitRunner"
	return key{
		name: "instrument", brief: "component", form: componentKind.form, keys: keys, needed: []string{"component"},
		about:  "Instrumented tests, each of which is checked for leaks.",
		hidden: func() bool { return *into == nil },
		read: func(w *walker, at place) {
			*into = i
			if resolved(at.node).Tag == nullTag {
				w.refuse(at, &fault{message: "has no value: " + instead})
				return
			}
			w.demanding(at, keys, "component", instead)
		}}
}

// demanding reads a mapping in which the given key is required.
func (w *walker) demanding(at place, keys []key, name, instead string) {
	pairs, ok := w.pairsOf(at)
	if !ok {
		return
	}
	w.mapping(at, keys)
	if !slices.ContainsFunc(pairs, func(p pair) bool { return p.key.Value == name }) && !w.given(at.path+"."+name) {
		w.refuse(at, &fault{message: "missing key " + name + ": " + instead})
	}
}

// argumentsKey returns the key of the arguments of the runner, by name.
func argumentsKey(into *map[string]string) key {
	return key{
		name: "arguments", holds: manyPairs,
		form:  form{says: "a mapping of names to strings, at most 100", plain: true},
		pairs: func() map[string]string { return *into },
		read: func(w *walker, at place) {
			pairs, ok := w.pairsOf(at)
			if !ok {
				return
			}
			if len(pairs) > mostArguments {
				w.refuse(at,
					&fault{
						message: fmt.Sprintf("the list has %d entries, but at most %d are allowed", len(pairs),
							mostArguments),
					})
				return
			}
			w.accept(at, nil)
			out := map[string]string{}
			for _, p := range pairs {
				w.argument(p, at, out)
			}
			if len(out) > 0 {
				*into = out
			}
		}}.document("Additional arguments for the runner (-e NAME VALUE).", "{ size: small }")
}

// argument reads one argument of the runner.
func (w *walker) argument(p pair, at place, into map[string]string) {
	name, below := p.key.Value, p.below(at)
	switch {
	case name == roomArgument:
		w.refuse(p.itself(at),
			&fault{message: "the argument delay_msec is the time after each test: write delay_after_test"})
	case name == classArgument:
		w.refuse(p.itself(at),
			&fault{message: "the argument class has its own key: write class as a list next to arguments"})
	case len(name) > longestArgumentKey || !argumentKeyPattern.MatchString(name):
		w.refuse(p.itself(at),
			&fault{
				message: quoted(name) +
					" is not the name of an argument: want a letter, then letters, digits and . _ -",
			})
	default:
		var text string
		scalar(&text, argument)(w, below)
		if w.accepted(below.path) {
			into[name] = text
		}
	}
}

// windowsKey returns the key of the rule that finds tests in the output of a
// command.
func windowsKey(into **Windows) key {
	v := *into
	if v == nil {
		v = &Windows{}
	}
	keys := []key{
		optional("begin", &v.Begin, regexpKind, "").
			document("Matches the line at which a test begins. The group `name`, or the first group, is the name "+
				"of the test. Required.",
				`BEGIN (?P<name>.+)`),
		optional("end", &v.End, regexpKind, "").
			document("Matches the line at which a test ends. The group `name` identifies the test, and the "+
				"group `outcome` contains the result. Required.", `END (?P<name>.+)`),
	}
	return key{name: "windows", beside: true, keys: keys, needed: []string{"begin", "end"},
		about:  "Tests found in the output of a command, each of which is checked for leaks.",
		hidden: func() bool { return *into == nil },
		read: func(w *walker, at place) {
			*into = v
			w.demanding(at, keys, "begin", "write a regular expression for the line at which a test begins")
			if w.isMapping(at.path) && !w.given(at.path+".end") {
				w.refuse(at,
					&fault{
						message: "missing key end: write a regular expression for the line at which a test ends",
					})
			}
		}}
}
