package androidsim

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/ksh"
)

// services maps each service that this phone can dump to its function.
var services = map[string]func(*dump, []string){
	"meminfo": dumpMeminfo, "gfxinfo": dumpGfxinfo, "gpu": dumpGPU, "SurfaceFlinger": dumpSurfaceFlinger,
	"activity": dumpActivity, "package": dumpPackage,
}

// service returns the function that dumps a service. The GPU service has
// existed since Android 8.
func (p *Phone) service(name string) func(*dump, []string) {
	if name == "gpu" && p.opt.API < 26 {
		return nil
	}
	return services[name]
}

type dump struct {
	*call
	service string
	// limit is the timeout in device time.
	limit   time.Duration
	expired bool
	// server is the pid of the system_server that responds, or 0 for a service
	// outside it; hangs means that the service never responds.
	server int
	hangs  bool
}

func inSystem(service string) bool { return service != "gpu" && service != "SurfaceFlinger" }

func dumpsysTool(c *call) int {
	o, problem := androidtext.ParseDumpsys(c.phone.opt.API, c.Args[1:])
	switch {
	case problem != "":
		fmt.Fprint(c.Errs, problem)
		return 255
	case o.Help:
		c.Printf("%s", androidtext.DumpsysHelp(c.phone.opt.API))
		return 0
	case o.List || o.Service == "":
		c.Printf("%s", androidtext.DumpsysServices(c.phone.serviceNames()))
		return 0
	}
	f := c.phone.service(o.Service)
	if f == nil || inSystem(o.Service) && c.phone.server() == 0 {
		fmt.Fprint(c.Errs, androidtext.NoService(o.Service))
		return 0
	}
	return c.dump(o.Service, o.Timeout, func(d *dump) { f(d, o.Args) })
}

// dump runs f, which dumps a service, and counts the time as CPU time of
// system_server.
func (c *call) dump(service string, given time.Duration, f func(*dump)) int {
	p := c.phone
	p.mu.Lock()
	up := p.clock.up()
	id := p.busy.begin(up)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.busy.end(id, p.clock.up())
	}()
	d := &dump{call: c, service: service, limit: up + given}
	if inSystem(service) {
		d.server = p.server()
	}
	for _, f := range p.faults() {
		d.hangs = d.hangs || f.hangs
	}
	f(d)
	if d.expired {
		c.Printf("%s", androidtext.DumpTimeout(service, given))
	}
	if c.Ctx.Err() != nil {
		return ksh.Status(c.Ctx)
	}
	return 0
}

// work waits for the time that the response takes and reports whether that was
// within the timeout. A frozen process never responds, and neither does a
// system_server that has died.
func (d *dump) work(frozen bool) bool {
	if d.hangs {
		<-d.Ctx.Done()
		return false
	}
	p := d.phone
	p.mu.Lock()
	took, clock := p.dumpTime, p.clock
	p.mu.Unlock()
	for _, f := range p.faults() {
		took = max(took, f.dumpsys)
	}
	left := d.limit - clock.up()
	if frozen || took > left {
		took, d.expired = left, true
	}
	if clock.wait(d.Ctx, took) != nil {
		d.expired = false
		return false
	}
	if d.server != 0 && p.server() != d.server {
		d.expired = false
		d.Out.Flush()
		fmt.Fprintf(d.Errs, "Error dumping service info status_t: DEAD_OBJECT %s\n", d.service)
		return false
	}
	return !d.expired
}

func (p *Phone) serviceNames() []string {
	names := []string{"SurfaceFlinger", "activity", "battery", "gfxinfo", "gpu", "meminfo", "package", "window"}
	return slices.DeleteFunc(names, func(name string) bool { return name == "gpu" && p.service(name) == nil })
}

// wanted returns the processes that a name or pid selects, or those of all apps
// if name is empty.
func (p *Phone) wanted(name string, asPackage bool) []view {
	pid, err := strconv.Atoi(name)
	var out []view
	for _, v := range p.views() {
		switch {
		case v.kernel || v.shell:
		case name == "":
			if v.app != nil {
				out = append(out, v)
			}
		case err == nil && v.pid == pid, v.name == name && !v.native, asPackage && v.belongs(name):
			out = append(out, v)
		}
	}
	return out
}

func dumpMeminfo(d *dump, args []string) {
	o, problem := androidtext.ParseMeminfo(args)
	switch {
	case problem != "":
		d.Printf("%s", problem)
	case o.Help:
		d.Printf("%s", androidtext.MeminfoHelp(d.phone.opt.API))
	case o.Process == "":
		d.meminfoOfAll()
	default:
		d.meminfoOf(o)
	}
}

func (d *dump) meminfoOf(o androidtext.MeminfoOptions) {
	var blocks strings.Builder
	for _, v := range d.phone.wanted(o.Process, o.Package) {
		if !d.work(v.frozen && !o.Local) {
			return
		}
		// The values are read at the end of the wait, if the process is still
		// running.
		if v, ok := d.phone.find(v.pid); ok {
			blocks.WriteString(v.meminfo(v.memory()).Text(o))
		}
	}
	if blocks.Len() == 0 {
		d.Printf("%s", androidtext.NoProcess(o.Process))
		return
	}
	d.Printf("%s%s", androidtext.MeminfoHead(d.phone.opt.API, d.phone.Uptime()), blocks.String())
}

// meminfoOfAll prints the overview of the entire phone.
func (d *dump) meminfoOfAll() {
	if !d.work(false) {
		return
	}
	var all []androidtext.ProcessPss
	for _, v := range d.phone.views() {
		if !v.kernel && !v.shell {
			all = append(all, androidtext.ProcessPss{Name: v.name, PID: v.pid, KB: v.memory().sum().pss()})
		}
	}
	slices.SortStableFunc(all, func(a, b androidtext.ProcessPss) int { return cmp.Compare(b.KB, a.KB) })
	const ramKB = 7680 << 10
	d.Printf("%s", androidtext.MeminfoOverview(d.phone.opt.API, d.phone.Uptime(), all, ramKB))
}

func dumpGfxinfo(d *dump, args []string) {
	name := ""
	for _, a := range args {
		if !strings.HasPrefix(a, "-") && a != "framestats" && a != "reset" {
			name = a
			break
		}
	}
	found := d.phone.wanted(name, false)
	if len(found) == 0 {
		d.Printf("%s", androidtext.NoProcess(name))
		return
	}
	var b strings.Builder
	for _, v := range found {
		if v.native {
			continue
		}
		if !d.work(v.frozen) {
			return
		}
		if v, ok := d.phone.find(v.pid); ok {
			b.WriteString(gfxinfoBlock(v, v.memory(), d.phone.opt.API))
		}
	}
	d.Printf("%s%s", gfxinfoHead(d.phone.Uptime()), b.String())
}

func dumpGPU(d *dump, args []string) {
	if !d.work(false) {
		return
	}
	only := len(args) > 0 && args[0] == "--gpumem"
	d.Printf("%s", gpuText(d.phone.views(), d.phone.opt.API, only, !d.phone.opt.NoGPUMemory))
}

func dumpSurfaceFlinger(d *dump, _ []string) {
	if d.work(false) {
		d.Printf("%s", surfaceFlingerText(d.phone.views(), d.phone.opt.API))
	}
}
