package hostdevice

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"github.com/leakgate/leakgate/internal/hostdevice/meminfo"
)

// dumpsys asks a system service (frameworks/native cmds/dumpsys). Here there are
// meminfo and what activity knows of processes that have ended; for any other the
// answer is that of a phone without it.
func (c *call) dumpsys() int {
	for len(c.args) > 0 && strings.HasPrefix(c.args[0], "-") {
		switch word := c.next(); word {
		case "-t", "-T", "--priority", "--skip":
			c.next()
		case "-l":
			c.print("Currently running services:\n  activity\n  meminfo\n")
			return 0
		case "--help":
			c.print("%s", dumpsysHelp)
			return 0
		default:
			c.complain("Invalid option: %s\n", word)
			return failed
		}
	}
	switch service := c.next(); service {
	case "meminfo":
		return c.meminfo()
	case "activity":
		return c.activity()
	case "":
		c.complain("%s", dumpsysHelp)
		return failed
	default:
		// The exit code stays 0.
		c.complain("Can't find service: %s\n", service)
		return 0
	}
}

// activity is the activity manager's (ActivityManagerService.doDump).
func (c *call) activity() int {
	verb := c.next()
	if verb == "exit-info" && c.device.options.API >= 30 {
		return c.exitInfo()
	}
	c.print("Bad activity command, or no activities match: %s\nUse -h for help.\n", verb)
	return 0
}

const dumpsysHelp = `usage: dumpsys
         To dump all services.
or:
       dumpsys [-t TIMEOUT] [--priority LEVEL] [--help | -l | --skip SERVICES | SERVICE [ARGS]]
         --help: shows this help
         -l: only list services, do not dump them
         -t TIMEOUT_SEC: TIMEOUT to use in seconds instead of default 10 seconds
         -T TIMEOUT_MS: TIMEOUT to use in milliseconds instead of default 10 seconds
         SERVICE [ARGS]: dumps only service SERVICE, optionally passing ARGS to it
`

const meminfoHelp = `meminfo dump options: [-a] [-d] [-s] [--local] [--package] [process]
  -a: include all available information for each process.
  -d: include dalvik details.
  -s: dump only summary of application memory usage.
  -S: dump also SwapPss.
  --local: only collect details locally, don't call process.
  --package: interpret process arg as package, dumping all
             processes that have loaded that package.
If [process] is specified it can be the name or
pid of a specific process to dump.
`

// meminfo prints the memory of the processes that are asked for
// (ActivityManagerService.dumpApplicationMemoryUsage). The exit code is 0 in any case.
func (c *call) meminfo() int {
	report := meminfo.Report{Header: true}
	byPackage := false
	for len(c.args) > 0 && strings.HasPrefix(c.args[0], "-") {
		switch word := c.next(); word {
		case "-a":
			report.Full = true
		case "-d":
			report.Details = true
		case "-s":
			report.Summary = true
		case "--local":
			report.Header = false
		case "-S":
		case "--package":
			byPackage = true
		case "-h":
			c.print("%s", meminfoHelp)
			return 0
		default:
			c.print("Unknown argument: %s; use -h for help\n", word)
			return 0
		}
	}
	target := c.next()
	found := false
	for _, p := range c.device.app.list() {
		if !p.asked(target, byPackage) {
			continue
		}
		err := c.report(report, p)
		if gone(err) {
			continue
		}
		if err != nil {
			c.complain("Error: %v\n", err)
			return 0
		}
		found, report.Header = true, false
	}
	if !found {
		c.print("No process found for: %s\n", target)
	}
	return 0
}

func (p *appProcess) asked(target string, byPackage bool) bool {
	if byPackage {
		pkg, _, _ := strings.Cut(p.name, ":")
		return pkg == target
	}
	return target == "" || p.name == target || strconv.Itoa(p.pid) == target
}

func (c *call) report(r meminfo.Report, p *appProcess) error {
	layout, err := meminfo.OfProcess(p.pid)
	if err != nil {
		return err
	}
	up, err := c.device.clock.Now()
	if err != nil {
		return err
	}
	r.PID, r.Name, r.Up, r.Layout, r.JavaUsed = p.pid, p.name, up, layout, c.device.heapUsed(p)
	if _, err := r.WriteTo(c.Stdout); err != nil {
		return fmt.Errorf("print meminfo: %w", err)
	}
	return nil
}

// gone tells the errors of a process that ended while it was being read.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}
