package androidsim

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

// services are those of dumpsys -l that this phone has, with what dumps them.
var services = map[string]func(*dump, []string){
	"meminfo": dumpMeminfo, "gfxinfo": dumpGfxinfo, "gpu": dumpGPU, "SurfaceFlinger": dumpSurfaceFlinger,
	"activity": dumpActivity, "package": dumpPackage,
}

// service finds what dumps a service. That of the GPU came with Android 8.
func (p *Phone) service(name string) func(*dump, []string) {
	if name == "gpu" && p.opt.API < 26 {
		return nil
	}
	return services[name]
}

// dump is one run of dumpsys for one service.
type dump struct {
	*call
	service string
	// limit is the device time at which dumpsys gives up.
	limit   time.Duration
	expired bool
	// server is the pid of the system_server that answers, 0 for a service that
	// lives elsewhere; hangs says that nobody does.
	server int
	hangs  bool
}

// inSystem tells which services live in system_server.
func inSystem(service string) bool { return service != "gpu" && service != "SurfaceFlinger" }

func dumpsysTool(c *call) int {
	given := 10 * time.Second
	args := c.args[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch option := args[0]; {
		case option == "-l":
			c.listServices()
			return 0
		case option == "--help":
			c.printf("%s", dumpsysHelp)
			return 0
		case (option == "-t" || option == "-T" || option == "--skip" || option == "--priority") && len(args) > 1:
			n, err := strconv.Atoi(args[1])
			unit := time.Second
			if option == "-T" {
				unit = time.Millisecond
			}
			switch {
			case option == "--skip" || option == "--priority":
			case err != nil || n <= 0 || n > 1<<20:
				fmt.Fprintf(c.errs, "Error: invalid timeout: %s\n", args[1])
				return 255
			default:
				given = time.Duration(n) * unit
			}
			args = args[2:]
		default:
			fmt.Fprintf(c.errs, "%s", dumpsysHelp)
			return 255
		}
	}
	if len(args) == 0 {
		c.listServices()
		return 0
	}
	f := c.phone.service(args[0])
	if f == nil || inSystem(args[0]) && c.phone.server() == 0 {
		fmt.Fprintf(c.errs, "Can't find service: %s\n", args[0])
		return 0
	}
	return c.dump(args[0], given, func(d *dump) { f(d, args[1:]) })
}

// dump runs a service's dump, while the CPU time of system_server grows.
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
		c.printf("\n*** SERVICE '%s' DUMP TIMEOUT (%dms) EXPIRED ***\n\n", service, given.Milliseconds())
	}
	if c.ctx.Err() != nil {
		return statusOf(c.ctx)
	}
	return 0
}

// work takes the time of one answer; it is false if dumpsys gave up meanwhile.
// A process that is frozen never answers, nor does a system that is gone.
func (d *dump) work(frozen bool) bool {
	if d.hangs {
		<-d.ctx.Done()
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
	if clock.wait(d.ctx, took) != nil {
		d.expired = false
		return false
	}
	if d.server != 0 && p.server() != d.server {
		d.expired = false
		d.out.Flush()
		fmt.Fprintf(d.errs, "Error dumping service info status_t: DEAD_OBJECT %s\n", d.service)
		return false
	}
	return !d.expired
}

func (c *call) listServices() {
	c.printf("Currently running services:\n")
	for _, name := range []string{"SurfaceFlinger", "activity", "battery", "gfxinfo", "gpu", "meminfo", "package", "window"} {
		if name == "gpu" && c.phone.service(name) == nil {
			continue
		}
		c.printf("  %s\n", name)
	}
}

const dumpsysHelp = `usage: dumpsys
         To dump all services.
or:
       dumpsys [-t TIMEOUT] [--priority LEVEL] [--help | -l | --skip SERVICES | SERVICE [ARGS]]
         --help: shows this help
         -l: only list services, do not dump them
         -t TIMEOUT_SEC: TIMEOUT to use in seconds instead of default 10 seconds
         -T TIMEOUT_MS: TIMEOUT to use in milliseconds instead of default 10 seconds
         --proto: filter services that support dumping data in proto format. Dumps               will be in proto format.
         --priority LEVEL: filter services based on specified priority
               LEVEL must be one of CRITICAL | HIGH | NORMAL
         --skip SERVICES: dumps all services but SERVICES (comma-separated list)
         SERVICE [ARGS]: dumps only service SERVICE, optionally passing ARGS to it
`

const meminfoHelp = `meminfo dump options: [-a] [-d] [-s] [process]
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

// wanted are the processes that a name or pid means, none given all apps.
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
	var parts meminfoParts
	var asPackage bool
	name := ""
	for i, a := range args {
		switch a {
		case "-a":
			parts.full, parts.dalvik = true, true
		case "-d":
			parts.dalvik = true
		case "-s":
			parts.summaryOnly = true
		case "-S", "--oom", "-p":
		case "--local":
			parts.local = true
		case "--package":
			asPackage = true
		case "-h":
			d.printf("%s", meminfoHelp)
			return
		default:
			if strings.HasPrefix(a, "-") {
				d.printf("Unknown argument: %s; use -h for help\n", a)
				return
			}
			name = a
		}
		if name != "" {
			// What follows the process may still be --local and the like.
			for _, rest := range args[i+1:] {
				parts.local = parts.local || rest == "--local"
			}
			break
		}
	}
	if name == "" {
		d.meminfoOfAll()
		return
	}
	d.meminfoOf(name, asPackage, parts)
}

func (d *dump) meminfoOf(name string, asPackage bool, parts meminfoParts) {
	found := d.phone.wanted(name, asPackage)
	if len(found) == 0 {
		d.printf("No process found for: %s\n", name)
		return
	}
	api := d.phone.opt.API
	var blocks strings.Builder
	for _, v := range found {
		if !d.work(v.frozen && !parts.local) {
			return
		}
		// The numbers are those of the end of the wait, if the process lived so long.
		if v, ok := d.phone.find(v.pid); ok {
			m := v.memory()
			blocks.WriteString(meminfoLayout(api, m).block(v, m, parts))
		}
	}
	if blocks.Len() == 0 {
		d.printf("No process found for: %s\n", name)
		return
	}
	d.printf("%s%s", meminfoHead(api, d.phone.Uptime()), blocks.String())
}

// meminfoOfAll is the overview of the whole phone.
func (d *dump) meminfoOfAll() {
	if !d.work(false) {
		return
	}
	type line struct {
		view
		kb int64
	}
	var all []line
	var total int64
	for _, v := range d.phone.views() {
		if v.kernel || v.shell {
			continue
		}
		kb := v.memory().sum().pss()
		total += kb
		all = append(all, line{v, kb})
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].kb > all[j].kb })
	d.printf("%s\nTotal PSS by process:\n", meminfoHead(d.phone.opt.API, d.phone.Uptime()))
	for _, l := range all {
		d.printf("%11s: %s (pid %d)\n", thousands(l.kb), l.name, l.pid)
	}
	const ram = 7680 << 10
	d.printf("\nTotal RAM: %s (status normal)\n Free RAM: %s\n Used RAM: %s\n", thousands(ram), thousands(max(ram-total, 0)), thousands(total))
}

// thousands prints kB as 123,456K.
func thousands(kb int64) string {
	text := strconv.FormatInt(kb, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text + "K"
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
		d.printf("No process found for: %s\n", name)
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
	d.printf("%s%s", gfxinfoHead(d.phone.Uptime()), b.String())
}

func dumpGPU(d *dump, args []string) {
	if !d.work(false) {
		return
	}
	only := len(args) > 0 && args[0] == "--gpumem"
	d.printf("%s", gpuText(d.phone.views(), d.phone.opt.API, only, !d.phone.opt.NoGPUMemory))
}

func dumpSurfaceFlinger(d *dump, _ []string) {
	if d.work(false) {
		d.printf("%s", surfaceFlingerText(d.phone.views(), d.phone.opt.API))
	}
}
