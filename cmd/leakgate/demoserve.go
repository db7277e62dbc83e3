package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/spf13/pflag"
)

// serving holds the flags of a demo that serves its phone.
type serving struct {
	serve       bool
	port, speed int
}

const (
	// serveSpeed is the default speed, at which two hours of phone time take
	// two minutes.
	serveSpeed = 60
	// maxServeSpeed leaves 75 ms of wall-clock time for each sample, because a
	// sample is taken every 30 s of phone time.
	maxServeSpeed = 400
	serveHost     = "127.0.0.1"
)

func (s *serving) declare(flags *pflag.FlagSet) {
	flags.BoolVar(&s.serve, "serve", false, "serve the simulated phone through an adb server until Ctrl-C")
	flags.Var(numberUpTo(&s.port, 1, 1<<16-1, 5038), "port",
		"with --serve: port of the adb server; by default a free one")
	flags.Var(numberUpTo(&s.speed, 1, maxServeSpeed, serveSpeed), "speed",
		"with --serve: seconds on the phone per second of real time")
}

// numberUpTo returns a flag whose value is an integer within a range.
func numberUpTo(to *int, least, most, such int) *value {
	v := &value{placeholder: "N", parse: func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return invalid(text, fmt.Sprintf("an integer from %d to %d, such as %d", least, most, such))
		}
		*to = n
		return nil
	}}
	if *to != 0 {
		v.standard = strconv.Itoa(*to)
	}
	return v
}

// check rejects flags that have no effect: some flags require --serve, others
// exclude it.
func (s *serving) check(flags *pflag.FlagSet) error {
	if s.serve {
		for _, name := range []string{"out", "wait"} {
			if flags.Changed(name) {
				return fmt.Errorf("--%s has no effect with --serve, which does not run a test: remove one of them",
					name)
			}
		}
		return nil
	}
	for _, name := range []string{"port", "speed"} {
		if f := flags.Lookup(name); f.Changed {
			return fmt.Errorf("--%s needs --serve: write --serve --%[1]s %s", name, given(f))
		}
	}
	return nil
}

// given returns the value of a flag as the user wrote it.
func given(f *pflag.Flag) string {
	if v, ok := f.Value.(*value); ok && v.given != nil {
		return *v.given
	}
	return f.Value.String()
}

// run serves the phone until Ctrl-C, or until a client stops the server, as
// `adb kill-server` does.
func (s *serving) run(c console, seed uint64, asJSON bool) int {
	ctx, stop := untilInterrupt()
	defer stop()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(serveHost, strconv.Itoa(s.port)))
	if err != nil {
		c.problem("%v", listenError(err, s.port))
		return record.ExitNoDevice
	}
	phone := androidsim.ServedDemo(float64(s.speed), seed)
	server := adbd.NewServer(phone)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	code := exitOK
	if err := s.announce(c, listener.Addr().String(), phone, asJSON); err != nil {
		c.problem("print the address: %v", err)
		code = exitUsage
	} else {
		err = s.wait(ctx, c, ended)
		if err != nil {
			c.problem("serve the simulated phone: %v", err)
			code = record.ExitNoDevice
		}
	}
	if err := server.Close(); err != nil {
		c.problem("stop the simulated phone: %v", err)
	}
	return code
}

// wait returns when the user or a client has stopped the server, or the server
// has failed.
func (s *serving) wait(ctx context.Context, c console, ended <-chan error) error {
	select {
	case <-ctx.Done():
		c.note("stopped")
		return nil
	case err := <-ended:
		if err == nil {
			c.note("stopped by a client, for example with `adb kill-server`")
		}
		return err
	}
}

// listenError returns an error that explains what to do about a port that
// cannot be used.
func listenError(err error, port int) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("port %d of %s is in use: choose another --port, or omit it for a free one", port, serveHost)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("no permission to use port %d of %s: choose another --port, or omit it for a free one", port,
			serveHost)
	}
	return fmt.Errorf("serve the simulated phone: %w", err)
}

// served is the JSON description of a phone that is served.
type served struct {
	Address          string   `json:"address"`
	Serial           string   `json:"serial"`
	Packages         []string `json:"packages"`
	Instrumentations []string `json:"instrumentations"`
	TimeScale        int      `json:"time_scale"`
}

// announce prints how to reach the phone.
func (s *serving) announce(c console, address string, phone *androidsim.Phone, asJSON bool) error {
	serial := phone.Identity().Serial
	if asJSON {
		return printJSON(c.out, served{address, serial, phone.Packages(), phone.Instrumentations(), s.speed})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Serving the simulated phone %s on %s. In another shell:\n\n", serial, address)
	for _, line := range exports(c, address) {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	fmt.Fprintf(&b, `  leakgate watch --process com.shop --for 2h --stand-in
  adb shell am instrument -w %s
  adb shell am start -n com.cart/.CheckoutActivity
  adb shell input keyevent BACK

com.shop leaks continuously; 2 hours on the phone pass in %s. com.cart is for test
suites: it leaks a CheckoutActivity each time one is closed. An app is stopped when its
tests end, as on a real phone; am start restarts it. Press Ctrl-C to stop the phone.
`, phone.Instrumentations()[0], text.Span(2*3600/float64(s.speed)))
	_, err := fmt.Fprint(c.out, b.String())
	return err
}

// exports returns the shell commands that direct leakgate and adb to the
// server. Before they set the port, they unset ADB_SERVER_SOCKET, the address
// and the serial: if these variables are set in this shell, they are probably
// also set in the shell where the commands are run.
func exports(c console, address string) []string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		port = address
	}
	set, unset := "export %s=%s", "unset %s"
	if runtime.GOOS == "windows" {
		set, unset = `$env:%s = "%s"`, `Remove-Item Env:%s`
	}
	var lines []string
	for _, name := range []string{"ADB_SERVER_SOCKET", "ANDROID_ADB_SERVER_ADDRESS", "ANDROID_SERIAL"} {
		if c.variable(name) != "" {
			lines = append(lines, fmt.Sprintf(unset, name))
		}
	}
	return append(lines, fmt.Sprintf(set, "ANDROID_ADB_SERVER_PORT", port))
}
