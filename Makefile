# make test   installs what the tests need (as root; else it prints the command) and runs every check
# make e2e    all tests at full length (about an hour)
# make soak   a day of random faults in bubbles, ten minutes of them behind the real adb server (SOAK=1h for more)
# make flakes repeats the tests that keep real time, and those in bubbles, on a machine that is busy and one that stalls
# make fuzz   every fuzz target for FUZZTIME each
# make bench  the benchmarks, with allocations
# make calibrate  how often each policy raises an alarm, and the gate fails: measures the tables of docs/detector.md and docs/gate-calibration.md anew and holds them to their bars
# make release-snapshot  what a release has, in dist/
# make bench-heap  heap analysis beside its peers: measures the tables of docs/performance.md anew and holds them to their bars

SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# Tools and what tests fetch lie outside of the clone, and no path of it is in what is built:
# the next clone finds all of it again.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/leakgate
BIN := $(CACHE)/bin
export GOFLAGS := -trimpath $(shell go env GOFLAGS)
GOLANGCI := v2.15.0
GOVULNCHECK := v1.9.0
ACTIONLINT := v1.7.12
GORELEASER := v2.15.1
CYCLONEDX := v1.10.0
FUZZTIME ?= 30s
SOAK ?= 10m
# Debian's packages of what stands in for a phone in the tests, of what gets Shark, of what renames
# classes as R8 does, and of what checks and runs the steps of the action.
PACKAGES := adb openjdk-17-jdk-headless maven proguard-cli shellcheck curl

export LEAKGATE_TESTDATA ?= $(abspath ../shared/testdata)

.PHONY: test check unit real e2e soak flakes fuzz fuzz-smoke bench bench-heap calibrate packages adbd tools vulnerabilities release-snapshot clean

test: packages check unit real fuzz-smoke

# gofmt, the linters (govet and staticcheck are among them), vet for Windows, tidy modules,
# known vulnerabilities. make e2e vets for macOS, which has few files of its own.
check: tools
	@test -z "$$(gofmt -l .)" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
	$(BIN)/golangci-lint run --allow-parallel-runners ./...
	cd tools && $(BIN)/golangci-lint run --allow-parallel-runners ./...
	GOOS=windows go vet ./...
	GOOS=windows go -C tools vet ./...
	go mod tidy -diff
	go -C tools mod tidy -diff
	@$(MAKE) --no-print-directory vulnerabilities

# govulncheck fetches itself and its database; where that cannot be, the check says so.
vulnerabilities:
	@if ! [ -x $(BIN)/govulncheck ] && ! out=$$(GOBIN=$(BIN) go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) 2>&1); then \
	  echo "govulncheck: cannot be installed from here; not checked: $$(tail -n 1 <<<"$$out")"; exit 0; fi; \
	out=$$($(BIN)/govulncheck ./... 2>&1) && echo "govulncheck: none" || { \
	  if grep -qE 'fetching vulnerabilities|dial tcp|no such host|Forbidden|connection refused|i/o timeout' <<<"$$out"; \
	  then echo "govulncheck: its database cannot be reached from here; not checked"; \
	  else echo "$$out"; exit 1; fi; }

# One goroutine does the work of these: the race detector has nothing to see there and
# takes ten times the time; a test of internal/archtest holds it. What reads dumps in
# parallel for them is internal/analysis/heap, and the goroutines of analysis run in cmd/leakgate;
# make e2e watches what they call, too.
# TEXTS read and write texts and dumps, and share nothing with anybody.
TEXTS := ./internal/androidtext ./internal/capture/procfs ./internal/capture/dumpsys ./internal/analysis/hprof ./internal/analysis/android ./internal/analysis/footprint ./internal/analysis/growth ./internal/analysis/leakcanary ./internal/analysis/mapping ./internal/analysis/trace ./internal/hproftest ./internal/sharktest ./internal/jars
SERIAL := $(TEXTS) ./analysis ./detector ./internal/detector/limit ./internal/harness/config ./internal/harness/gate ./internal/harness/ledger ./internal/reporters/comparison

# These have many goroutines and tests of their own for them. Where others use them, it is
# not their memory that the race detector must watch: that would be a third of the time.
WATCHED_APART := ./internal/analysis/heap ./internal/analysis/spool ./internal/androidsim ./internal/ksh ./internal/adbd/...

# A program that the race detector is in sleeps for a second when it ends, to see more.
export GORACE := atexit_sleep_ms=0 $(GORACE)

# unwatched has go build packages as without the race detector (the last -race counts);
# channels and locks that they use are seen all the same.
unwatched = $(foreach p,$1,-gcflags=$p=-race=false)

# What the race detector has no room for: giants and ten thousand graphs in internal/analysis/heap,
# weeks, floods and many seeds in harness/monitor, many runs in internal/calibrate. These tests ask whether it is there, so
# they run again without; a test of internal/archtest holds the list.
AGAIN := ^Test(AccumulationsByBruteForce|AccumulationsInAnyOrder|AssertLiveByRobust|CancelGivesBack|Claims|ClassTreeByBruteForce|CostByBruteForce|Damage|Duplicates|DuplicatesApart|EachFault|FirstSampleWithManyPackages|GroupCostsByBruteForce|KnownRates|MarkWait|OneSegment|Order|Peak|RandomGraphs|RunReportAndReplayAgree|RunTorture|SecondDominators|Shapes|SharesByBruteForce|Smoke|Soak|Truncated|UnjudgedRunIsNotGreen|Week|WindowsAgree)$$

# The linters have vetted all of it. The engine's tests take longest, so they go first,
# beside the others. Nothing here is ever tried again: a test in a bubble that fails has
# found a bug.
UNIT := $(BIN)/testrun -budgets CONTRIBUTING.md -vet=off
# Test processes are short and produce much garbage: collecting it took a sixth of their CPU time.
unit: export GOGC := 400
unit: $(BIN)/testrun
	$(UNIT) -race $(call unwatched,mvdan.cc/sh/v3/... github.com/klauspost/compress/... $(TEXTS) $(WATCHED_APART)) -timeout 25m ./harness/monitor $$(go list ./... | grep -vxF "$$(go list $(SERIAL) $(WATCHED_APART))")
	$(UNIT) -race $(call unwatched,mvdan.cc/sh/v3/... github.com/klauspost/compress/... $(TEXTS)) -timeout 15m $(WATCHED_APART)
	$(UNIT) -timeout 15m $(SERIAL)
	$(UNIT) -timeout 15m -run '$(AGAIN)' ./harness/monitor ./internal/analysis/heap ./internal/calibrate
	cd tools && $(BIN)/testrun -vet=off -timeout 10m ./...

# Tests that keep real time or meet real parts: few and short. One that fails by chance is
# tried again, and named in the log.
REAL = $(shell grep -rlE --include='*_test.go' '^//go:build .*realtime' . | xargs grep -LE '^//go:build .*e2e')
real: $(BIN)/testrun
	$(BIN)/testrun -seconds 90 -retry $(CACHE)/flakes.txt -vet=off -tags realtime -p 1 -timeout 5m -run "^($$(grep -hoE '^func Test\w+' $(REAL) | cut -c 6- | paste -sd '|'))$$" $$(dirname $(REAL) | sort -u)

# All of it, at full length: each line end of large texts, for one.
e2e: packages tools
	GOOS=darwin go vet ./...
	LEAKGATE_E2E=long go test -tags realtime,e2e -count=1 -timeout 90m ./...
	go test -race -count=1 -timeout 20m -run '^Test(Garbage|SharedSuspects|Suspects|ThreadLocals|Shark.*)$$' ./analysis

# On a clock that waits for nobody, and for SOAK behind the real adb server.
soak: packages
	go test -race -count=50 -timeout 1h -run '^TestSoak$$' ./harness/monitor
	LEAKGATE_SOAK=$(SOAK) go test -tags realtime,e2e -race -count=1 -timeout 24h -run '^TestRealSoak$$' -v ./harness/monitor

flakes: packages
	.ci/flakes

# One program for each package, and its targets from it one by one: go test would link one
# for each target. What a target finds is kept where go test keeps it.
fuzz fuzz-smoke:
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; kept=$$(go env GOCACHE)/fuzz; \
	packages=$$(grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n 1 dirname | sort -u); \
	if [ $@ = fuzz-smoke ]; then packages=$$(.ci/due $$packages); fi; \
	for p in $$packages; do \
	  go test -c -fuzz . -o "$$dir/fuzz.test" "$$p"; \
	  path=$$(go list "$$p"); targets=$$(cd "$$p" && "$$dir/fuzz.test" -test.list '^Fuzz'); \
	  for t in $$targets; do \
	    echo "fuzz $$t in $$p for $(FUZZTIME)"; \
	    (cd "$$p" && "$$dir/fuzz.test" -test.run '^$$' -test.fuzz "^$$t\$$" -test.fuzztime $(FUZZTIME) -test.fuzzminimizetime 10x -test.fuzzcachedir "$$kept/$$path"); \
	  done; done

# A bounded number of inputs for the targets of packages that changed, and for a seventh of
# the others each day: a target that is broken is seen soon.
fuzz-smoke: FUZZTIME = 500x

bench:
	go test -run '^$$' -bench . -benchmem ./...

# A quarter of an hour on a quiet machine, more where peers must be built first. A part
# of it, without a change to the page: go -C tools run ./heapbench -only '^mid'
bench-heap:
	go -C tools run ./heapbench -check -write ../docs/performance.md $(HEAPBENCH) >/dev/null

# Some minutes on all cores, and the same figures on every machine. A part of it, without a change to the page:
# go run ./internal/calibrate -tables alarms -only 'AR 0.9' -runs 200 -check
calibrate:
	go run ./internal/calibrate -check -write docs/detector.md >/dev/null
	LEAKGATE_REQUIRE=all go test -count=1 -timeout 60m -parallel 4 -run '^TestCalibration$$' ./internal/harness/gatecalibrate -args -calibrate -write $(CURDIR)/docs/gate-calibration.md -raw $(CACHE)/gate-pairs.tsv

packages: adbd
	@missing=; \
	command -v adb >/dev/null || missing="$$missing adb"; \
	command -v javac >/dev/null || missing="$$missing openjdk-17-jdk-headless"; \
	command -v mvn >/dev/null || missing="$$missing maven"; \
	command -v proguard >/dev/null || missing="$$missing proguard-cli"; \
	command -v shellcheck >/dev/null || missing="$$missing shellcheck"; \
	command -v curl >/dev/null || missing="$$missing curl"; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	else echo "tests that need them are skipped; install:$$missing   (sudo apt-get install -y$$missing)"; fi

# Android's own adbd, which only a later Debian has: unpacked, never installed.
adbd: $(CACHE)/adbd/version
$(CACHE)/adbd/version:
	@[ "$$(uname -s)" = Linux ] || exit 0; go run ./internal/hostdevice/cmd/hostdevice fetch $(CACHE)/adbd || echo "tests with Android's own adbd are skipped"

tools: $(BIN)/golangci-lint-$(GOLANGCI) $(BIN)/actionlint-$(ACTIONLINT) $(BIN)/goreleaser-$(GORELEASER) $(BIN)/cyclonedx-gomod-$(CYCLONEDX)

$(BIN)/golangci-lint-$(GOLANGCI):
	GOBIN=$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI) && touch $@

$(BIN)/actionlint-$(ACTIONLINT):
	GOBIN=$(BIN) go install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT) && touch $@

$(BIN)/goreleaser-$(GORELEASER):
	GOBIN=$(BIN) go install github.com/goreleaser/goreleaser/v2@$(GORELEASER) && touch $@

$(BIN)/cyclonedx-gomod-$(CYCLONEDX):
	GOBIN=$(BIN) go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX) && touch $@

# Everything that a release has, in dist/; publishes nothing.
release-snapshot: tools
	PATH=$(BIN):$$PATH goreleaser release --snapshot --clean --skip=docker
	cd dist && sha256sum -c checksums.txt

.PHONY: $(BIN)/testrun
$(BIN)/testrun:
	@go -C tools build -o $@ ./testrun

clean:
	rm -rf leakgate leakgate-runs
