package androidsim

import (
	"fmt"
	"strings"
)

// dumpPackage implements dumpsys package PACKAGE without the resolver tables
// (com.android.server.pm.Settings, dumpPackageLPr).
func dumpPackage(d *dump, args []string) {
	if !d.work(false) {
		return
	}
	name := operand(args, "-f", "--checkin")
	var b strings.Builder
	for i, a := range d.phone.opt.Apps {
		if name == "" || a.Package == name {
			d.phone.packageText(&b, a, i)
		}
	}
	if b.Len() > 0 {
		d.Printf("Packages:\n%s", b.String())
		return
	}
	if d.phone.opt.API >= 24 {
		d.Printf("Unable to find package: %s\n", name)
	}
}

func (p *Phone) packageText(b *strings.Builder, a App, i int) {
	line := func(format string, args ...any) { fmt.Fprintf(b, "    "+format+"\n", args...) }
	at, primary, secondary := appCode(a.Package, p.opt.API), p.abi(), "null"
	for _, spec := range a.Processes {
		if spec.Bits32 {
			primary = abi32
		}
	}
	flags := []string{"HAS_CODE", "ALLOW_CLEAR_USER_DATA", "ALLOW_BACKUP"}
	if a.Debuggable {
		flags = append([]string{"DEBUGGABLE"}, flags...)
	}
	if a.LargeHeap {
		flags = append(flags, "LARGE_HEAP")
	}
	fmt.Fprintf(b, "  Package [%s] (%x):\n", a.Package, hashText(a.Package)&0xfffffff)
	if p.opt.API >= 33 {
		line("appId=%d", a.UID%perUser)
	} else {
		line("userId=%d", a.UID%perUser)
	}
	line("pkg=Package{%x %s}", hashText(a.Package, "pkg")&0xfffffff, a.Package)
	line("codePath=%s", at)
	line("resourcePath=%s", at)
	line("legacyNativeLibraryDir=%s/lib", at)
	line("primaryCpuAbi=%s", primary)
	line("secondaryCpuAbi=%s", secondary)
	line("versionCode=%d targetSdk=%d", i+1, p.opt.API)
	line("versionName=1.%d", i)
	line("flags=[ %s ]", strings.Join(flags, " "))
	line("dataDir=%s", appHome(a))
	line("timeStamp=%s", p.born.UTC().Format("2006-01-02 15:04:05"))
	line("pkgFlags=[ %s ]", strings.Join(flags, " "))
	line("User %d: installed=true hidden=false stopped=false notLaunched=false enabled=0", a.User)
}

func appCode(pkg string, api int) string {
	if api >= 30 {
		return "/data/app/~~c2ltdWxhdGVk==/" + pkg + "-cGhvbmU=="
	}
	return "/data/app/" + pkg + "-1"
}

const (
	abi32 = "armeabi-v7a"
	abi64 = "arm64-v8a"
)

func (p *Phone) abi() string {
	if p.opt.Bits32 {
		return abi32
	}
	return abi64
}
