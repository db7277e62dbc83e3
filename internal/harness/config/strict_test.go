package config

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// fileForm describes the file for the library's own strict decoder, with every
// value as a string: it defines the names and structure of the keys, but not
// their values.
type fileForm struct {
	Version string
	App     struct {
		Package   string
		Processes []string
		Mapping   string
		Variant   string
	}
	Devices struct {
		Serials []string
		MinAPI  string `yaml:"min_api"`
		Require string
	}
	Workload yaml.Node
	Duration string
	Strict   string
	Unjudged string `yaml:"allow_unjudged"`
	Sample   struct {
		Normal, Suspicious, Leaking, Detail string
		MaxSystemServer                     string `yaml:"max_system_server"`
		MaxApp                              string `yaml:"max_app"`
	}
	Detect struct {
		Policy, Assert string
	}
	Diagnose struct {
		Dump, Cooldown, Keep, Collect, Logcat, Texts string
		Steps                                        struct {
			Java, Native, GPU, Thread, Unknown, All []struct{ Name, Command, Limit string }
		}
	}
	Gate struct {
		Informational, Confirm, Accepted string
		ProcessGate                      ruleForm `yaml:"process.gate"`
		ProcessDeaths                    ruleForm `yaml:"process.deaths"`
		ProcessSlope                     ruleForm `yaml:"process.slope_mb_h"`
		LeakPerLoop                      ruleForm `yaml:"leak.per_loop"`
		LeakHeavier                      ruleForm `yaml:"leak.heavier"`
		LeakWider                        ruleForm `yaml:"leak.wider"`
		NativePerLoop                    ruleForm `yaml:"native.per_loop"`
		LeakCreep                        ruleForm `yaml:"leak.creep"`
	}
	Baseline struct {
		Store, Window string
		Match         []string
	}
	Report struct{ JUnit string }
	GitHub struct {
		Comment               struct{ Key, When string }
		Check, SARIF, Summary string
	}
}

// ruleForm is one string or a list of strings.
type ruleForm []string

func (f *ruleForm) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*f = make([]string, 1)
		return n.Decode(&(*f)[0])
	}
	return n.Decode((*[]string)(f))
}

type workloadForm struct {
	Monkey        *struct{ Events, Throttle, Seed string }
	Command       []string
	DeviceCommand string `yaml:"device_command"`
	Instrument    instrumentForm
	Windows       *struct{ Begin, End string }
}

// instrumentForm is a component or a mapping.
type instrumentForm struct {
	Component      string
	Class          []string
	Arguments      map[string]string
	DelayAfterTest string `yaml:"delay_after_test"`
}

func (f *instrumentForm) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&f.Component)
	}
	type plain instrumentForm
	part, err := yaml.Marshal(n)
	if err != nil {
		return err
	}
	d := yaml.NewDecoder(bytes.NewReader(part))
	d.KnownFields(true)
	return d.Decode((*plain)(f))
}

var ownKeys = regexp.MustCompile(`^line \d+: field x-\S* not found in type`)

// strictly returns the error of the library's strict decoder, which serves as
// an independent check of a file. Keys that begin with x- are ignored.
func strictly(text string) error {
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	var f fileForm
	if err := relevant(d.Decode(&f)); err != nil {
		return err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("a second document")
	}
	// An anchor is lost when a node is written separately, so only a workload
	// without aliases can be checked separately.
	if f.Workload.Kind != yaml.MappingNode || hasAlias(&f.Workload) {
		return nil
	}
	part, err := yaml.Marshal(&f.Workload)
	if err != nil {
		return err
	}
	d = yaml.NewDecoder(bytes.NewReader(part))
	d.KnownFields(true)
	return relevant(d.Decode(new(workloadForm)))
}

func hasAlias(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, hasAlias)
}

func relevant(err error) error {
	te, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return err
	}
	var left []string
	for _, e := range te.Errors {
		if !ownKeys.MatchString(e) {
			left = append(left, e)
		}
	}
	if left == nil {
		return nil
	}
	return &yaml.TypeError{Errors: left}
}

// TestSecondOpinion compares the reader with the library's strict decoder on
// valid, invalid and mutated files. The decoder must accept what Parse accepts,
// and must fail where Parse reports an unknown or duplicate key.
func TestSecondOpinion(t *testing.T) {
	texts := mutations(full, 600)
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	agreed := map[string]int{}
	for _, text := range texts {
		_, err := Parse("run.yaml", []byte(text), environment)
		second := strictly(text)
		if err == nil {
			agreed["accepted"]++
			if second != nil {
				t.Errorf("the library rejects a file that the reader accepts: %v\n%s", second, text)
			}
			continue
		}
		problems, _ := errors.AsType[Errors](err)
		for _, p := range problems {
			if strings.Contains(p.Message, `unknown key ""`) {
				continue // the library does not treat an empty key as unknown
			}
			if strings.Contains(p.Message, "unknown key") || strings.Contains(p.Message, "duplicate key") {
				agreed["refused"]++
				// Keys below x- are not part of fileForm.
				if second == nil && yaml.Unmarshal([]byte(text), new(any)) == nil {
					t.Errorf("the library accepts a file that the reader rejects: %v", p)
				}
			}
		}
	}
	if agreed["accepted"] < 30 || agreed["refused"] < 100 {
		t.Errorf("too little variation among the files: %v of %d", agreed, len(texts))
	}
}
