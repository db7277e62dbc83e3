//go:build linux && realtime

package harness_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/harness"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/onsi/ginkgo/v2/types"
)

// built is the directory of the programs that tests start, or "" until a test
// needs it.
var built string

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built) // leftovers in the temporary directory are harmless
	}
	os.Exit(code)
}

var buildFolder = sync.OnceValues(func() (string, error) {
	var err error
	built, err = os.MkdirTemp("", "leakgate-suites-")
	return built, err
})

// programs are the programs built with one version of Ginkgo.
type programs struct {
	// cli is the ginkgo program, suite is the test suite, and plain is the same
	// suite without Watch and Check.
	cli, suite, plain string
}

// current holds the programs built with the version of Ginkgo in go.mod.
var current = sync.OnceValues(func() (programs, error) { return build("") })

// goCommand returns a go command that runs in the directory of the module.
func goCommand(args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir = ".."
	return cmd
}

// build builds the programs. If modfile is not "", it replaces the go.mod of
// the project.
func build(modfile string) (programs, error) {
	folder, err := buildFolder()
	if err == nil {
		folder, err = os.MkdirTemp(folder, "")
	}
	if err != nil {
		return programs{}, err
	}
	p := programs{
		cli: filepath.Join(folder, "ginkgo"), suite: filepath.Join(folder, "suite.test"),
		plain: filepath.Join(folder, "plain.test"),
	}
	const fixture = "github.com/leakgate/leakgate/harness/testdata/suite"
	for _, args := range [][]string{
		{"build", "-o", p.cli, "github.com/onsi/ginkgo/v2/ginkgo"},
		{"test", "-c", "-o", p.suite, fixture},
		{"test", "-c", "-tags", "plain", "-o", p.plain, fixture},
	} {
		if modfile != "" {
			args = slices.Insert(args, 1, "-modfile", modfile)
		}
		if out, err := goCommand(args...).CombinedOutput(); err != nil {
			return programs{}, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	return p, nil
}

// bench is the environment in which child processes run: phones behind an adb
// server, and separate directories.
type bench struct {
	programs programs
	server   *adbd.Server
	port     string
	// temp is the temporary directory of the child processes; its name
	// distinguishes them from all other processes. leases is the folder of
	// their leases.
	temp, leases string
}

// newBench serves phones until the test ends.
func newBench(t *testing.T, phones ...adbd.Phone) *bench {
	t.Helper()
	p, err := current()
	if err != nil {
		t.Fatal(err)
	}
	server, err := adbd.Listen(phones...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	_, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	// The path of a socket is limited to about 100 bytes.
	temp, err := os.MkdirTemp("", "lg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	// The go command, which the ginkgo program starts, must not leave a process
	// behind either.
	telemetry := filepath.Join(temp, ".config", "go", "telemetry")
	if err := os.MkdirAll(telemetry, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(telemetry, "mode"), []byte("off"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &bench{p, server, port, temp, t.TempDir()}
}

// phoneSpeed is the number of seconds that pass on a phone per real second.
const phoneSpeed = 60

// demoPhone returns the phone that `leakgate demo --serve` serves for suites.
func demoPhone(t *testing.T) *androidsim.Phone {
	t.Helper()
	return androidsim.ServedDemo(phoneSpeed, 1)
}

// child is a run of the suite.
type child struct {
	// scenario names the specs to run.
	scenario string
	// args are arguments of the ginkgo program; env is added to the environment
	// of the bench.
	args, env []string
	// If plain is set, the suite runs without Watch and Check.
	plain bool
	// If alone is set, the test binary is started directly, as go test does.
	alone bool
	// most is the time limit; zero means childTime.
	most time.Duration
	// dead is set if the processes of the child were killed, so their sockets
	// remain.
	dead bool
}

// result is the outcome of a run.
type result struct {
	console string
	code    int
	// folder is the directory of the run. Its reports are in out.
	folder string
	suites []types.Report
	junit  []junitCase
	took   time.Duration
}

// junitCase is a test case in a JUnit report.
type junitCase struct {
	Name       string `xml:"name,attr"`
	Status     string `xml:"status,attr"`
	Failure    *junitText
	Error      *junitText
	Properties []struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	} `xml:"properties>property"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// UnmarshalXML reads those child elements of a case that have lower-case names.
func (c *junitCase) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	var v struct {
		Name       string     `xml:"name,attr"`
		Status     string     `xml:"status,attr"`
		Failure    *junitText `xml:"failure"`
		Error      *junitText `xml:"error"`
		Properties []struct {
			Name  string `xml:"name,attr"`
			Value string `xml:"value,attr"`
		} `xml:"properties>property"`
	}
	if err := d.DecodeElement(&v, &start); err != nil {
		return err
	}
	*c = junitCase{v.Name, v.Status, v.Failure, v.Error, v.Properties}
	return nil
}

// running is a child in progress.
type running struct {
	bench   *bench
	of      child
	cmd     *exec.Cmd
	console *lockedBuffer
	began   time.Time
}

// lockedBuffer can be read while a child process writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// childTime bounds the duration of a child: a child that hangs fails its test
// instead of blocking the whole test run.
const childTime = 2 * time.Minute

// start starts a child in a new process group.
func (b *bench) start(t *testing.T, c child) *running {
	t.Helper()
	folder := t.TempDir()
	binary := b.programs.suite
	if c.plain {
		binary = b.programs.plain
	}
	here := filepath.Join(folder, "suite.test")
	if err := os.Link(binary, here); err != nil {
		t.Fatal(err)
	}
	args := slices.Concat([]string{
		b.programs.cli, "run", "--no-color", "--json-report=report.json", "--junit-report=junit.xml",
		"--output-dir=" + filepath.Join(folder, "out"),
	}, c.args, []string{"suite.test"})
	if i := slices.Index(c.args, "--"); i >= 0 {
		args = slices.Concat(args[:len(args)-1-len(c.args)+i], []string{"suite.test"}, c.args[i:])
	}
	if c.alone {
		args = append([]string{here, "-test.count=1", "--ginkgo.no-color"}, c.args...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(c.most, childTime))
	t.Cleanup(cancel)
	r := &running{bench: b, of: c, console: &lockedBuffer{}, began: time.Now()}
	r.cmd = exec.CommandContext(ctx, args[0], args[1:]...)
	r.cmd.Dir = folder
	r.cmd.Stdout, r.cmd.Stderr = r.console, r.console
	r.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.temp, "TMPDIR=" + b.temp, "LEAKGATE_LEASES=" + b.leases,
		"LEAKGATE_STAND_IN=1", "ANDROID_ADB_SERVER_PORT=" + b.port, "SUITE=" + c.scenario,
	}, c.env...)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.cmd.Cancel = func() error { return syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) }
	r.cmd.WaitDelay = 5 * time.Second
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// signal sends a signal to all processes of the child, as a terminal does.
func (r *running) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(-r.cmd.Process.Pid, s); err != nil {
		t.Error(err)
	}
}

// await waits until the console output contains a string.
func (r *running) await(t *testing.T, words string) {
	t.Helper()
	for end := time.Now().Add(childTime / 2); !strings.Contains(r.console.String(),
		words); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.signal(t, syscall.SIGKILL)
			t.Fatalf("no %q in\n%s", words, r.console)
		}
	}
}

// finish waits until the child exits and returns its console output, reports
// and exit code.
func (r *running) finish(t *testing.T) result {
	t.Helper()
	err := r.cmd.Wait()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		t.Errorf("the child failed to exit: %v", err)
	}
	out := result{
		console: r.console.String(), code: r.cmd.ProcessState.ExitCode(), folder: r.cmd.Dir, took: time.Since(r.began),
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s %s: exit %d after %v\n%s", r.of.scenario, strings.Join(r.of.args, " "), out.code, out.took,
				out.console)
		}
	})
	out.read(t)
	r.checkLeft(t)
	return out
}

// run runs a child until it exits.
func (b *bench) run(t *testing.T, c child) result {
	t.Helper()
	return b.start(t, c).finish(t)
}

// read reads Ginkgo's reports, if they exist.
func (o *result) read(t *testing.T) {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(o.folder, "out", "report.json")); err == nil {
		if err := json.Unmarshal(text, &o.suites); err != nil {
			t.Errorf("decode the JSON report: %v", err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(o.folder, "out", "junit.xml")); err == nil {
		o.junit = readJUnit(t, text)
	}
}

func readJUnit(t *testing.T, text []byte) []junitCase {
	t.Helper()
	var suites struct {
		Suites []struct {
			Cases []junitCase `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &suites); err != nil {
		t.Errorf("decode the JUnit report: %v", err)
	}
	var out []junitCase
	for _, s := range suites.Suites {
		out = append(out, s.Cases...)
	}
	return out
}

// checkLeft fails the test if a child has left behind a process, a socket, a
// lease or a file on a phone.
func (r *running) checkLeft(t *testing.T) {
	t.Helper()
	b := r.bench
	for _, p := range b.processes() {
		t.Errorf("a process of the child is still running: %s", p)
	}
	sockets := filepath.Join(b.temp, "leakgate-"+strconv.Itoa(os.Getuid()))
	if left := names(sockets); len(left) > 0 && !r.of.dead {
		t.Errorf("the child did not remove its sockets: %q", left)
	}
	if left := names(b.leases); len(left) > 0 && !r.of.dead {
		t.Errorf("the child did not remove its leases: %q", left)
	}
}

// checkPhone fails the test if files are left on a phone.
func checkPhone(t *testing.T, p adbd.Phone) {
	t.Helper()
	var out bytes.Buffer
	if code := p.Shell(t.Context(), "ls -a /data/local/tmp", strings.NewReader(""), &out, &out); code != 0 ||
		strings.TrimSpace(out.String()) != "" {
		t.Errorf("ls of the phone's temporary directory: exit %d, %q", code, &out)
	}
}

// names returns the names in a directory, or nil if the directory does not
// exist.
func names(folder string) []string {
	list, _ := os.ReadDir(folder)
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// processes returns the command lines of processes that children of the bench
// started.
func (b *bench) processes() []string {
	var out []string
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		env, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), "TMPDIR="+b.temp) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		out = append(out, filepath.Base(filepath.Dir(path))+" "+strings.ReplaceAll(string(line), "\x00", " "))
	}
	return out
}

// spec returns the report of the spec whose name is the given string or ends
// with it.
func (o *result) spec(t *testing.T, name string) types.SpecReport {
	t.Helper()
	for _, s := range o.specs() {
		if strings.HasSuffix(s.FullText(), name) {
			return s
		}
	}
	t.Errorf("spec %q did not run", name)
	return types.SpecReport{}
}

// specs returns the reports of all specs, without those of suite nodes.
func (o *result) specs() []types.SpecReport {
	var out []types.SpecReport
	for _, suite := range o.suites {
		for _, s := range suite.SpecReports {
			if s.LeafNodeType == types.NodeTypeIt {
				out = append(out, s)
			}
		}
	}
	return out
}

// suiteNode returns the report of a suite node, such as the verdict.
func (o *result) suiteNode(kind types.NodeType) types.SpecReport {
	for _, suite := range o.suites {
		for _, s := range suite.SpecReports {
			if s.LeafNodeType == kind {
				return s
			}
		}
	}
	return types.SpecReport{}
}

// verdict returns leakgate's verdict on the suite: its failure message, or the
// content of its report entry.
func (o *result) verdict() (failed bool, text string) {
	r := o.suiteNode(types.NodeTypeReportAfterSuite)
	if r.Failed() {
		return true, r.Failure.Message
	}
	for _, e := range r.ReportEntries {
		text += e.StringRepresentation()
	}
	return false, text
}

// failures returns the sorted names of the specs that have failed.
func (o *result) failures() []string {
	out := []string{}
	for _, s := range o.specs() {
		if s.Failed() {
			out = append(out, s.FullText())
		}
	}
	slices.Sort(out)
	return out
}

// entry returns the report entry of a spec in the JSON report.
func entry(t *testing.T, s types.SpecReport) harness.SpecEntry {
	t.Helper()
	for _, e := range s.ReportEntries {
		if e.Name != "leakgate" {
			continue
		}
		var out harness.SpecEntry
		if err := json.Unmarshal([]byte(cmp.Or(e.Value.AsJSON, "{}")), &out); err == nil && out.Verdict != "" {
			return out
		}
	}
	t.Errorf("%q has no report entry from leakgate", s.FullText())
	return harness.SpecEntry{}
}

// verdicts maps the full name of each spec that has an entry to the verdict on
// the spec.
func (o *result) verdicts(t *testing.T) map[string]record.CheckVerdict {
	t.Helper()
	out := map[string]record.CheckVerdict{}
	for _, s := range o.specs() {
		for _, e := range s.ReportEntries {
			if e.Name == "leakgate" && strings.Contains(e.Value.AsJSON, `"verdict"`) {
				out[s.FullText()] = entry(t, s).Verdict
			}
		}
	}
	return out
}

// runs returns the run directories of a child.
func (o *result) runs() []string {
	found, _ := filepath.Glob(filepath.Join(o.folder, "out", "leakgate-runs", "*"))
	return found
}

// assertContains fails the test if a string lacks a substring.
func assertContains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}

// assertLacks fails the test if a string contains a substring.
func assertLacks(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if strings.Contains(text, p) {
			t.Errorf("%s has %q:\n%s", what, p, text)
		}
	}
}
