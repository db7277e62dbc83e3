module github.com/leakgate/leakgate

go 1.26.0

require (
	golang.org/x/term v0.47.0
	gopkg.in/yaml.v3 v3.0.1
	mvdan.cc/sh/v3 v3.14.1
)

require golang.org/x/sys v0.49.0 // indirect
