package diagnose

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/capture/shell"
)

// judge returns nil if the output of a command is the artifact. If the command
// was killed or a read failed, the output may be truncated even though it can
// be parsed; the exit status reveals this.
func (w Method) judge(p capture.Process, text []byte, exit int, errs []byte) error {
	var err error
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		err = errors.New("it printed nothing")
	case w.about != nil:
		err = w.about(p, text)
	case w.Accept != nil:
		err = w.Accept(text)
	}
	if err == nil && exit > w.exits {
		err = errors.New(strings.TrimSuffix(fmt.Sprintf("exit status %d: %s", exit, shell.Clip(string(errs))),
			": "))
	}
	if err == nil {
		return nil
	}
	if said := deviceWords(errs); said != nil {
		return said
	}
	return err
}

// refuses reports whether the device's message is a permanent refusal and not a
// temporary failure.
func refuses(e dumpsys.DeviceError) bool {
	switch e.Kind {
	case dumpsys.Permission, dumpsys.NotDebuggable, dumpsys.UnknownPackage, dumpsys.RunAs, dumpsys.UnknownOption,
		dumpsys.NoCommand, dumpsys.NoFile, dumpsys.Unsupported, dumpsys.Usage:
		return true
	case dumpsys.NoService:
		// The services meminfo and activity exist whenever system_server runs,
		// so their absence is not permanent.
		return !strings.HasSuffix(e.Text, " meminfo") && !strings.HasSuffix(e.Text, " activity")
	}
	return false
}

// deviceWords returns the first error message from the device in the outputs as
// an error, or nil if there is none.
func deviceWords(texts ...[]byte) error {
	for _, text := range texts {
		e, ok := dumpsys.ClassifyError(text)
		switch {
		case ok && refuses(e):
			return notAllowed{e.Error()}
		case ok:
			return e
		}
	}
	return nil
}

// asRefusal returns notAllowed if a parser's error is a refusal by the device,
// and any other error unchanged.
func asRefusal(err error) error {
	var e dumpsys.DeviceError
	if errors.As(err, &e) && refuses(e) {
		return notAllowed{e.Error()}
	}
	return err
}

// unreadable returns the reason why an output cannot be parsed: the device's
// error message if the output contains one, otherwise err.
func unreadable(text []byte, err error) error {
	if said := deviceWords(text); said != nil {
		return said
	}
	return err
}

func wholeSmaps(text []byte) error {
	m, err := procfs.ParseSmaps(bytes.NewReader(text))
	switch {
	case err != nil:
		return unreadable(text, err)
	case m.Truncated:
		return errors.New("smaps is truncated")
	case !m.Pss.Known || !m.Mappings.Known:
		return errors.New("smaps lacks the Pss of some mappings")
	}
	return nil
}

func wholeShowmap(text []byte) error {
	m, err := procfs.ParseShowmap(text)
	switch {
	case err != nil:
		return unreadable(text, err)
	case m.Truncated || !m.Total.PSS.Known:
		return errors.New("showmap has no total")
	}
	return nil
}

// wholeMaps requires that each line begins with the addresses and permissions
// of a mapping (fs/proc/task_mmu.c, show_vma_header_prefix).
func wholeMaps(text []byte) error {
	lines := 0
	for line := range bytes.Lines(text) {
		var from, to uint64
		var rights string
		if _, err := fmt.Sscanf(shell.Clip(string(line)), "%x-%x %4s ", &from, &to, &rights); err != nil ||
			!bytes.HasSuffix(line, []byte("\n")) {
			return unreadable(text, fmt.Errorf("maps has an invalid line %q", shell.Clip(string(line))))
		}
		lines++
	}
	if lines == 0 {
		return errors.New("maps is empty")
	}
	return nil
}

func wholeStatus(p capture.Process, text []byte) error {
	s, err := procfs.ParseStatus(text)
	switch {
	case err != nil:
		return unreadable(text, err)
	case s.Truncated || !s.Threads.Known:
		return errors.New("status is truncated")
	case s.PID.N != int64(p.PID):
		return fmt.Errorf("status is that of pid %d", s.PID.N)
	}
	return nil
}

// wholeThreads requires the main thread, which lives as long as the process.
// Other threads may end while they are listed.
func wholeThreads(p capture.Process, text []byte) error {
	main := fmt.Sprintf("/proc/%d/task/%d/comm:", p.PID, p.PID)
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte(main)) {
			return nil
		}
	}
	return unreadable(text, errors.New("the main thread is not in the list"))
}

func wholeThreadIDs(p capture.Process, text []byte) error {
	for _, word := range bytes.Fields(text) {
		if string(word) == strconv.Itoa(p.PID) {
			return nil
		}
	}
	return unreadable(text, errors.New("the main thread is not in the list"))
}

func wholeMeminfo(p capture.Process, text []byte) error {
	info, err := dumpsys.ParseMeminfo(text)
	if err != nil {
		return asRefusal(err)
	}
	if info.Interrupted != nil {
		return asRefusal(*info.Interrupted)
	}
	for _, b := range info.Blocks {
		// The block of a native process does not contain a pid.
		if b.PID.Known && b.PID.N != int64(p.PID) {
			continue
		}
		if b.Truncated || !b.TotalPss.Known {
			return errors.New("meminfo is truncated")
		}
		return nil
	}
	return fmt.Errorf("meminfo has no block for pid %d", p.PID)
}

func wholeGfxinfo(p capture.Process, text []byte) error {
	info, err := dumpsys.ParseGfxinfo(text)
	switch {
	case err != nil:
		return asRefusal(err)
	case info.Interrupted != nil:
		return asRefusal(*info.Interrupted)
	case info.Truncated:
		return errors.New("gfxinfo is truncated")
	}
	for _, g := range info.Processes {
		if g.PID.N == int64(p.PID) {
			return nil
		}
	}
	return fmt.Errorf("gfxinfo has nothing about pid %d", p.PID)
}

func wholeGPU(text []byte) error {
	g, err := dumpsys.ParseGPU(text)
	switch {
	case err != nil:
		return asRefusal(err)
	case g.Truncated:
		return errors.New("gpu is truncated")
	}
	return nil
}

// wholeSurfaceFlinger also accepts output of SurfaceFlinger without the list of
// buffers: such output always lists the layers.
func wholeSurfaceFlinger(text []byte) error {
	s, err := dumpsys.ParseSurfaceFlinger(text)
	var e dumpsys.DeviceError
	switch {
	case errors.As(err, &e) && e.Kind == dumpsys.Format && bytes.Contains(text, []byte("SurfaceFlinger")):
		return nil
	case err != nil:
		return asRefusal(err)
	case s.Truncated:
		return errors.New("SurfaceFlinger is truncated")
	}
	return interruptedText(text)
}

// wholeLogcat requires the header of a buffer or a line with a timestamp: even
// an empty log contains the headers.
func wholeLogcat(text []byte) error {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("--------- beginning of")) || len(line) > 5 && line[2] == '-' &&
			line[5] == ' ' {
			return nil
		}
	}
	return unreadable(text, errors.New("logcat contains neither a buffer header nor a log line"))
}

// wholeExitInfo requires the title that precedes the records of exit-info
// (frameworks/base AppExitInfoTracker.dumpHistoryProcessExitInfo).
func wholeExitInfo(text []byte) error {
	if !bytes.Contains(text, []byte("PROCESS EXIT INFO")) {
		return unreadable(text, errors.New("the output is not exit info"))
	}
	return interruptedText(text)
}

// interruptedText returns an error if the output contains dumpsys's message
// that a service took too long and was stopped.
func interruptedText(text []byte) error {
	at := bytes.LastIndex(text, []byte("\n*** SERVICE '"))
	if at < 0 {
		return nil
	}
	return deviceWords(text[at:])
}
