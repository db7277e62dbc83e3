package hostdevice

import "testing"

func TestReplacePath(t *testing.T) {
	for text, want := range map[string]string{
		"rm /data/local/tmp/x":           "rm /d/tmp/x",
		"cd /data/local/tmp":             "cd /d/tmp",
		"cat '/data/local/tmp/a b' >x":   "cat '/d/tmp/a b' >x",
		"F=/data/local/tmp; ls \"$F\"":   "F=/d/tmp; ls \"$F\"",
		"/data/local/tmp/data/local/tmp": "/d/tmp/data/local/tmp",
		"ls /data/local/tmpfile":         "ls /data/local/tmpfile",
		"ls /mnt/data/local/tmp":         "ls /mnt/data/local/tmp",
		"ls /data/local":                 "ls /data/local",
		"":                               "",
	} {
		if got := replacePath(text, "/data/local/tmp", "/d/tmp"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	good := Options{Program: "x"}.withDefaults()
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Options){
		"no program":     func(o *Options) { o.Program = "" },
		"negative scale": func(o *Options) { o.Scale = -1 },
		"huge scale":     func(o *Options) { o.Scale = 1e5 },
		"no package":     func(o *Options) { o.Package = "x y" },
		"blank in dir":   func(o *Options) { o.Dir = "/tmp/a b" },
		"relative dir":   func(o *Options) { o.Dir = "tmp" },
		"tiny heap":      func(o *Options) { o.HeapMB = 1 },
		"huge heap":      func(o *Options) { o.HeapMB = 40000 },
	} {
		o := good
		change(&o)
		if err := o.check(); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
