package monitor

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// Whatever error occurs with the folders of a run, no file of the run contains
// the path of its directory on the host.
func TestResponsesRedactHostPaths(t *testing.T) {
	for name, c := range map[string]struct {
		// asked is called with every request of a diagnosis, and observed with
		// every event.
		asked    func(artifacts, what string) error
		observed func(artifacts string, e record.Event) error
		says     string
	}{
		"folder cannot be created": {observed: func(artifacts string, e record.Event) error {
			if e.Event == "start" {
				return os.WriteFile(artifacts, nil, 0o644)
			}
			return nil
		}, says: "create folder for artifacts: mkdir artifacts"},
		"folder disappears while data is collected": {
			asked: func(artifacts, what string) error { return moveAway(artifacts, t.TempDir()) },
			says:  "keep meminfo.txt: rename artifacts",
		},
		"folder disappears before the analysis": {observed: func(artifacts string, e record.Event) error {
			if e.Event == "diagnose" {
				return moveAway(artifacts, t.TempDir())
			}
			return nil
		}, says: "cannot analyze the dump: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Java, 300)))
				o := responding(t, response.Options{}, p)
				o.Duration = 26 * time.Minute
				artifacts := filepath.Join(o.Dir, response.Artifacts)
				var errs []error
				if c.observed != nil {
					o.Observer = eventFunc(func(e record.Event) { errs = append(errs, c.observed(artifacts, e)) })
				}
				if c.asked != nil {
					p.listen(func(what string) {
						if strings.Contains(what, "meminfo") {
							if err := c.asked(artifacts, what); err != nil {
								t.Error(err)
							}
						}
					})
				}
				r := perform(t, t.Context(), o)
				if err := errors.Join(errs...); err != nil {
					t.Error(err)
				}
				if n := len(r.diagnosesOf("com.shop", record.TriggerLeak)); n == 0 ||
					r.Stopped != record.StoppedDuration {
					t.Errorf("%d diagnoses, %s", n, r.Stopped)
				}
				for _, name := range []string{"run.json", record.SamplesName} {
					text, err := os.ReadFile(filepath.Join(o.Dir, name))
					if err != nil {
						t.Fatal(err)
					}
					if n := bytes.Count(text, []byte(filepath.Dir(o.Dir))); n > 0 {
						t.Errorf("%s contains the host path %d times, want none", name, n)
					}
					if !bytes.Contains(text, []byte(c.says)) {
						t.Errorf("%s does not contain %q", name, c.says)
					}
				}
			})
		})
	}
}

// moveAway moves the folder, if it exists, into another directory. A rename is
// atomic; os.RemoveAll fails while the program creates a file in the folder.
func moveAway(folder, into string) error {
	err := os.Rename(folder, filepath.Join(into, filepath.Base(folder)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
