package hostdevice

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/hostdevice/meminfo"
)

// dumpsys queries a system service (frameworks/native cmds/dumpsys). The device
// provides the meminfo service and the exit records of the activity service.
// For any other service, it prints the error message of a phone without that
// service.
func (c *call) dumpsys() int {
	o, problem := androidtext.ParseDumpsys(c.device.options.API, c.args)
	switch {
	case problem != "":
		c.complain("%s", problem)
		return failed
	case o.Help:
		c.print("%s", androidtext.DumpsysHelp(c.device.options.API))
	case o.List || o.Service == "":
		c.print("%s", androidtext.DumpsysServices([]string{"activity", "meminfo"}))
	case o.Service == "meminfo":
		return c.meminfo(o.Args)
	case o.Service == "activity":
		c.args = o.Args
		return c.activity()
	default:
		// dumpsys exits with 0 even if the service does not exist.
		c.complain("%s", androidtext.NoService(o.Service))
	}
	return 0
}

// activity implements the activity manager's service
// (ActivityManagerService.doDump).
func (c *call) activity() int {
	verb, api := c.next(), c.device.options.API
	if verb == "exit-info" && api >= androidtext.ExitInfoSince {
		return c.exitInfo()
	}
	c.print("%s", androidtext.BadActivityCommand(api, verb))
	return 0
}

// meminfo prints the memory of the selected processes
// (ActivityManagerService.dumpApplicationMemoryUsage). The exit code is always
// 0.
func (c *call) meminfo(args []string) int {
	api := c.device.options.API
	o, problem := androidtext.ParseMeminfo(args)
	switch {
	case problem != "":
		c.print("%s", problem)
		return 0
	case o.Help:
		c.print("%s", androidtext.MeminfoHelp(api))
		return 0
	}
	up, err := c.device.clock.Now()
	if err != nil {
		c.complain("Error: %v\n", err)
		return 0
	}
	var blocks strings.Builder
	for _, p := range c.device.app.list() {
		if !p.selected(o.Process, o.Package) {
			continue
		}
		layout, err := meminfo.OfProcess(p.pid)
		if processGone(err) {
			continue
		}
		if err != nil {
			c.complain("Error: %v\n", err)
			return 0
		}
		blocks.WriteString(layout.Meminfo(api, p.pid, p.name, c.device.heapUsed(p)).Text(o))
	}
	if blocks.Len() == 0 {
		c.print("%s", androidtext.NoProcess(o.Process))
		return 0
	}
	c.print("%s%s", androidtext.MeminfoHead(api, up), blocks.String())
	return 0
}

func (p *appProcess) selected(target string, byPackage bool) bool {
	if byPackage {
		pkg, _, _ := strings.Cut(p.name, ":")
		return pkg == target
	}
	return target == "" || p.name == target || strconv.Itoa(p.pid) == target
}

// processGone reports whether an error means that the process ended while it
// was being read.
func processGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}
