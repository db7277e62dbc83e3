// Command leakgate finds memory leaks in Android apps while tests run.
package main

import (
	"os"
)

func main() {
	os.Exit(call(os.Args[1:],
		console{
			in: os.Stdin, out: readable(os.Stdout), err: newSanitizer(os.Stderr), getenv: os.LookupEnv,
			environ: os.Environ(),
		}))
}
