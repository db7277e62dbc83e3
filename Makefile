# make test   installs the requirements of the tests (as root; otherwise it prints the command) and runs every check
# make e2e    all tests at full length (about an hour)
# make soak   a day of random faults in bubbles, ten minutes of them behind the real adb server (SOAK=1h for more)
# make flakes repeats the tests that depend on real time, and those in bubbles, on a busy and on a stalling machine
# make fuzz   every fuzz target for FUZZTIME each
# make bench  the benchmarks, with allocations
# make calibrate  how often each policy raises an alarm, and the gate fails: measures the tables of docs/detector.md and docs/gate-calibration.md again and checks their bars
# make release-snapshot  the files of a release, in dist/
# make bench-heap  heap analysis compared with other tools: measures the tables of docs/performance.md again and checks their bars

SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# Tools and downloads of the tests are outside of the clone, and builds do not contain its path,
# so that the next clone can reuse them.
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
# Debian packages: those that replace a phone in the tests, download Shark, rename classes like R8,
# and check and run the steps of the action.
PACKAGES := adb openjdk-17-jdk-headless maven proguard-cli shellcheck curl

export LEAKGATE_TESTDATA ?= $(abspath ../shared/testdata)

.PHONY: test check unit real e2e soak flakes fuzz fuzz-smoke bench bench-heap calibrate packages adbd tools vulnerabilities release-snapshot clean

test: packages check unit real fuzz-smoke

# gofmt, phrases and long lines, the linters (govet and staticcheck are among them), vet for Windows, tidy modules,
# known vulnerabilities. make e2e vets for macOS, which has few files of its own.
check: tools
	@test -z "$$(gofmt -l .)" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
	@go -C tools run ./wordcheck ..
	$(BIN)/golangci-lint run --allow-parallel-runners ./...
	cd tools && $(BIN)/golangci-lint run --allow-parallel-runners ./...
	GOOS=windows go vet ./...
	GOOS=windows go -C tools vet ./...
	go mod tidy -diff
	go -C tools mod tidy -diff
	@$(MAKE) --no-print-directory vulnerabilities

# govulncheck downloads itself and its database; if that fails, the check says so.
vulnerabilities:
	@if ! [ -x $(BIN)/govulncheck ] && ! out=$$(GOBIN=$(BIN) go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) 2>&1); then \
	  echo "govulncheck: cannot be installed from here; not checked: $$(tail -n 1 <<<"$$out")"; exit 0; fi; \
	out=$$($(BIN)/govulncheck ./... 2>&1) && echo "govulncheck: none" || { \
	  if grep -qE 'fetching vulnerabilities|dial tcp|no such host|Forbidden|connection refused|i/o timeout' <<<"$$out"; \
	  then echo "govulncheck: its database cannot be reached from here; not checked"; \
	  else echo "$$out"; exit 1; fi; }

# These packages use one goroutine: the race detector can find nothing there and takes ten
# times as long; a test of internal/archtest checks that. Their dumps are read in parallel by
# internal/analysis/heap, and the goroutines of analysis run in cmd/leakgate;
# make e2e instruments the callees as well.
# TEXTS read and write texts and dumps, and share no memory.
TEXTS := ./internal/androidtext ./internal/capture/procfs ./internal/capture/dumpsys ./internal/analysis/hprof ./internal/analysis/android ./internal/analysis/footprint ./internal/analysis/growth ./internal/analysis/leakcanary ./internal/analysis/mapping ./internal/analysis/trace ./internal/hproftest ./internal/sharktest ./internal/jars
SERIAL := $(TEXTS) ./analysis ./detector ./internal/detector/limit ./internal/harness/config ./internal/harness/gate ./internal/harness/ledger ./internal/reporters/comparison

# These have many goroutines and tests of their own for them. In tests of other packages the race
# detector does not watch them, which would take a third of the time.
WATCHED_APART := ./internal/analysis/heap ./internal/analysis/spool ./internal/androidsim ./internal/ksh ./internal/adbd/...

# A program with the race detector sleeps for a second at its end, to detect more.
export GORACE := atexit_sleep_ms=0 $(GORACE)

# unwatched makes go build packages without the race detector (the last -race counts);
# it still sees the channels and locks that they use.
unwatched = $(foreach p,$1,-gcflags=$p=-race=false)

# Tests that are too large for the race detector: huge dumps and ten thousand graphs in internal/analysis/heap,
# weeks, floods and many seeds in harness/monitor, many runs in internal/calibrate. They do less under it and
# run again without it; a test of internal/archtest checks the list.
AGAIN := ^Test(AccumulationsByBruteForce|AccumulationsInAnyOrder|AssertLiveByRobust|CancelGivesBack|Claims|ClassTreeByBruteForce|CostByBruteForce|Damage|Duplicates|DuplicatesApart|EachFault|FirstSampleWithManyPackages|GroupCostsByBruteForce|KnownRates|MarkWait|OneSegment|Order|Peak|RandomGraphs|RunReportAndReplayAgree|RunTorture|SecondDominators|Shapes|SharesByBruteForce|Smoke|Soak|Truncated|UnjudgedRunIsNotGreen|Week|WindowsAgree)$$

# The linters have vetted everything. The engine's tests take longest, so they start first,
# beside the others. No test is retried here: a test that fails in a bubble has found a bug.
UNIT := $(BIN)/testrun -budgets CONTRIBUTING.md -vet=off
# Test processes are short and produce much garbage: collecting it took a sixth of their CPU time.
unit: export GOGC := 400
unit: $(BIN)/testrun
	$(UNIT) -race $(call unwatched,mvdan.cc/sh/v3/... github.com/klauspost/compress/... $(TEXTS) $(WATCHED_APART)) -timeout 25m ./harness/monitor $$(go list ./... | grep -vxF "$$(go list $(SERIAL) $(WATCHED_APART))")
	$(UNIT) -race $(call unwatched,mvdan.cc/sh/v3/... github.com/klauspost/compress/... $(TEXTS)) -timeout 15m $(WATCHED_APART)
	$(UNIT) -timeout 15m $(SERIAL)
	$(UNIT) -timeout 15m -run '$(AGAIN)' ./harness/monitor ./internal/analysis/heap ./internal/calibrate
	cd tools && $(BIN)/testrun -vet=off -timeout 10m ./...

# Tests that depend on real time or use real components: few and short. One that fails is
# retried once, and named in the log.
REAL = $(shell grep -rlE --include='*_test.go' '^//go:build .*realtime' . | xargs grep -LE '^//go:build .*e2e')
real: $(BIN)/testrun
	$(BIN)/testrun -seconds 90 -retry $(CACHE)/flakes.txt -vet=off -tags realtime -p 1 -timeout 5m -run "^($$(grep -hoE '^func Test\w+' $(REAL) | cut -c 6- | paste -sd '|'))$$" $$(dirname $(REAL) | sort -u)

# Everything at full length, such as each line end of large texts.
e2e: packages tools
	GOOS=darwin go vet ./...
	LEAKGATE_E2E=long go test -tags realtime,e2e -count=1 -timeout 90m ./...
	go test -race -count=1 -timeout 20m -run '^Test(Garbage|RecordedGarbage|SharedSuspects|Suspect.*|ThreadsOfThreadLocals|Shark.*)$$' ./analysis

# In virtual time, and for SOAK behind the real adb server.
soak: packages
	go test -race -count=50 -timeout 1h -run '^TestSoak$$' ./harness/monitor
	LEAKGATE_SOAK=$(SOAK) go test -tags realtime,e2e -race -count=1 -timeout 24h -run '^TestRealSoak$$' -v ./harness/monitor

flakes: packages
	.ci/flakes

# One program for each package runs its targets one by one: go test would link one for each
# target. New inputs are kept where go test keeps them.
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
# the others each day, so that a broken target is soon found.
fuzz-smoke: FUZZTIME = 500x

bench:
	go test -run '^$$' -bench . -benchmem ./...

# A quarter of an hour on an idle machine, more if peers must be built first. To run a part
# without changing the page: go -C tools run ./heapbench -only '^mid'
bench-heap:
	go -C tools run ./heapbench -check -write ../docs/performance.md $(HEAPBENCH) >/dev/null

# Some minutes on all cores, and the same figures on every machine. To run a part without changing the page:
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

# Android's own adbd, which only a later Debian has: unpacked, not installed.
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

# All files of a release, in dist/; publishes nothing.
release-snapshot: tools
	PATH=$(BIN):$$PATH goreleaser release --snapshot --clean --skip=docker
	cd dist && sha256sum -c checksums.txt

.PHONY: $(BIN)/testrun
$(BIN)/testrun:
	@go -C tools build -o $@ ./testrun

clean:
	rm -rf leakgate leakgate-runs
