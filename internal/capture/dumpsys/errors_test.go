package dumpsys

import (
	"bytes"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

func TestRecordedErrors(t *testing.T) {
	for file, kind := range map[string]Kind{
		"error-meminfo-no-process.txt":       NoProcess,
		"error-smaps_rollup-permission.txt":  Permission,
		"error-kill-not-permitted.txt":       Permission,
		"error-dumpsys-timeout.txt":          Timeout,
		"error-dumpheap-not-debuggable.txt":  NotDebuggable,
		"api28-meminfo-help.txt":             Usage,
		"api28-dumpsys-help.txt":             Usage,
		"api30-am-dumpheap-ok.txt":           "",
		"api36-memorylab-meminfo-d.txt":      "",
		"api36-emulator-flutter-meminfo.txt": "",
		"api36-memorylab-gfxinfo.txt":        "",
		"api36-memorylab-smaps.txt.gz":       "",
		"api36-memorylab-showmap.txt":        "",
		"api31-angle-gpumem.txt":             "",
		"api35-qcom-dumpsys-gpu-head.txt":    "",
		"api33-surfaceflinger-buffers.txt":   "",
		"api30-galaxy-a52-smaps_rollup.txt":  "",
	} {
		text := recorded.Read(t, "device", file)
		for _, text := range [][]byte{text, bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))} {
			got, ok := ClassifyError(text)
			if ok != (kind != "") || got.Kind != kind {
				t.Errorf("%s: %v, %t, want %q", file, got, ok, kind)
			}
			if ok && got.Text != strings.TrimSpace(strings.SplitN(string(text), "\n", 2)[0]) {
				t.Errorf("%s: text %q", file, got.Text)
			}
		}
	}
}

// The error messages of dumpsys.cpp, ActivityManagerService, run-as.cpp, mksh,
// toybox and adb.
func TestErrorTexts(t *testing.T) {
	for text, kind := range map[string]Kind{
		"No process found for: com.x":                                NoProcess,
		"cat: /proc/3309/smaps: No such process":                     NoProcess,
		"/system/bin/sh: kill: 4460: No such process":                NoProcess,
		"No maps for pid 3309":                                       NoProcess,
		"java.lang.IllegalArgumentException: Unknown process: com.x": NoProcess,
		"Exception occurred while executing 'dumpheap':\njava.lang.SecurityException: Process not debuggable: " +
			"ProcessRecord{1 2:x/u0a3}\n\tat com.android.server.am.X(Y.java:1)": NotDebuggable,
		"run-as: package not debuggable: com.x":                                NotDebuggable,
		"run-as: Package 'com.x' is not debuggable":                            NotDebuggable,
		"run-as: Package 'com.x' is unknown":                                   UnknownPackage,
		"run-as: unknown package: com.x":                                       UnknownPackage,
		"run-as: couldn't stat /data/user/10/com.x: No such file or directory": RunAs,
		"run-as: Could not set capabilities: Operation not permitted":          RunAs,
		"*** SERVICE 'meminfo' DUMP TIMEOUT (10000ms) EXPIRED ***":             Timeout,
		"*** SERVICE DUMP TIMEOUT EXPIRED ***":                                 Timeout,
		"Got IoException! java.io.IOException: Timeout":                        Timeout,
		"Unable to dump: process is frozen":                                    Frozen,
		"Unknown argument: -S; use -h for help":                                UnknownOption,
		"Error: Unknown option: -g":                                            UnknownOption,
		"cat: Unknown option 'z' (see \"cat --help\")":                         UnknownOption,
		"grep: invalid option -- Q":                                            UnknownOption,
		"Can't find service: gpu":                                              NoService,
		"cmd: Can't find service: activity":                                    NoService,
		"head: /proc/3309/smaps_rollup: Permission denied":                     Permission,
		"Permission Denial: can't dump meminfo from from pid=1, uid=2000":      Permission,
		"Security exception: Shell does not have permission to access user 10": Permission,
		"/system/bin/sh: su: inaccessible or not found":                        NoCommand,
		"/system/bin/sh: awk: not found":                                       NoCommand,
		"/system/bin/sh: su: can't execute: Permission denied":                 Permission,
		"cat: /proc/3309/smaps_rollup: No such file or directory":              NoFile,
		"cat: write error: No space left on device":                            NoSpace,
		"Failure while dumping the app: ProcessRecord{1 2:x/u0a3}":             DumpFailed,
		"Got RemoteException!":                                                 DumpFailed,
		"Error dumping service info: (Unknown error -2147483646) battery":      DumpFailed,
		"Error dumping service info status_t: DEAD_OBJECT meminfo":             DumpFailed,
		"error: closed": Disconnected,
		"error: device 'emulator-5554' not found":     Disconnected,
		"error: device offline":                       Disconnected,
		"adb: no devices/emulators found":             Disconnected,
		"Killed":                                      Killed,
		"cat: /proc/1/smaps: I/O error":               InputOutput,
		"Error: Unable to open file: /sdcard/x.hprof": InputOutput,
		"Failed to initialize GPU memory eBPF":        Unsupported,
		"Error: Bad component name":                   Failed,
		"usage: am [subcommand] [options]":            Usage,
		"File: /data/local/tmp/heapdump-20210101-195502.prof\nWaiting for dump to finish...": "",
		"":                "",
		"com.x is a name": "",
		"12c00000-13440000 rw-p 00000000 00:00 0 [anon:dalvik-main space]": "",
	} {
		for _, whole := range []string{text, text + "\r\n", "\n\nWARNING: linker: x\n" + text + "\n"} {
			got, ok := ClassifyError([]byte(whole))
			if ok != (kind != "") || got.Kind != kind {
				t.Errorf("%q: %v, want %q", whole, got, kind)
			}
		}
	}
}

func TestLongErrorText(t *testing.T) {
	long := bytes.Repeat([]byte("70a20000-70d0c000 rw-p\n"), 100000)
	got, ok := ClassifyError(append(bytes.Clone(long), "cat: /proc/1/smaps: No such process\n"...))
	if !ok || got.Kind != NoProcess {
		t.Errorf("error message at the end of long output: got %v, want %v", got, NoProcess)
	}
	got, ok = ClassifyError([]byte("Error: " + strings.Repeat("x", 1<<20)))
	if !ok || len(got.Text) > maxErrorLine || len(got.Error()) > maxErrorLine+50 {
		t.Errorf("%d bytes", len(got.Text))
	}
}

func TestAnswerWords(t *testing.T) {
	if Unknown.String() != "unknown" || Yes.String() != "yes" || No.String() != "no" {
		t.Errorf("got the words %v, want unknown, yes and no", []Answer{Unknown, Yes, No})
	}
}

func FuzzClassifyError(f *testing.F) {
	f.Add([]byte("head: /proc/3309/smaps_rollup: Permission denied\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		e, ok := ClassifyError(text)
		if ok != (e.Kind != "") || len(e.Text) > maxErrorLine || !bytes.Equal(before, text) {
			t.Fatalf("%v, %t", e, ok)
		}
		if ok && !bytes.Contains(text, []byte(e.Text)) {
			t.Fatalf("the input does not contain the error message %q", e.Text)
		}
	})
}
