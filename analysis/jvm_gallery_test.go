package analysis_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/growth"
	"github.com/leakgate/leakgate/internal/jvmtest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// soon lists the programs that every test run includes; make e2e runs all
// programs.
var soon = []string{
	"class-loader", "main-local", "buffer", "finalizer", "direct", "thread-local", "event-bus", "threads", "steady-lru",
	"steady-strings", "fills-lru",
}

func later(shape string) bool { return !recorded.Long() && !slices.Contains(soon, shape) }

// TestGallery takes three dumps of each program and checks what grows.
func TestGallery(t *testing.T) {
	j := jvmtest.New(t)
	jar := j.Compile(t, jvmtest.Gallery())
	for _, s := range jvmtest.LeakingShapes() {
		if later(s.Name) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			checkPlace(t, s, grownIn(t, j, jar, jvmtest.GalleryMain, s.Name))
		})
	}
	for _, name := range jvmtest.SteadyShapes() {
		if later(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if g := grownIn(t, j, jar, jvmtest.GalleryMain, name); len(g.Growth) > 0 {
				t.Errorf("%s", growthText(t, g))
			}
		})
	}
	for _, name := range jvmtest.FillingShapes() {
		if later(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if g := grownIn(t, j, jar, jvmtest.GalleryMain, name); len(g.Growth) > 0 && !g.Growth[0].Slowing {
				t.Errorf("%s", growthText(t, g))
			}
		})
	}
}

// checkPlace checks that the expected place is among the first three, with the
// right number of bytes.
func checkPlace(t *testing.T, s jvmtest.Shape, g *analysis.Growth) {
	t.Helper()
	want := 2 * galleryLoops * s.Bytes
	if want == 0 {
		want = g.Accounting.ReachableDelta
	}
	for i := range g.Growth[:min(3, len(g.Growth))] {
		p := &g.Growth[i]
		if strings.Contains(placeText(p), s.Place) && 10*p.GrowthBytes >= 9*want && 10*p.GrowthBytes <= 11*want {
			return
		}
	}
	t.Errorf("want %s with %d bytes, got:\n%s", s.Place, want, growthText(t, g))
}

const galleryLoops = 10

func grownIn(t *testing.T, j *jvmtest.JDK, jar, main, shape string) *analysis.Growth {
	t.Helper()
	p := j.Start(t, jar, main, shape)
	series := analysis.NewGrowthSeries(galleryLoops)
	for i := range 3 {
		p.Do(t, galleryLoops)
		path := p.Dump(t)
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err == nil {
			err = series.Add(t.Context(), fmt.Sprint("dump ", i+1), f, info.Size(), analysis.Options{})
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	p.Stop(t)
	return series.Report(10)
}

// growthText returns a report with its first three places, as indented JSON.
func growthText(t *testing.T, g *analysis.Growth) string {
	t.Helper()
	short := *g
	short.Growth = g.Growth[:min(3, len(g.Growth))]
	text, err := json.MarshalIndent(short, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// placeText returns the steps to a place, and what grows there, down to the
// app's own objects.
func placeText(p *analysis.GrowingPlace) string {
	text := ""
	for i := range p.Path {
		text += stepText(&p.Path[i])
	}
	return text + childrenText(p.Children)
}

func childrenText(list []growth.Child) (text string) {
	for i := range list {
		text += stepText(&list[i].PathEdge) + childrenText(list[i].Children)
	}
	return text
}

func stepText(s *growth.PathEdge) string {
	return "\n" + s.Owner[strings.LastIndexAny(s.Owner, ".$")+1:] + "." + s.Name + " " + s.Class
}

// A class that many loaders have loaded is reported with what it retains. A
// value of a thread local is reported with the field that holds the variable,
// and with the threads that have a value.
func TestNamesOfAJVM(t *testing.T) {
	t.Parallel()
	j := jvmtest.New(t)
	jar := j.Compile(t, jvmtest.Gallery())
	const deployments, table = 6, 200_000
	r := run(t, j, jar, jvmtest.GalleryMain, deployments, "class-loader").analyze(t, nil)
	if len(r.Loaders) != 1 {
		t.Fatalf("got %d classes with several loaders, want 1", len(r.Loaders))
	}
	if l := r.Loaders[0]; !strings.HasSuffix(l.Class, "Gallery$Plugin") || l.Loaders != deployments ||
		l.RetainedBytes < deployments*table || l.RetainedBytes > deployments*table*11/10 {
		t.Errorf("%+v", l)
	}
	r = run(t, j, jar, jvmtest.GalleryMain, 3, "thread-local").analyze(t, nil, "java.util.ArrayList")
	named := slices.ContainsFunc(r.Leaks, func(l analysis.Leak) bool {
		return slices.ContainsFunc(l.Trace, func(e analysis.TraceElement) bool {
			return slices.Contains(e.Labels,
				"value of ThreadLocal Gallery$RequestContext.HISTORY in 4 threads Thread-*")
		})
	})
	if !named {
		t.Errorf("no trace names the thread local and its threads: %+v", r.Leaks)
	}
}
