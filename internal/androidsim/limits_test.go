package androidsim

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/capture/procfs"
)

// apis lists the API levels of Android 5, 5.1, 7, 9, 10, 12, 14 and 16.
var apis = []int{21, 22, 24, 28, 29, 31, 34, 36}

// asked returns a phone with one app that has one process; the phone runs a
// user build by default.
func asked(o Options, spec ProcessSpec) *Phone {
	spec.Name = "com.shop"
	spec.RestartAfter = 10 * time.Second
	spec.Models = append([]Model{Typical()}, spec.Models...)
	o.Apps = []App{{Package: "com.shop", Debuggable: true, Processes: []ProcessSpec{spec}}}
	return New(o)
}

// number returns the only number that a command prints.
func number(t testing.TB, p *Phone, command string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSpace(ask(t, p, command)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Every UID may read the limits, in every build.
func TestLimits(t *testing.T) {
	for _, api := range apis {
		p := asked(Options{API: api}, ProcessSpec{})
		text := ask(t, p, fmt.Sprintf("cat /proc/%d/limits", p.PID("com.shop")))
		found := regexp.MustCompile(`(?m)^Max open files +(\d+) +(\d+) +files +$`).FindStringSubmatch(text)
		want := []string{"1024", "4096"}
		if api >= 28 {
			want = []string{"32768", "32768"}
		}
		if found == nil || !slices.Equal(found[1:], want) {
			t.Errorf("API %d: open files %v", api, found)
		}
		if !regexp.MustCompile(`(?m)^Max processes +21550 +21550 +processes +$`).MatchString(text) {
			t.Errorf("API %d: %s", api, text)
		}
	}
}

// Since Android 9 SELinux denies the shell access to threads-max.
func TestTaskLimits(t *testing.T) {
	for _, api := range apis {
		for _, root := range []bool{false, true} {
			p := asked(Options{API: api, Root: root, BuildType: "userdebug"}, ProcessSpec{})
			if n := number(t, p, "cat /proc/sys/kernel/pid_max"); n != 32768 {
				t.Errorf("API %d: pid_max %d", api, n)
			}
			a := sh1(t, p, "cat /proc/sys/kernel/threads-max")
			if allowed := root || api < 28; allowed != (a.out == "43100\n") || allowed != (a.exit == 0) || !allowed &&
				!strings.Contains(a.err, "Permission denied") {
				t.Errorf("API %d, root %v: %+v", api, root, a)
			}
		}
	}
}

// Leaked files are visible to the UIDs that may list them. On phones where the
// size of the directory is the number of open files, every UID can read that
// number.
func TestLeakFiles(t *testing.T) {
	for _, api := range apis {
		synctest.Test(t, func(t *testing.T) {
			p := asked(Options{API: api, SU: true}, ProcessSpec{Models: []Model{LeakFiles(3600, time.Minute)}})
			time.Sleep(6 * time.Minute)
			pid := p.PID("com.shop")
			dir := fmt.Sprintf("/proc/%d/fd", pid)
			for _, who := range []string{"su 0 ", "run-as com.shop "} {
				listed := strings.Fields(ask(t, p, who+"ls "+dir))
				if len(listed) != defaultFiles+300 {
					t.Errorf("API %d: %s lists %d", api, who, len(listed))
				}
				if to := ask(t, p, who+"ls -l "+dir+"/395"); !strings.HasSuffix(to,
					"/395 -> /data/data/com.shop/cache/page-299.tmp\n") {
					t.Errorf("API %d: the last file is a link to %q", api, to)
				}
				if a := sh1(t, p, who+"ls -l "+dir+"/396"); a.exit != 1 || a.out != "" {
					t.Errorf("API %d: more files than the limit: %+v", api, a)
				}
			}
			if a := sh1(t, p, "ls "+dir); a.exit == 0 || !strings.Contains(a.err, "Permission denied") || a.out != "" {
				t.Errorf("API %d: the shell can list the files: %+v", api, a)
			}
			if api >= 23 {
				want := map[bool]int64{true: defaultFiles + 300}[api >= 36]
				if n := number(t, p, "stat -c %s "+dir); n != want {
					t.Errorf("API %d: size %d", api, n)
				}
			}
			if n := number(t, p, fmt.Sprintf("grep FDSize: /proc/%d/status | grep -o '[0-9]*$'", pid)); n != 512 {
				t.Errorf("API %d: FDSize %d", api, n)
			}
			time.Sleep(20 * time.Hour)
			soft, _ := fileLimit(api)
			if n := len(strings.Fields(ask(t, p, "su 0 ls "+dir))); n != soft {
				t.Errorf("API %d: %d files, the limit is %d", api, n, soft)
			}
		})
	}
}

func TestFDSize(t *testing.T) {
	for files, want := range map[int]int{
		1: 64, 64: 64, 65: 128, 127: 128, 128: 256, 300: 512, 1023: 1024, 32768: 65536,
	} {
		if got := fdSize(files); got != want {
			t.Errorf("%d files: %d, want %d", files, got, want)
		}
	}
}

// The address space is the sum of its areas; in 32-bit processes it is limited.
func TestAddressSpace(t *testing.T) {
	for _, api := range apis {
		for _, bits32 := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p := asked(Options{API: api, Root: true},
					ProcessSpec{Bits32: bits32, Models: []Model{LeakAddresses(600, 0), Leak(Thread, 10, 0)}})
				var last int64
				for _, wait := range []time.Duration{time.Minute, time.Hour, 8 * time.Hour} {
					time.Sleep(wait)
					pid := p.PID("com.shop")
					truth, _ := p.Memory("com.shop")
					status, err := procfs.ParseStatus([]byte(ask(t, p, fmt.Sprintf("cat /proc/%d/status", pid))))
					if err != nil || len(status.Warnings) > 0 {
						t.Fatal(err, status)
					}
					all, err := procfs.ParseShowmap([]byte(ask(t, p, fmt.Sprintf("showmap %d", pid))))
					if err != nil || all.Total.Size != status.VmSize || all.Total.PSS.N != truth.PSS {
						t.Errorf("API %d, 32 bits %v: areas of %d kB, but VmSize %d: %v", api, bits32, all.Total.Size.N,
							status.VmSize.N, err)
					}
					if statm := strings.Fields(
						ask(t, p, fmt.Sprintf("cat /proc/%d/statm", pid))); statm[0] != fmt.Sprint(status.VmSize.N/4) {
						t.Errorf("API %d: statm %v, VmSize %d", api, statm, status.VmSize.N)
					}
					if bits32 && status.VmSize.N > 4<<20 || !bits32 && status.VmSize.N <= 1<<20 {
						t.Errorf("API %d, 32 bits %v: VmSize %d", api, bits32, status.VmSize.N)
					}
					if full := status.VmSize.N == maxAddresses32; !full && status.VmSize.N-last < 8<<10 {
						t.Errorf("API %d: VmSize grew from %d to %d", api, last, status.VmSize.N)
					}
					last = status.VmSize.N
					checkAreas(t, p, pid, bits32)
				}
				if bits32 != (last == maxAddresses32) {
					t.Errorf("API %d, 32 bits %v: the last VmSize is %d", api, bits32, last)
				}
			})
		}
	}
}

// checkAreas checks that areas are sorted, disjoint and within the address
// space.
func checkAreas(t *testing.T, p *Phone, pid int, bits32 bool) {
	t.Helper()
	var end uint64
	for line := range strings.Lines(ask(t, p, fmt.Sprintf("cat /proc/%d/maps", pid))) {
		from, to, _ := strings.Cut(strings.Fields(line)[0], "-")
		a, err := strconv.ParseUint(from, 16, 64)
		b, err2 := strconv.ParseUint(to, 16, 64)
		if err != nil || err2 != nil || a < end || b <= a || bits32 && b > 1<<32 {
			t.Fatalf("%q after %x: %v %v", line, end, err, err2)
		}
		if bits32 && strings.Contains(line, "lib64") {
			t.Errorf("%q in a 32-bit process", line)
		}
		end = b
	}
}

func TestABI(t *testing.T) {
	for _, c := range []struct {
		options        Options
		bits32         bool
		list, list64   string
		parent, uname  string
		growth, heap   string
		zygotes, short string
	}{
		{
			Options{API: 34}, false, "arm64-v8a,armeabi-v7a,armeabi", "arm64-v8a", "zygote64", "aarch64", "256m",
			"512m", "zygote64_32", "arm64-v8a",
		},
		{
			Options{API: 24, HeapGrowthLimit: 192, HeapSize: 384}, true, "arm64-v8a,armeabi-v7a,armeabi", "arm64-v8a",
			"zygote", "aarch64", "192m", "384m", "zygote64_32", "arm64-v8a",
		},
		{
			Options{API: 28, Bits32: true}, false, "armeabi-v7a,armeabi", "", "zygote", "armv7l", "256m", "512m",
			"zygote32", "armeabi-v7a",
		},
	} {
		p := asked(c.options, ProcessSpec{Bits32: c.bits32})
		for command, want := range map[string]string{
			"getprop ro.product.cpu.abilist": c.list, "getprop ro.product.cpu.abilist64": c.list64,
			"getprop ro.product.cpu.abilist32":  "armeabi-v7a,armeabi",
			"getprop dalvik.vm.heapgrowthlimit": c.growth, "getprop dalvik.vm.heapsize": c.heap, "uname -m": c.uname,
			"getprop ro.zygote":          c.zygotes,
			"getprop ro.product.cpu.abi": c.short,
			fmt.Sprintf("cat /proc/$(grep PPid: /proc/%d/status | grep -o '[0-9]*')/cmdline | tr -d x",
				p.PID("com.shop")): "",
		} {
			if strings.HasSuffix(command, "tr -d x") {
				command, want = strings.TrimSuffix(command, " | tr -d x"), c.parent
			}
			if got := strings.Trim(ask(t, p, command), "\n\x00"); got != want {
				t.Errorf("API %d: %s: %q, want %q", c.options.API, command, got, want)
			}
		}
		// After a crash of the system, each process restarts under its own
		// zygote.
		p.CrashSystem(0)
		p.startProcesses("com.shop")
		v, _ := p.running("com.shop")
		if parent, ok := p.find(v.ppid); !ok || parent.name != c.parent {
			t.Errorf("API %d: the parent is %+v, want %s", c.options.API, parent, c.parent)
		}
	}
}

// TestThreadNames reads the names of hundreds of threads as the shell of a user
// build does.
func TestThreadNames(t *testing.T) {
	for _, api := range apis {
		synctest.Test(t, func(t *testing.T) {
			p := asked(Options{API: api}, ProcessSpec{Models: []Model{Leak(Thread, 60, 0)}})
			time.Sleep(time.Hour)
			m, _ := p.Memory("com.shop")
			pid := m.PID
			if m.Threads != defaultThreads+600 {
				t.Fatalf("%d threads", m.Threads)
			}
			names := strings.Split(strings.TrimSuffix(ask(t, p, fmt.Sprintf("cat /proc/%d/task/*/comm", pid)), "\n"),
				"\n")
			pool := 0
			for _, name := range names {
				if len(name) > 15 {
					t.Errorf("API %d: %q", api, name)
				}
				if strings.HasPrefix(name, "pool-3-thread-") {
					pool++
				}
			}
			if len(names) != m.Threads || pool != 600 {
				t.Errorf("API %d: got %d thread names, %d of them in the pool; want %d and 600", api, len(names), pool,
					m.Threads)
			}
			named := strings.Split(
				strings.TrimSuffix(ask(t, p, fmt.Sprintf("grep -H . /proc/%d/task/*/comm", pid)), "\n"), "\n")
			if len(named) != m.Threads ||
				!slices.Contains(named,
					fmt.Sprintf("/proc/%d/task/%d/comm:pool-3-thread-9", pid, pid+defaultThreads+8)) {
				t.Errorf("API %d: %d lines", api, len(named))
			}
		})
	}
}
