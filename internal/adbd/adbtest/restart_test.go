package adbtest

import "testing"

func TestRestart(t *testing.T) {
	s := StartServer(t)
	for range 2 {
		s.Kill()
		if _, err := s.Ask("host:version"); err == nil {
			t.Error("the killed server still responds")
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Ask("host:version"); err != nil {
			t.Error(err)
		}
	}
}
