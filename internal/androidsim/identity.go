package androidsim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// userName returns the name of a uid (bionic's getpwuid).
func userName(uid int) string {
	switch uid {
	case uidRoot:
		return "root"
	case uidSystem:
		return "system"
	case 1001:
		return "radio"
	case uidShell:
		return "shell"
	}
	app := uid % perUser
	switch {
	case app >= 99000:
		return fmt.Sprintf("u%d_i%d", uid/perUser, app-99000)
	case app >= 10000:
		return fmt.Sprintf("u%d_a%d", uid/perUser, app-10000)
	}
	return strconv.Itoa(uid)
}

func id(c *call) int {
	number, name := false, false
	_, ok := c.Getopt("ungGZ", func(o byte, _ string) {
		number, name = number || o == 'u' || o == 'g' || o == 'G', name || o == 'n'
	})
	user := userName(c.Cred.UID)
	switch {
	case !ok:
		return 1
	case name:
		c.Printf("%s\n", user)
	case number:
		c.Printf("%d\n", c.Cred.UID)
	case c.Cred.UID == uidShell:
		readproc := ",3009(readproc),3011(uhid)"
		if c.phone.opt.API < 24 {
			readproc = ""
		}
		c.Printf("uid=2000(shell) gid=2000(shell) "+
			"groups=2000(shell),1004(input),1007(log),1011(adb),1015(sdcard_rw),1028(sdcard_r),"+
			"3001(net_bt_admin),3002(net_bt),3003(inet),3006(net_bw_stats)%s context=u:r:shell:s0\n", readproc)
	case c.Cred.UID == uidRoot:
		c.Printf("uid=0(root) gid=0(root) " +
			"groups=0(root),1004(input),1007(log),1011(adb),1015(sdcard_rw),1028(sdcard_r),3009(readproc) " +
			"context=u:r:su:s0\n")
	default:
		c.Printf("uid=%d(%s) gid=%d(%s) groups=%d(%s),9997(everybody) context=u:r:runas_app:s0\n", c.Cred.UID, user,
			c.Cred.UID, user, c.Cred.UID, user)
	}
	return 0
}

type property struct{ name, value string }

// releases maps each API level to its Android version.
var releases = map[int]string{
	18: "4.3", 19: "4.4.4", 20: "4.4W", 21: "5.0", 22: "5.1", 23: "6.0.1", 24: "7.0", 25: "7.1.2", 26: "8.0.0",
	27: "8.1.0",
	28: "9", 29: "10", 30: "11", 31: "12", 32: "12", 33: "13", 34: "14", 35: "15", 36: "16",
}

func (p *Phone) properties() []property {
	o := p.opt
	debuggable := "1"
	if o.BuildType == "user" {
		debuggable = "0"
	}
	release := releases[o.API]
	keys := map[string]string{"user": "release-keys"}[o.BuildType]
	if keys == "" {
		keys = "dev-keys"
	}
	mb := func(n int) string { return strconv.Itoa(n) + "m" }
	out := []property{
		{"dalvik.vm.heapgrowthlimit", mb(o.HeapGrowthLimit)}, {"dalvik.vm.heapsize", mb(o.HeapSize)},
		{"dalvik.vm.heapstartsize", "8m"}, {"dalvik.vm.heapmaxfree", "8m"},
		{"leakgate.time_scale", strconv.FormatFloat(o.Scale, 'g', -1, 64)},
		{
			"ro.build.fingerprint",
			fmt.Sprintf("%s/androidsim/androidsim:%s/SIM.%d/1:%s/%s", strings.ToLower(o.Manufacturer), release, o.API,
				o.BuildType, keys),
		},
		{"ro.build.type", o.BuildType}, {"ro.build.version.release", release},
		{"ro.build.version.sdk", strconv.Itoa(o.API)}, {"ro.debuggable", debuggable},
		{"ro.product.brand", o.Manufacturer}, {"ro.product.cpu.abi", p.abi()}, {"ro.product.device", "androidsim"},
		{"ro.product.manufacturer", o.Manufacturer},
		{"ro.product.model", o.Model}, {"ro.product.name", "androidsim"}, {"ro.boot.serialno", o.Serial},
		{"ro.serialno", o.Serial},
	}
	if o.API >= 21 {
		out = append(out, p.abis()...)
	}
	if p.booted() {
		out = append(out, property{"sys.boot_completed", "1"})
	}
	slices.SortFunc(out, func(a, b property) int { return strings.Compare(a.name, b.name) })
	return out
}

// abis returns the lists of supported ABIs, one per word size since Android 5.
func (p *Phone) abis() []property {
	const old = "armeabi-v7a,armeabi"
	if p.opt.Bits32 {
		return []property{
			{"ro.product.cpu.abilist", old}, {"ro.product.cpu.abilist32", old}, {"ro.product.cpu.abilist64", ""},
			{"ro.zygote", "zygote32"},
		}
	}
	return []property{
		{"ro.product.cpu.abilist", abi64 + "," + old}, {"ro.product.cpu.abilist32", old},
		{"ro.product.cpu.abilist64", abi64}, {"ro.zygote", "zygote64_32"},
	}
}

func (p *Phone) heapLimit(v view) int {
	if v.app != nil && v.app.LargeHeap {
		return p.opt.HeapSize
	}
	return p.opt.HeapGrowthLimit
}

func (p *Phone) booted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock.up() >= p.completed
}

func getprop(c *call) int {
	all := c.phone.properties()
	if len(c.Args) < 2 {
		for _, kv := range all {
			c.Printf("[%s]: [%s]\n", kv.name, kv.value)
		}
		return 0
	}
	value := ""
	if len(c.Args) > 2 {
		value = c.Args[2]
	}
	for _, kv := range all {
		if kv.name == c.Args[1] {
			value = kv.value
		}
	}
	c.Printf("%s\n", value)
	return 0
}

// pidof implements the pidof command, which requires the full name of an app's
// process.
func pidof(c *call) int {
	single := false
	names, ok := c.Getopt("so:x", func(o byte, _ string) { single = single || o == 's' })
	if !ok {
		return 1
	}
	var pids []string
	for _, v := range c.phone.views() {
		if slices.Contains(names, v.name) && c.phone.sees(c.Cred, v) && !v.kernel {
			pids = append(pids, strconv.Itoa(v.pid))
		}
	}
	if len(pids) == 0 {
		return 1
	}
	// The latest pid comes first, because pidof reads /proc backwards.
	slices.Reverse(pids)
	if single {
		pids = pids[:1]
	}
	c.Printf("%s\n", strings.Join(pids, " "))
	return 0
}

type column struct {
	width int // negative: left-aligned
	value func(v view, m memory) string
}

var columns = map[string]column{
	"PID":   {5, func(v view, _ memory) string { return strconv.Itoa(v.pid) }},
	"PPID":  {5, func(v view, _ memory) string { return strconv.Itoa(v.ppid) }},
	"USER":  {-12, func(v view, _ memory) string { return userName(v.uid) }},
	"VSZ":   {10, func(v view, m memory) string { return strconv.FormatInt(v.virtual(m), 10) }},
	"RSS":   {6, func(v view, m memory) string { return strconv.FormatInt(m.mapped().rss(), 10) }},
	"S":     {1, func(view, memory) string { return "S" }},
	"NAME":  {-27, func(v view, _ memory) string { return psName(v) }},
	"WCHAN": {-12, func(view, memory) string { return "0" }},
	"ADDR":  {8, func(view, memory) string { return "0" }},
}

func psName(v view) string {
	if v.kernel {
		return "[" + v.name + "]"
	}
	return v.name
}

func ps(c *call) int {
	if c.phone.opt.API < 26 {
		return oldPS(c)
	}
	all := false
	var fields []string
	_, ok := c.Getopt("Ao:", func(o byte, v string) {
		if o == 'A' {
			all = true
		} else {
			fields = append(fields, strings.Split(v, ",")...)
		}
	})
	if !ok {
		return 1
	}
	if fields == nil {
		fields = []string{"USER", "PID", "PPID", "VSZ", "RSS", "WCHAN", "ADDR", "S", "NAME"}
	}
	row := func(cell func(name string, col column) string) {
		line := ""
		for _, name := range fields {
			line += fmt.Sprintf("%*s ", columns[name].width, cell(name, columns[name]))
		}
		c.Printf("%s\n", strings.TrimRight(line, " "))
	}
	for _, name := range fields {
		if columns[name].value == nil {
			return c.Failf("bad -o %s", name)
		}
	}
	row(func(name string, _ column) string { return name })
	for _, v := range c.phone.views() {
		if c.phone.sees(c.Cred, v) && (all || v.shell && v.uid == c.Cred.UID) {
			m := v.memory()
			row(func(_ string, col column) string { return col.value(v, m) })
		}
	}
	return 0
}

// oldPS implements toolbox's ps: it lists all processes, or those whose name
// begins with the argument or whose pid equals it.
func oldPS(c *call) int {
	filter := ""
	for _, a := range c.Args[1:] {
		if !strings.HasPrefix(a, "-") {
			filter = a
		}
	}
	c.Printf("USER      PID   PPID  VSIZE  RSS   WCHAN            PC  NAME\n")
	for _, v := range c.phone.views() {
		if filter != "" && strconv.Itoa(v.pid) != filter && !strings.HasPrefix(v.name, filter) ||
			!c.phone.sees(c.Cred, v) {
			continue
		}
		m := v.memory()
		name := v.name
		if v.pid == c.Leader.PID {
			name = "/system/bin/sh"
		}
		c.Printf("%-9s %-5d %-5d %-6d %-5d ffffffff b6f5e2c8 S %s\n", userName(v.uid), v.pid, v.ppid, v.virtual(m),
			m.mapped().rss(), name)
	}
	return 0
}

// runAs runs a command with the uid of a debuggable app (system/core
// run-as/run-as.cpp).
func runAs(c *call) int {
	if c.Cred.UID != uidShell && c.Cred.UID != uidRoot {
		return c.Failf("only 'shell' or 'root' users can run this program")
	}
	args := c.Args[1:]
	if len(args) == 0 {
		return c.Failf("usage: run-as <package-name> [--user <uid>] <command> [<args>]")
	}
	pkg, user := args[0], 0
	args = args[1:]
	if len(args) >= 2 && args[0] == "--user" {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return c.Failf("bad user id: %s", args[1])
		}
		user, args = n, args[2:]
	}
	app, ok := c.phone.app(pkg, user)
	switch {
	case !ok && c.phone.opt.API < 24:
		return c.Failf("Package '%s' is unknown", pkg)
	case !ok:
		return c.Failf("unknown package: %s", pkg)
	case !app.Debuggable && c.phone.opt.API < 24:
		return c.Failf("Package '%s' is not debuggable", pkg)
	case !app.Debuggable:
		return c.Failf("package not debuggable: %s", pkg)
	}
	if len(args) == 0 {
		args = []string{"sh"}
	}
	return c.Run(app.UID, appHome(app), args)
}

// app returns the app with the given package name, if it is installed.
func (p *Phone) app(pkg string, user int) (App, bool) {
	for _, a := range p.opt.Apps {
		if a.Package == pkg && a.User == user {
			return a, true
		}
	}
	return App{}, false
}

// su accepts the syntax of AOSP, `su 0 CMD ARG`, and that of the usual root
// tools, `su -c "CMD ARG"`.
func su(c *call) int {
	args, uid := c.Args[1:], uidRoot
	for len(args) > 0 && (args[0] == "-" || args[0] == "-l") {
		args = args[1:]
	}
	if len(args) > 0 && args[0] != "-c" {
		n, err := strconv.Atoi(args[0])
		switch {
		case err == nil && n >= 0:
			uid = n
		case args[0] == "shell":
			uid = uidShell
		case args[0] != "root":
			return c.Failf("invalid uid/gid '%s'", args[0])
		}
		args = args[1:]
	}
	if len(args) == 0 || args[0] == "-c" {
		args = append([]string{"sh"}, args...)
	}
	return c.Run(uid, "", args)
}
