# Daybook. `make help` lists what there is.
GO      ?= go
BIN     := bin/daybook
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# One static binary: no C, no dependence on the machine's libraries.
export CGO_ENABLED := 0

.PHONY: help build setup demo test nightly lint generate bench bench-journal bench-cluster clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## one static binary: bin/daybook
	$(GO) build -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN) ./cmd/daybook

setup: ## fetch the real servers that demo and tests run (MySQL, MariaDB, Redis, nginx, Elasticsearch, Kafka, NATS)
	$(GO) run ./internal/services/setup

demo: build ## the main job, end to end, on real servers; nothing of yours is touched
	$(GO) run ./internal/demo -binary $(BIN)

test: lint setup ## lint, then every test, on real servers
	$(GO) test -count=1 -timeout 20m ./...

nightly: setup ## every test raced and with twenty times the seeds, then every fuzzer: a night; ARGS="'test ./storage'" for some of it
	.ci/nightly $(ARGS)

lint: ## gofmt, vet, staticcheck, stale generated files
	.ci/lint

generate: ## rewrite docs/config.md, configs/schema.json and configs/reference.yaml from the declarations
	$(GO) run ./internal/generate

bench: build ## records/s, MB/s and CPU-seconds per million: append, fetch, binlog to journal
	$(GO) run ./internal/services/setup mysql
	$(GO) run ./internal/bench

bench-journal: build ## the journal under eleven loads, beside Kafka and NATS JetStream; ARGS="-only json-1m" for one
	$(GO) run ./internal/services/setup kafka nats
	$(GO) run ./internal/bench -journal $(ARGS)

bench-cluster: build ## three nodes beside three Kafka brokers: records/s, latency, failover, idle; ARGS="-only cluster-killed" for one
	$(GO) run ./internal/services/setup kafka
	$(GO) run ./internal/bench -cluster $(ARGS)

clean: ## remove what build and demo made here
	rm -rf bin
