//go:build linux

// Command hostdevice makes this machine act as a phone for the adb server, for
// tests:
//
//	hostdevice serve --listen 127.0.0.1:5601 --scale 20
//	adb connect 127.0.0.1:5601
//
// It also fetches Android's own adbd, which some tests need:
//
//	hostdevice fetch ~/.cache/leakgate/adbd
//
// If it is run under the name of a phone's command (getprop, am, dumpsys, ...),
// it acts as that command inside the device's shell.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/aosp"
	"github.com/leakgate/leakgate/internal/hostdevice/nest"
	"github.com/leakgate/leakgate/internal/hostdevice/shim"
)

func main() { os.Exit(run(os.Args)) }

func run(args []string) int {
	if name := filepath.Base(args[0]); shim.IsCommand(name) {
		return shim.Run(args)
	}
	verb := ""
	if len(args) > 1 {
		verb = args[1]
	}
	switch verb {
	case "serve":
		return serve(args[2:])
	case "fetch":
		return fetch(args[2:])
	// Only the device itself runs launch, keep and nest.
	case "launch":
		return shim.Launch(args[2:])
	case "keep":
		return shim.WaitForEOF(args[2:])
	case "nest":
		return nest.Run(args[2:])
	}
	fmt.Fprintln(os.Stderr,
		"usage: hostdevice serve [--listen 127.0.0.1:5601] [--scale 20] [...]; see hostdevice serve --help\n       "+
			"hostdevice fetch DIR")
	return 2
}

// fetchWithin is the timeout of a fetch, long enough for a slow connection.
const fetchWithin = 5 * time.Minute

// fetch unpacks Android's own adbd into a directory.
func fetch(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "usage: hostdevice fetch DIR")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	daemon, err := aosp.Fetch(ctx, args[0])
	if err != nil {
		fmt.Fprintf(os.Stderr, "hostdevice: %v\n", err)
		return 1
	}
	fmt.Printf("adbd %s in %s\n", daemon.Version, daemon.Root)
	return 0
}

func serve(args []string) int {
	var o hostdevice.Options
	flags := flag.NewFlagSet("hostdevice serve", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:5601",
		"`address` for the adb server to connect to; anyone who can connect to it gets a shell")
	flags.Float64Var(&o.Scale, "scale", 1, "device seconds per real second")
	flags.StringVar(&o.Model, "model", "", "ro.product.model (default Host Device)")
	flags.IntVar(&o.API, "api", 0, "ro.build.version.sdk (default 34)")
	flags.StringVar(&o.BuildType, "build-type", "", "user, userdebug or eng (default userdebug)")
	flags.StringVar(&o.Package, "package", "", "name of the app (default com.example.leaky)")
	flags.BoolVar(&o.Released, "released", false, "make the app not debuggable")
	flags.StringVar(&o.Dir, "dir", "",
		"parent `directory` of the device's files (default: the directory for temporary files)")
	flags.IntVar(&o.ShellUID, "shell-uid", 0,
		"`uid` of the shell; requires root (default: the current user, or 2000 for root)")
	flags.IntVar(&o.AppUID, "app-uid", 0,
		"`uid` of the app; requires root (default: the current user, or 10123 for root)")
	flags.BoolVar(&o.Root, "root", false,
		"run the shell and the app as root if root runs this: every user of this machine who can connect to the "+
			"address then has root access")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "hostdevice serve: unexpected argument %q\n", flags.Arg(0))
		return 2
	}
	if err := refuseRoot(flags, o); err != nil {
		fmt.Fprintf(os.Stderr, "hostdevice serve: %v\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := serveUntil(ctx, *listen, o); err != nil {
		fmt.Fprintf(os.Stderr, "hostdevice: %v\n", err)
		return 1
	}
	return 0
}

// refuseRoot rejects user 0 unless --root is given, because an unset variable
// or a mistake must not give others root access to this machine.
func refuseRoot(flags *flag.FlagSet, o hostdevice.Options) (err error) {
	flags.Visit(func(f *flag.Flag) {
		isUser := f.Name == "shell-uid" || f.Name == "app-uid"
		if uid, perr := strconv.Atoi(f.Value.String()); isUser && perr == nil && uid <= 0 && !o.Root {
			err = fmt.Errorf("--%s %d: want the UID of a user on a phone, such as 2000; UID 0 requires --root",
				f.Name, uid)
		}
	})
	return err
}

// serveUntil serves a device until ctx is done.
func serveUntil(ctx context.Context, listen string, o hostdevice.Options) (err error) {
	if o.Program, err = os.Executable(); err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	device, err := hostdevice.New(o)
	if err != nil {
		return err
	}
	daemon := adbd.NewDaemon(device)
	defer func() { err = errors.Join(err, daemon.Close(), device.Close()) }()
	if err := daemon.Listen(listen); err != nil {
		return err
	}
	// Scripts wait for this line.
	fmt.Printf("listening on %s as %s\n", daemon.Addr(), device.Dir())
	<-ctx.Done()
	return nil
}
