package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/recorded"
)

// localPhone is a simulated phone without a connection in between, whose round
// trips can fail.
type localPhone struct {
	*androidsim.Phone
	mu sync.Mutex
	// requests lists commands and pulls in the order in which they started.
	requests []string
	// before, if not nil, is called before a round trip and may return its
	// error.
	before func(ctx context.Context, n int, what string) error
	// without is the name of a program that the phone does not have; it is
	// recognized at the beginning of a command line.
	without string
	// absent is the name of a program that the phone does not have; it is
	// recognized anywhere in a command line.
	absent string
	// endless is a command that prints nothing and does not end.
	endless string
	// pulled, if not nil, changes what a pull returns.
	pulled func(io.Reader) io.Reader
}

var errUnplugged = errors.New("connection ended before the exit status")

func (d *localPhone) Serial() string { return d.Identity().Serial }

func (d *localPhone) begin(ctx context.Context, what string) error {
	d.mu.Lock()
	d.requests = append(d.requests, what)
	n := len(d.requests)
	d.mu.Unlock()
	if d.before == nil {
		return nil
	}
	return d.before(ctx, n, what)
}

func (d *localPhone) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	if err := d.begin(ctx, command); err != nil {
		return -1, err
	}
	if d.without != "" && strings.HasPrefix(command, d.without+" ") {
		_, err := fmt.Fprintf(stderr, "/system/bin/sh: %s: inaccessible or not found\n", d.without)
		return 127, err
	}
	if d.absent != "" {
		command = strings.ReplaceAll(command, d.absent+" ", "not_there ")
	}
	done, _, endless := strings.Cut(command, cmp.Or(d.endless, "\x00"))
	exit := d.Phone.Shell(ctx, done+map[bool]string{true: ":"}[endless], strings.NewReader(""), stdout, stderr)
	if endless {
		<-ctx.Done()
	}
	switch {
	case ctx.Err() != nil:
		return -1, ctx.Err()
	case exit == adbd.NoExit:
		return -1, errUnplugged
	}
	return exit, nil
}

func (d *localPhone) Pull(ctx context.Context, remote string, w io.Writer) (int64, error) {
	if err := d.begin(ctx, "pull "+remote); err != nil {
		return 0, err
	}
	f, err := d.Open(remote)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var r io.Reader = f
	if d.pulled != nil {
		r = d.pulled(f)
	}
	n, err := io.Copy(w, r)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return n, err
}

func (d *localPhone) Push(context.Context, io.Reader, string, fs.FileMode) error {
	return errors.ErrUnsupported
}

// dumps returns the paths of the heap dumps on the phone.
func (d *localPhone) dumps(t testing.TB) []string {
	t.Helper()
	infos, err := d.ReadDir("/data/local/tmp")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, i := range infos {
		if strings.HasPrefix(i.Name(), dumpPrefix) {
			out = append(out, i.Name())
		}
	}
	return out
}

// situation is a phone with one app.
type situation struct {
	api int
	// rooted means a userdebug build after `adb root`; su means a user build
	// with a su program.
	rooted, su bool
	debuggable bool
	user       int
	isolated   bool
	options    androidsim.Options
}

func (s situation) String() string {
	return fmt.Sprintf("API %d, rooted %v, su %v, debuggable %v, user %d, isolated %v", s.api, s.rooted, s.su,
		s.debuggable, s.user, s.isolated)
}

// begin creates the phone, and reads its facts and probes its process as a run
// does.
func (s situation) begin(t testing.TB) (*localPhone, capture.Facts, Request) {
	t.Helper()
	o := s.options
	o.API, o.SU = s.api, s.su
	if s.rooted {
		o.Root, o.BuildType = true, "userdebug"
	}
	o.Apps = append([]androidsim.App{
		{Package: "com.shop", User: s.user, Debuggable: s.debuggable, Processes: []androidsim.ProcessSpec{
			{
				Name: "com.shop", Isolated: s.isolated, RestartAfter: 5 * time.Second,
				Models: []androidsim.Model{androidsim.Typical()},
			},
			{Name: "com.shop:push", Models: []androidsim.Model{androidsim.Typical()}},
		}}}, s.options.Apps...)
	d := &localPhone{Phone: androidsim.New(o)}
	time.Sleep(time.Minute) // so that a restarted app has a different start time
	facts, err := capture.ReadFacts(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	found, err := capture.FindProcesses(t.Context(), d, []capture.Pattern{"com.shop"})
	if err != nil || len(found.Processes) != 1 {
		t.Fatal(found, err)
	}
	p := found.Processes[0]
	probe, err := capture.NewLevels(d, facts).Probe(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	d.requests = nil
	return d, facts, Request{Process: p, Level: probe.Level, Dir: t.TempDir(), Run: "test1"}
}

// collect runs a recipe and checks the invariants of every diagnosis.
func collect(t testing.TB, ctx context.Context, d *localPhone, facts capture.Facts, r Request,
	recipe string) (Diagnosis, error) {
	t.Helper()
	if r.Recipe.Name == "" {
		r.Recipe, _ = RecipeOf(recipe)
	}
	got, err := Diagnose(ctx, d, facts, r)
	checkDiagnosis(t, r, got)
	return got, err
}

// checkDiagnosis checks that each step has one outcome, with a file if there is
// an artifact and with reasons otherwise, and that the folder contains nothing
// else.
func checkDiagnosis(t testing.TB, r Request, d Diagnosis) {
	t.Helper()
	if len(d.Steps) != len(r.Recipe.Steps) {
		t.Fatalf("%d outcomes for %d steps", len(d.Steps), len(r.Recipe.Steps))
	}
	want := map[string]int64{}
	for i, o := range d.Steps {
		taken := o.Ending == Complete || o.Ending == Fallback
		switch {
		case o.Step != r.Recipe.Steps[i].Name:
			t.Errorf("outcome %d is for step %s, want %s", i, o.Step, r.Recipe.Steps[i].Name)
		case taken != (o.File != "") || taken != (o.Bytes > 0) || taken != (o.Command != ""):
			t.Errorf("%+v", o)
		case !taken && len(o.Reasons) == 0:
			t.Errorf("%s is %s without a reason", o.Step, o.Ending)
		case (o.Ending == Fallback) != (taken && o.Note != ""):
			t.Errorf("%s is %s with the note %q", o.Step, o.Ending, o.Note)
		}
		if taken {
			want[o.File] = o.Bytes
		}
		if text := strings.Join(o.Reasons, ""); strings.ContainsAny(text, "\n\x1b") {
			t.Errorf("%s: terminal escapes in %q", o.Step, text)
		}
	}
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if size, ok := want[e.Name()]; !ok || size != info.Size() {
			t.Errorf("the folder contains %s (%d bytes); the diagnosis reports %d bytes (%t)", e.Name(), info.Size(),
				size, ok)
		}
		delete(want, e.Name())
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

func outcome(t testing.TB, d Diagnosis, step string) StepOutcome {
	t.Helper()
	for _, o := range d.Steps {
		if o.Step == step {
			return o
		}
	}
	t.Fatalf("no step %s", step)
	return StepOutcome{}
}

// allowed returns how a step must end, given what Android allows a shell, and
// words that the step's reasons or note must contain.
func (s situation) allowed(step string) (Ending, string) {
	traced := s.rooted || s.su || s.debuggable && !s.isolated
	since := func(api int) (Ending, string) {
		if s.api < api {
			return Skipped, fmt.Sprintf("needs API level %d, this is %d", api, s.api)
		}
		return Complete, ""
	}
	switch step {
	case "smaps":
		if !traced {
			return Fallback, "only the rows of meminfo"
		}
	case "maps":
		if !traced {
			return Skipped, s.untraced()
		}
	case "showmap":
		switch {
		case !traced:
			return Skipped, s.untraced()
		case !s.rooted && s.api < 29: // user builds include showmap since Android 10
			return Skipped, "smaps replaces it"
		}
	case "heap":
		switch {
		case !s.rooted && !s.debuggable: // su is not tried
			return Skipped, "use a debuggable build"
		case s.api < 28 && s.isolated && !s.rooted && !s.su:
			return Fallback, garbage
		}
	case "gpu":
		return since(31)
	case "exit_info":
		return since(30)
	}
	return Complete, ""
}

// untraced returns the reason why no user may read the memory of the process.
func (s situation) untraced() string {
	if s.isolated {
		return "isolated"
	}
	return "not debuggable"
}

// by returns the prefix of a command that needs more permissions than the shell
// has.
func (s situation) by() string {
	switch {
	case s.rooted:
		return ""
	case s.su:
		return "su 0 "
	case s.user != 0:
		return fmt.Sprintf("run-as 'com.shop' --user %d ", s.user)
	}
	return "run-as 'com.shop' "
}

func TestEachRecipeOnEachAndroid(t *testing.T) {
	var all []situation
	for _, api := range []int{21, 24, 28, 29, 31, 34, 36} {
		all = append(all, situation{api: api}, situation{api: api, debuggable: true}, situation{api: api, rooted: true},
			situation{api: api, rooted: true, debuggable: true})
	}
	for _, api := range []int{24, 34} {
		all = append(all, situation{api: api, su: true}, situation{api: api, su: true, debuggable: true},
			situation{api: api, isolated: true, debuggable: true},
			situation{api: api, isolated: true, rooted: true}, situation{api: api, user: 10, debuggable: true})
	}
	for i, s := range all {
		if i%8 == 2 || recorded.Long() {
			t.Run(s.String(), func(t *testing.T) { synctest.Test(t, s.everyRecipe) })
		}
	}
}

func (s situation) everyRecipe(t *testing.T) {
	for name := range recipes {
		d, facts, r := s.begin(t)
		began := time.Now()
		got, err := collect(t, t.Context(), d, facts, r, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got.Up == 0 || got.Ended < got.Up || got.Recipe != name || got.Process != r.Process {
			t.Errorf("%s: %+v", name, got)
		}
		// The limit allows for the durations on a phone, where dumpsys takes a
		// second.
		if took := time.Since(began); (name == "native" || name == "thread") && took > 5*time.Second {
			t.Errorf("%s takes %v", name, took)
		}
		for _, o := range got.Steps {
			want, words := s.allowed(o.Step)
			if name == "snapshot" && want == Fallback {
				want, words = Skipped, s.untraced()
			}
			said := strings.Join(append(o.Reasons, o.Note), "; ")
			if o.Ending != want || !strings.Contains(said, words) {
				t.Errorf("%s: %s is %s, want %s with %q: %s", name, o.Step, o.Ending, want, words, said)
			}
			if o.Ending == Complete && slices.Contains([]string{"smaps", "maps", "showmap"}, o.Step) &&
				!strings.HasPrefix(o.Command, s.by()+"cat ") && !strings.HasPrefix(o.Command, s.by()+"showmap ") {
				t.Errorf("%s: %s by %q", name, o.Step, o.Command)
			}
			if asked := strings.Contains(o.Command, "dumpsys -t "); strings.Contains(o.Command, "dumpsys") &&
				asked != (s.api >= 24) {
				t.Errorf("%s: %q", o.Step, o.Command)
			}
			if o.Step == "heap" && o.Ending == Complete {
				s.checkHeap(t, d, o, filepath.Join(r.Dir, o.File))
			}
		}
		if left := d.dumps(t); len(left) > 0 {
			t.Errorf("%s leaves %v", name, left)
		}
	}
}

// checkHeap checks that the command has -g if am supports it; otherwise the
// signal must be sent by a user who is allowed to send it.
func (s situation) checkHeap(t *testing.T, d *localPhone, o StepOutcome, file string) {
	t.Helper()
	if option := strings.Contains(o.Command, " -g "); option != (s.api >= 28) {
		t.Errorf("%q", o.Command)
	}
	if user := strings.Contains(o.Command, fmt.Sprintf(" --user %d ", s.user)); user != (s.user != 0) {
		t.Errorf("%q", o.Command)
	}
	sent := slices.ContainsFunc(d.requests, func(c string) bool { return strings.HasPrefix(c, s.by()+"kill -10 ") })
	if sent != (s.api < 28) {
		t.Errorf("signal sent: %v", sent)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := wholeDump(f, o.Bytes); err != nil {
		t.Error(err)
	}
}
