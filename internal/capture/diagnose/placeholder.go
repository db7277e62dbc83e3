package diagnose

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/text"
)

// placeholders holds the words that may be in braces in a command line. The
// value is true if the word is replaced by a string from the device.
var placeholders = map[string]bool{"pid": false, "user": false, "process": true, "package": true}

// fill replaces the placeholders in a command line with the values of a
// process. The command line must have passed checkLine, or be defined in this
// package.
func fill(command string, p capture.Process, facts capture.Facts) string {
	return strings.NewReplacer(
		"{{", "{",
		"{pid}", strconv.Itoa(p.PID),
		"{user}", strconv.Itoa(p.User),
		"{process}", text.ShellQuote(p.Name),
		"{package}", text.ShellQuote(p.Package()),
		"{-t}", dumpsys.TimeoutOption(facts.API, dumpsys.DefaultTimeout),
	).Replace(command)
}

// checkLine rejects a line in which a substituted value could be more than one
// word: each value is inserted with quotes of its own, which have a different
// meaning inside other quotes. checkLine implements the part of the shell's
// quoting rules that it can decide with certainty, and rejects the rest.
func checkLine(line string) error {
	if strings.TrimSpace(line) == "" {
		return errors.New("the command is empty")
	}
	if len(line) > maxCommand {
		return fmt.Errorf("the command has %d bytes, more than %d", len(line), maxCommand)
	}
	if at := strings.IndexFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }); at >= 0 {
		return fmt.Errorf("the command has the control character %#02x: write it on one line", line[at])
	}
	c := lineCheck{line: line}
	for c.at < len(line) {
		if err := c.step(); err != nil {
			return err
		}
	}
	switch {
	case c.quote != 0:
		return fmt.Errorf("missing closing %c", c.quote)
	case c.texts > 0 && c.nested != "":
		return fmt.Errorf("the command has %s, where a name cannot be quoted safely: rewrite the command "+
			"without this, or without {process} and {package}", c.nested)
	}
	return nil
}

// lineCheck parses the quotes in a command line as a shell does.
type lineCheck struct {
	line string
	at   int
	// quote is the open quote: ' or " or `; 0 if none is open.
	quote byte
	// texts is the number of placeholders whose value is a string.
	texts int
	// nested is a shell construct that makes it unclear what is quoted, or
	// empty if there is none.
	nested string
}

func (c *lineCheck) step() error {
	switch b := c.line[c.at]; {
	case b == '\\' && c.quote != '\'':
		if c.at+1 == len(c.line) {
			return errors.New("the command ends with a backslash")
		}
		if c.line[c.at+1] == '{' {
			return errors.New(`the command has \{: write a literal brace as {{`)
		}
		c.at++
	case b == '{':
		return c.brace()
	case b == '$':
		c.dollar()
	case b == '#' && c.quote == 0 && c.startsWord():
		return errors.New("the command has a comment")
	case b == '<' && c.quote == 0 && strings.HasPrefix(c.line[c.at:], "<<"):
		return errors.New("the command has a here-document: write it on one line")
	case b == '(' && c.quote != '\'' && strings.HasPrefix(c.line[c.at:], "(("):
		// Inside an arithmetic expansion, some shells execute commands in a
		// subscript.
		c.nested = "arithmetic"
	case b == '`' && c.quote != '\'':
		c.nested = "backquotes"
		if c.quote != '"' {
			c.toggle(b)
		}
	case b == '\'' && c.quote != '"' || b == '"' && c.quote != '\'':
		c.toggle(b)
	}
	c.at++
	return nil
}

// toggle opens or closes a quote.
func (c *lineCheck) toggle(b byte) {
	switch c.quote {
	case 0:
		c.quote = b
	case b:
		c.quote = 0
	}
}

func (c *lineCheck) dollar() {
	rest := c.line[c.at:]
	switch {
	case c.quote == '\'':
	case strings.HasPrefix(rest, "$'"):
		c.nested = "$'...'"
	case c.quote == '"' && (strings.HasPrefix(rest, "$(") || strings.HasPrefix(rest, "${")):
		c.nested = rest[:2] + " inside double quotes"
	}
}

func (c *lineCheck) startsWord() bool {
	return c.at == 0 || strings.IndexByte(" \t;&|()", c.line[c.at-1]) >= 0
}

func (c *lineCheck) brace() error {
	rest := c.line[c.at:]
	if strings.HasPrefix(rest, "{{") {
		c.at += 2
		return nil
	}
	word, _, closed := strings.Cut(rest[1:], "}")
	text, known := placeholders[word]
	switch {
	case !closed || !known:
		return fmt.Errorf("the command has a brace that does not start {pid}, {process}, {package} or {user}: write " +
			"a literal brace as {{")
	case c.at > 0 && c.line[c.at-1] == '$':
		return fmt.Errorf("the command has ${%s}: write a shell variable as ${{%s}", word, word)
	case text && c.quote != 0:
		return fmt.Errorf("{%s} is inside %c: write it outside of quotes, because it is already quoted", word, c.quote)
	case text:
		c.texts++
	}
	c.at += len(word) + 2
	return nil
}
