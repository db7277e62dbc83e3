// Package suite is a Ginkgo suite that drives a simulated phone. The tests of
// package harness run it in child processes. SUITE names the scenario of a run;
// only the specs of that scenario are built.
package suite

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture/adb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Shop suite")
}

// scenario builds the specs of a scenario if the run selects it.
func scenario(name string, build func()) bool {
	if os.Getenv("SUITE") == name {
		build()
	}
	return true
}

// inOrder builds the specs of a run in a container, because Ginkgo shuffles
// top-level specs.
func inOrder(name string, build func()) bool {
	return scenario(name, func() { Describe("app", build) })
}

// try runs a command on the device and returns its output.
func try(ctx context.Context, command string) (string, error) {
	client, err := adb.NewClient(adb.Options{NoStart: true})
	if err != nil {
		return "", err
	}
	device, err := client.Select(ctx, "")
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	_, err = device.Shell(ctx, command, &out, &out)
	return strings.TrimSpace(out.String()), err
}

// shell runs a command on the device.
func shell(command string) string {
	GinkgoHelper()
	ctx, done := context.WithTimeout(context.Background(), 20*time.Second)
	defer done()
	out, err := try(ctx, command)
	Expect(err).NotTo(HaveOccurred(), out)
	Expect(out).NotTo(ContainSubstring("Error"))
	return out
}

func open(screen string) { GinkgoHelper(); shell("am start -W -n com.cart/." + screen) }

func back() { GinkgoHelper(); shell("input keyevent BACK") }

// visit opens and closes a screen.
func visit(screen string) { GinkgoHelper(); open(screen); back() }

func launch() { GinkgoHelper(); open("MainActivity") }

func stop() { GinkgoHelper(); shell("am force-stop com.cart") }

// attempt returns the number of the current attempt of the spec.
func attempt() int { return CurrentSpecReport().NumAttempts }
