package hostdevice

import (
	"bufio"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
)

// collection matches the line that a Java virtual machine logs for a full
// collection (-Xlog:gc).
var collection = regexp.MustCompile(`^GC\(\d+\) Pause Full \((.*)\) (\d+)M->(\d+)M\((\d+)M\) ([0-9.]+ms)$`)

// maxLine bounds the stored part of a line that a process prints, in bytes.
const maxLine = 4 << 10

// copyOutput copies the output of a process to its log file and logs its
// collections in the format of ART (runtime/gc/heap.cc, LogGC).
func (p *appProcess) copyOutput(r io.ReadCloser, to *os.File, d *Device) {
	defer close(p.outputEnded)
	defer to.Close()
	defer r.Close()
	in := bufio.NewReaderSize(r, maxLine)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			// Errors are ignored, because nothing depends on this copy.
			_, _ = to.Write(line)
			p.handleLine(string(line), d)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (p *appProcess) handleLine(line string, d *Device) {
	line = strings.TrimRight(line, "\r\n")
	m := collection.FindStringSubmatch(line)
	if m == nil {
		if !strings.HasPrefix(line, "GC(") {
			p.lastLine = line
		}
		return
	}
	before, used, total := mib(m[2]), mib(m[3]), mib(m[4])
	took, _ := time.ParseDuration(m[5])
	c := androidtext.Collection{
		Explicit: m[1] == "System.gc()" || m[1] == "Heap Dump Initiated GC", Freed: max(0, before-used),
		Used: used, Size: total, Paused: []time.Duration{took}, Took: took,
	}
	api := d.options.API
	d.log(p.pid, androidtext.CollectionPriority(api), d.tagOf(p), c.Text(api))
}

// mib parses a number of MiB and returns it in bytes.
func mib(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return n << 20
}

// lastOutput waits until the output of the process has ended and returns the
// last line.
func (p *appProcess) lastOutput() string {
	<-p.outputEnded
	return p.lastLine
}

// tagOf returns the tag of the runtime's log entries for a process.
func (d *Device) tagOf(p *appProcess) string {
	return androidtext.RuntimeTag(d.options.API, p.name, false)
}
