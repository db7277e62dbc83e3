package replay

import (
	"bytes"
	"encoding/json"

	"github.com/leakgate/leakgate/reporters/record"
)

// decoder reads lines of samples.ndjson. A sample in the form in which a run writes
// it, which nearly all lines are, is read here without a byte of garbage; whatever
// looks different is for encoding/json, and both say the same (FuzzDecode).
type decoder struct {
	words map[string]string
}

// maxWords bounds the names that a decoder keeps.
const maxWords = 1 << 14

// flat is a sample with room for its numbers.
type flat struct {
	record.Sample
	numbers [5]int64
}

// sample reads a line into s, and tells whether it could.
func (d *decoder) sample(text []byte, s *flat) bool {
	*s = flat{}
	c := cursor{text: text}
	if !c.take('{') {
		return false
	}
	for {
		name, ok := c.word()
		if !ok || !c.take(':') || !d.field(&c, name, s) {
			return false
		}
		switch {
		case c.take(','):
		case c.take('}'):
			return len(bytes.Trim(c.text[c.at:], " \t\r\n")) == 0
		default:
			return false
		}
	}
}

func (d *decoder) field(c *cursor, name []byte, s *flat) bool {
	switch string(name) {
	case "t_s":
		return c.float(&s.T)
	case "up_s":
		return c.float(&s.Up)
	case "device":
		return d.text(c, &s.Device)
	case "user":
		return whole(c, &s.User)
	case "process":
		return d.text(c, &s.Process)
	case "pid":
		return whole(c, &s.PID)
	case "start":
		return whole(c, &s.Start)
	case "source":
		return d.text(c, &s.Source)
	case "pss_kb":
		return c.number(&s.PSS, &s.numbers[0])
	case "swap_pss_kb":
		return c.number(&s.SwapPSS, &s.numbers[1])
	case "rss_anon_kb":
		return c.number(&s.RSSAnon, &s.numbers[2])
	case "swap_kb":
		return c.number(&s.Swap, &s.numbers[3])
	case "threads":
		return c.number(&s.Threads, &s.numbers[4])
	case "cost_ms":
		return c.float(&s.CostMS)
	}
	return false
}

// text reads a string; the same one is kept once.
func (d *decoder) text(c *cursor, to *string) bool {
	word, ok := c.word()
	if !ok {
		return false
	}
	kept, ok := d.words[string(word)]
	if !ok {
		if d.words == nil || len(d.words) >= maxWords {
			d.words = map[string]string{}
		}
		kept = string(word)
		d.words[kept] = kept
	}
	*to = kept
	return true
}

// cursor is a place in a line of JSON without blanks. Every method says false for
// what it does not know, which may well be right.
type cursor struct {
	text []byte
	at   int
}

func (c *cursor) take(b byte) bool {
	if c.at < len(c.text) && c.text[c.at] == b {
		c.at++
		return true
	}
	return false
}

// word is a string of plain characters.
func (c *cursor) word() ([]byte, bool) {
	if !c.take('"') {
		return nil, false
	}
	for i := c.at; i < len(c.text); i++ {
		switch b := c.text[i]; {
		case b == '"':
			word := c.text[c.at:i]
			c.at = i + 1
			return word, true
		case b < ' ', b == '\\', b >= 0x7f:
			return nil, false
		}
	}
	return nil, false
}

// digits is a number without sign, as JSON writes it; at most 15 digits, which a
// float64 holds exactly.
func (c *cursor) digits() (n int64, count int) {
	for c.at < len(c.text) && c.text[c.at]-'0' <= 9 && count < 16 {
		n = n*10 + int64(c.text[c.at]-'0')
		c.at++
		count++
	}
	return n, count
}

// natural is a whole number that is not below 0.
func (c *cursor) natural() (int64, bool) {
	begin := c.at
	n, count := c.digits()
	plain := count == 1 || count > 1 && count < 16 && c.text[begin] != '0'
	return n, plain && !c.more()
}

// more tells whether the number goes on.
func (c *cursor) more() bool {
	if c.at == len(c.text) {
		return false
	}
	switch b := c.text[c.at]; b {
	case '.', 'e', 'E', '+', '-':
		return true
	default:
		return b-'0' <= 9
	}
}

var tenth = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6}

// float reads a number with up to six decimals. Both parts of the quotient are exact,
// so that it is rounded once, as strconv does.
func (c *cursor) float(to *float64) bool {
	begin := c.at
	n, count := c.digits()
	if count == 0 || count > 15 || count > 1 && c.text[begin] == '0' {
		return false
	}
	decimals := 0
	if c.take('.') {
		var part int64
		part, decimals = c.digits()
		if decimals == 0 || decimals >= len(tenth) || count+decimals > 15 {
			return false
		}
		n = n*int64(tenth[decimals]) + part
	}
	*to = float64(n) / tenth[decimals]
	return !c.more()
}

// number reads a number or null.
func (c *cursor) number(to **int64, room *int64) bool {
	if bytes.HasPrefix(c.text[c.at:], []byte("null")) {
		c.at += len("null")
		*to = nil
		return true
	}
	n, ok := c.natural()
	*room, *to = n, room
	return ok
}

func whole[T int | uint64](c *cursor, to *T) bool {
	n, ok := c.natural()
	if int64(T(n)) != n {
		return false
	}
	*to = T(n)
	return ok
}

// line reads a line as a sample, and once more where it is an event.
func (d *decoder) line(text []byte, c *chunk) line {
	c.samples = append(c.samples, flat{})
	if s := &c.samples[len(c.samples)-1]; d.sample(text, s) {
		return line{sample: &s.Sample}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return line{share: nobody}
	}
	var s struct {
		Event *string `json:"event"`
		record.Sample
	}
	err := json.Unmarshal(text, &s)
	if s.Event == nil {
		return line{sample: &s.Sample, err: err}
	}
	e := new(record.Event)
	return line{event: e, err: json.Unmarshal(text, e)}
}
