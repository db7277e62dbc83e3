package suite

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// mark notifies the test that started the suite that a spec has reached a
// certain point.
func mark(name, text string) {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(os.Getenv("SUITE_MARKS"), name), []byte(text), 0o600)).To(Succeed())
}

// pause sets a mark that contains the pid of the process, and waits until the
// test releases the spec.
func pause(ctx context.Context, name string) {
	GinkgoHelper()
	mark(name, strconv.Itoa(os.Getpid()))
	for ctx.Err() == nil {
		if _, err := os.Stat(filepath.Join(os.Getenv("SUITE_MARKS"), name+".go")); err == nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}
