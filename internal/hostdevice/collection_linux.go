package hostdevice

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// collection is how a Java virtual machine logs a full one (-Xlog:gc).
var collection = regexp.MustCompile(`^GC\(\d+\) Pause Full \((.*)\) (\d+)M->(\d+)M\((\d+)M\) ([0-9.]+ms)$`)

// maxWords bounds what is kept of what a process says before it ends, in bytes.
const maxWords = 4 << 10

// listen copies what a process prints to its log file, and puts its collections into
// the system's log as ART words them (runtime/gc/heap.cc, LogGC).
func (p *appProcess) listen(r io.ReadCloser, to *os.File, d *Device) {
	defer close(p.silent)
	defer to.Close()
	defer r.Close()
	in := bufio.NewReaderSize(r, maxWords)
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 {
			// Nobody waits for this copy, and the log is worth no failure.
			_, _ = to.Write(line)
			p.heard(string(line), d)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

func (p *appProcess) heard(line string, d *Device) {
	line = strings.TrimRight(line, "\r\n")
	m := collection.FindStringSubmatch(line)
	if m == nil {
		if !strings.HasPrefix(line, "GC(") {
			p.words = line
		}
		return
	}
	before, used, total := mib(m[2]), mib(m[3]), mib(m[4])
	kind := "Background concurrent copying"
	if m[1] == "System.gc()" || m[1] == "Heap Dump Initiated GC" {
		kind = "Explicit concurrent copying"
	}
	d.log(p.pid, 'I', tagOf(p.name), fmt.Sprintf("%s GC freed %dMB AllocSpace bytes, 0(0B) LOS objects, %d%% free, %dMB/%dMB, paused %s total %[6]s",
		kind, max(0, before-used), 100*(total-used)/max(1, total), used, total, m[5]))
}

func mib(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// lastWords is what the process said last, once it has ended.
func (p *appProcess) lastWords() string {
	<-p.silent
	return p.words
}

// tagOf is the name that the system knows a process by: the end of its own.
func tagOf(name string) string { return name[max(0, len(name)-15):] }
