package androidtext

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// DumpsysOptions holds the arguments of dumpsys (frameworks/native
// cmds/dumpsys).
type DumpsysOptions struct {
	// List (-l) prints the services; Help (--help) prints the usage.
	List, Help bool
	// Timeout is the maximum duration of a dump.
	Timeout time.Duration
	// Service is the service to dump, or empty for all services; Args are its
	// arguments.
	Service string
	Args    []string
}

// ParseDumpsys parses the arguments of dumpsys. If an argument is invalid,
// problem is the message that dumpsys prints to standard error.
func ParseDumpsys(api int, args []string) (o DumpsysOptions, problem string) {
	o.Timeout = 10 * time.Second
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		option := args[0]
		switch {
		case option == "-l":
			o.List = true
			return o, ""
		case option == "--help":
			o.Help = true
			return o, ""
		case (option == "--skip" || option == "--priority") && len(args) > 1:
		case (option == "-t" || option == "-T") && len(args) > 1:
			unit := time.Second
			if option == "-T" {
				unit = time.Millisecond
			}
			n, err := strconv.Atoi(args[1])
			if err != nil || n <= 0 || n > 1<<20 {
				return o, fmt.Sprintf("Error: invalid timeout: %s\n", args[1])
			}
			o.Timeout = time.Duration(n) * unit
		default:
			return o, DumpsysHelp(api)
		}
		args = args[2:]
	}
	if len(args) > 0 {
		o.Service, o.Args = args[0], args[1:]
	}
	return o, ""
}

// DumpsysHelp returns the usage message of dumpsys.
func DumpsysHelp(api int) string {
	if api < 28 {
		return `usage: dumpsys
         To dump all services.
or:
       dumpsys [-t TIMEOUT] [--help | -l | --skip SERVICES | SERVICE [ARGS]]
         --help: shows this help
         -l: only list services, do not dump them
         -t TIMEOUT: TIMEOUT to use in seconds instead of default 10 seconds
         --skip SERVICES: dumps all services but SERVICES (comma-separated list)
         SERVICE [ARGS]: dumps only service SERVICE, optionally passing ARGS to it
`
	}
	return `usage: dumpsys
         To dump all services.
or:
       dumpsys [-t TIMEOUT] [--priority LEVEL] [--help | -l | --skip SERVICES | SERVICE [ARGS]]
         --help: shows this help
         -l: only list services, do not dump them
         -t TIMEOUT_SEC: TIMEOUT to use in seconds instead of default 10 seconds
         -T TIMEOUT_MS: TIMEOUT to use in milliseconds instead of default 10 seconds
` + "         --proto: filter services that support dumping data in proto format. Dumps" +
		"               will be in proto format.\n" +
		`         --priority LEVEL: filter services based on specified priority
               LEVEL must be one of CRITICAL | HIGH | NORMAL
         --skip SERVICES: dumps all services but SERVICES (comma-separated list)
         SERVICE [ARGS]: dumps only service SERVICE, optionally passing ARGS to it
`
}

// DumpsysServices returns the list that dumpsys -l prints.
func DumpsysServices(names []string) string {
	var b strings.Builder
	b.WriteString("Currently running services:\n")
	for _, name := range names {
		b.WriteString("  " + name + "\n")
	}
	return b.String()
}

// NoService returns the error that dumpsys prints for a service that is not
// running.
func NoService(name string) string { return fmt.Sprintf("Can't find service: %s\n", name) }

// DumpTimeout returns the message that dumpsys prints if a service does not
// respond in time.
func DumpTimeout(service string, timeout time.Duration) string {
	return fmt.Sprintf("\n*** SERVICE '%s' DUMP TIMEOUT (%dms) EXPIRED ***\n\n", service, timeout.Milliseconds())
}
