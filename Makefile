# floodproof. `make help` lists what there is; each target's text stands behind its name.
SHELL := /bin/bash
.DEFAULT_GOAL := help

FLOODPROOF := bin/floodproof
VERSION    := $(shell git describe --tags --always --dirty 2>/dev/null)
COMMIT     := $(shell git rev-parse --short=12 HEAD 2>/dev/null)
# Both programs carry it: one runs the other only if it is of the same build.
STAMP      := -X main.version=$(VERSION) -X main.commit=$(COMMIT)

# What to play, in this order, and on which queue backend (the embedded default if empty).
SCENARIOS ?= 10k-day 1m-day
BACKEND   ?=
# Which families of faults make chaos plays (all if empty).
FAMILIES  ?=
# How long each fuzz target and each benchmark runs.
FUZZTIME  ?= 30s
BENCHTIME ?= 1s
# The packages that test, perf and fuzz look at.
PACKAGES  ?= ./...
# The package whose tests play real runs: they measure, so they come last, alone, and without the race detector.
RUNS      := floodproof/bench
# The tests against the providers' own libraries: a module of its own, with what they drag in. They run when everything is tested.
OFFICIAL  := loadgen/provider/official

# Tests that take minutes: runs of pipelines that are broken on purpose, clusters whose leaders die in turn, power cuts of real brokers, contracts of weaker variants. They come
# by themselves and without the race detector, so that the others can be run often.
LONG := TestContractOnReplicas|TestEveryLeaderKilledInTurn|TestFailover$$|TestNothingIsAcknowledgedAlone
LONG := $(LONG)|TestContract/(NORMAL|asynchronous|fifo)|TestFullDisk|TestOutagesMutants|Test(NATS|Postgres|Redis)(Elects|.*OnTwoNodes|StandbyTakesOver|ReplicaTakesOver)
LONG := $(LONG)|Test(NATS|Postgres|Redis)Power|TestRabbitMQKilled|TestRedisSlowSync|TestTheCutBites|TestDebounceStorm|TestServerKilled
LONG := $(LONG)|TestMutants/(forgets-steps|unfinished|no-debounce|old-version-wins|forgets-duplicates)|TestLaneMutants|TestCrashPoints|TestMachineFaults|TestPartitionLeavesNoRule|TestUnsynced|TestScripts/run_matrix

# The race detector needs cgo, and that a C compiler. Everything else is pure Go. SQLite is C that was translated: it keeps its data outside of Go's memory, which the detector does
# not watch, and is four times as slow when each of its accesses asks.
CC_FOUND  := $(shell command -v "$$(go env CC)" 2>/dev/null)
RACE      := $(if $(CC_FOUND),-race '-gcflags=modernc.org/...=-race=false')

# What is built, what is tested without the race detector and what is linted share one compilation. With it, another one is shared with a `go test -race` typed by hand.
export GOFLAGS := -trimpath $(GOFLAGS)

# Pinned: a new release must not turn a build red. `go run` keeps it out of go.mod.
# Its cache knows files by what is in them, not by where they are, and reports what it found in another clone: each clone has its own.
GOLANGCI  := GOLANGCI_LINT_CACHE=$(CURDIR)/bin/lint go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo '  BACKEND=name SCENARIOS="a b" make bench | FUZZTIME=5m make fuzz | PACKAGES=./loadgen/... make test perf'

.PHONY: build
build: ## build bin/floodproof, and beside it its small receivers and workers, and what runs brokers in containers
	CGO_ENABLED=0 go build -buildvcs=false -ldflags '$(STAMP)' -o $(FLOODPROOF) ./bench/floodproof
	CGO_ENABLED=0 go build -buildvcs=false -ldflags '$(STAMP)' -o bin/floodproof-node ./bench/floodproof-node
	CGO_ENABLED=0 go build -buildvcs=false -o bin/floodproof-container ./bench/floodproof-container

.PHONY: bench
bench: build ## play the reference days (10k-day, then 1m-day) and judge them
	@for scenario in $(SCENARIOS); do \
		$(FLOODPROOF) run $(if $(BACKEND),--backend $(BACKEND)) "$$scenario" || exit $$?; \
	done

.PHONY: smoke
smoke: ## play the smallest day with the classic faults, in about half a minute
	@$(MAKE) --no-print-directory bench SCENARIOS=smoke

.PHONY: chaos
chaos: build ## play every family of faults on every backend found, and show who survives what (about 45 s a cell)
	@$(FLOODPROOF) run --all-faults $(if $(BACKEND),--backend $(BACKEND)) $(FAMILIES)

.PHONY: servers
servers: ## install redis, postgresql and rabbitmq (Debian, Ubuntu), and start none of them
	@.ci/servers

.PHONY: compare
compare: build ## play the same day on every backend found, and put them beside each other (ROUNDS=3)
	@$(FLOODPROOF) compare --rounds $(or $(ROUNDS),3) $(if $(BACKEND),--backend $(BACKEND))

.PHONY: test
test: ## run the test suite, but for what make long runs, with the race detector where a C compiler is found
	@$(if $(RACE),,echo 'no C compiler found: testing without the race detector (install gcc or clang for it)' >&2)
	@set -o pipefail; { \
		packages=$$(go list $(PACKAGES) | grep -vx '$(RUNS)'); [ -z "$$packages" ] || \
		GOFLAGS='$(filter-out -trimpath,$(GOFLAGS))' CGO_ENABLED=$(if $(RACE),1,0) go test -json -timeout 10m -p 4 -parallel 8 -skip '$(LONG)' $(RACE) $$packages; \
		$(if $(filter ./...,$(PACKAGES)),.ci/official;) \
		if go list $(PACKAGES) | grep -qx '$(RUNS)'; then CGO_ENABLED=0 go test -json -timeout 10m -parallel 6 -skip '$(LONG)' $(RUNS); fi; \
	} | awk -f .ci/summary.awk

.PHONY: long
long: ## run the tests that make test leaves out because they take minutes
	@set -o pipefail; CGO_ENABLED=0 go test -json -timeout 10m -p 4 -parallel 6 -run '$(LONG)' $(RUNS) ./chaos/cutfs/... ./reference/queue/... | awk -f .ci/summary.awk

.PHONY: perf
perf: ## run the benchmarks of the code, and of the generator against the clock, vegeta and, if installed, k6 (10 min)
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -timeout 30m $(PACKAGES)

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (30s, or 1000x for so many inputs)
	@.ci/fuzz $(FUZZTIME) $(PACKAGES)

.PHONY: lint
lint: ## check format, vet and golangci-lint
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "not formatted; run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	$(GOLANGCI) run ./...
	cd $(OFFICIAL) && go vet ./... && $(GOLANGCI) run ./...

.PHONY: clean
clean: ## remove what was built; the runs under reports/runs stay
	rm -rf bin
