package androidsim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/ksh"
)

// inputService is the first API level at which input is a command of the input
// service (services/core InputShellCommand.java); before that, it was a
// separate program (cmds/input Input.java).
const inputService = 31

// Durations of input events in device time (android.view.ViewConfiguration).
const (
	usualSwipe = 300 * time.Millisecond
	longPress  = 500 * time.Millisecond
	// keyTakes is the device time from a key press to its effect on a screen.
	keyTakes = 60 * time.Millisecond
)

var inputSources = []string{
	"dpad", "keyboard", "mouse", "touchpad", "gamepad", "touchnavigation", "joystick", "touchscreen", "stylus",
	"trackball",
}

// input accepts all events, but only two keys have an effect: BACK closes the
// screen in front, HOME leaves it (App.Screens). Errors have the messages of
// the real command.
func input(c *call) int {
	if c.phone.server() == 0 {
		return c.noService("input")
	}
	e := inputEvent{call: c, args: c.Args[1:]}
	e.command = e.next()
	if slices.Contains(inputSources, e.command) {
		e.command = e.required()
	}
	if e.command == "-d" && c.phone.opt.API >= 29 {
		e.required()
		e.command = e.required()
	}
	takes := e.read()
	switch {
	case e.unknown && (e.problem == "" || c.phone.opt.API < inputService):
		return e.refuse()
	case e.problem != "" || c.phone.opt.API < inputService && len(e.args) > 0:
		return e.complain()
	}
	if c.phone.now().wait(c.Ctx, takes) != nil {
		return ksh.Status(c.Ctx)
	}
	for _, key := range e.keys {
		if !c.phone.showsScreen() {
			break
		}
		if c.phone.now().wait(c.Ctx, keyTakes) != nil {
			return ksh.Status(c.Ctx)
		}
		c.phone.press(key)
	}
	return 0
}

type inputEvent struct {
	call    *call
	command string
	args    []string
	// last is the latest parsed argument; problem is the first error.
	last, problem string
	unknown       bool
	// keys lists the names of the pressed keys.
	keys []string
}

func (e *inputEvent) next() string {
	if len(e.args) == 0 {
		return ""
	}
	e.last, e.args = e.args[0], e.args[1:]
	return e.last
}

// required returns the next argument, which must exist
// (ShellCommand.getNextArgRequired).
func (e *inputEvent) required() string {
	if len(e.args) == 0 && e.problem == "" {
		e.problem = fmt.Sprintf("Argument expected after \"%s\"", e.last)
	}
	return e.next()
}

// check records an error in parsing a number, unless there is an earlier one.
func (e *inputEvent) check(err error) {
	if err != nil && e.problem == "" {
		e.problem = "Error: Invalid arguments for command: " + e.command
	}
}

// read parses the arguments of the command and returns how long the event
// takes.
func (e *inputEvent) read() time.Duration {
	points := map[string]int{"tap": 2, "roll": 2, "press": 0, "swipe": 4, "draganddrop": 4}
	switch n, known := points[e.command]; {
	case e.command == "text":
		e.required()
	case e.command == "keyevent":
		return e.readKeys()
	case known:
		for range n {
			_, err := strconv.ParseFloat(strings.TrimSpace(e.required()), 32)
			e.check(err)
		}
		if n == 4 {
			return e.readSwipe()
		}
	default:
		e.unknown = true
	}
	return 0
}

func (e *inputEvent) readKeys() (takes time.Duration) {
	name := e.required()
	for strings.HasPrefix(name, "--") {
		if name == "--longpress" {
			takes = longPress
		}
		name = e.required()
	}
	for _, key := range append([]string{name}, e.args...) {
		e.keys = append(e.keys, keyOf(key))
	}
	e.args = nil
	return takes
}

func (e *inputEvent) readSwipe() time.Duration {
	takes := usualSwipe
	if len(e.args) > 0 {
		ms, err := strconv.ParseInt(e.next(), 10, 32)
		e.check(err)
		if ms >= 0 {
			takes = time.Duration(ms) * time.Millisecond
		}
	}
	if e.command == "draganddrop" {
		takes += longPress
	}
	return takes
}

// refuse responds to an unknown or missing command.
func (e *inputEvent) refuse() int {
	c := e.call
	if c.phone.opt.API >= inputService {
		if e.command == "" || e.command == "help" || e.command == "-h" {
			c.Printf("%s", inputUsage)
			return 0
		}
		c.Printf("Unknown command: %s\n", e.command)
		return 0
	}
	if e.command != "" {
		fmt.Fprintf(c.Errs, "Error: Unknown command: %s\n", e.command)
	}
	fmt.Fprint(c.Errs, inputUsage)
	return 0
}

// complain responds to invalid arguments: since API 31, the input service
// throws an exception (android.os.ShellCommand.exec); before that, the input
// program prints its usage.
func (e *inputEvent) complain() int {
	c := e.call
	if c.phone.opt.API >= inputService {
		fmt.Fprintf(c.Errs,
			"\nException occurred while executing '%s':\njava.lang.IllegalArgumentException: %s\n\tat "+
				"com.android.server.input.InputShellCommand.onCommand(InputShellCommand.java:267)\n\tat "+
				"com.android.modules.utils.BasicShellCommandHandler.exec(BasicShellCommandHandler.java:97)\n",
			c.Args[1], e.problem)
		return 255
	}
	fmt.Fprintf(c.Errs, "Error: Invalid arguments for command: %s\n%s", e.command, inputUsage)
	return 0
}

const inputUsage = `Usage: input [<source>] <command> [<arg>...]

The sources are: 
      dpad
      keyboard
      mouse
      touchpad
      gamepad
      touchnavigation
      joystick
      touchscreen
      stylus
      trackball

The commands and default sources are:
      text <string> (Default: touchscreen)
      keyevent [--longpress] <key code number or name> ... (Default: keyboard)
      tap <x> <y> (Default: touchscreen)
      swipe <x1> <y1> <x2> <y2> [duration(ms)] (Default: touchscreen)
      draganddrop <x1> <y1> <x2> <y2> [duration(ms)] (Default: touchscreen)
      press (Default: trackball)
      roll <dx> <dy> (Default: trackball)
`
