package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/daybook-data/daybook/internal/shop"
)

// stage holds the shop, the pipeline file and the worker between the acts.
type stage struct {
	binary shop.Binary
	dir    string
	shop   *shop.Shop
	file   string
	worker *shop.Worker
}

// openStage starts the servers and writes the pipeline file.
func openStage(ctx context.Context, binary, dir string) (*stage, error) {
	title("Real servers, in folders of their own; nothing of yours is touched")
	say("(the first time they are fetched: some minutes)")
	s, err := shop.Open(ctx, shop.Options{Seed: 1})
	if err != nil {
		return nil, err
	}
	say("MySQL %s, Redis %s, nginx %s", s.MySQL.Addr, s.Redis.Addr, s.Nginx.Addr)
	if s.Search != nil {
		say("Elasticsearch %s", s.Search.Addr)
	} else {
		say("LEFT OUT: %v", s.NoSearch)
	}
	file, text, err := s.WritePipeline(shop.PipelineOptions{Dir: dir, MaxOutOfOrder: "2s", Roll: "5s"})
	if err != nil {
		s.Close()
		return nil, err
	}
	title("One file describes the pipeline: %s", file)
	for line := range strings.Lines(text) {
		fmt.Print("   ", line)
	}
	return &stage{binary: shop.Binary{Path: binary, Dir: dir}, dir: dir, shop: s, file: file}, nil
}

func (s *stage) close() {
	if s.worker != nil {
		s.worker.Kill()
	}
	if err := s.shop.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "demo: ending the servers:", err)
	}
}

// start runs the pipeline until it is stopped or killed.
func (s *stage) start() (err error) {
	say("$ daybook run shop.yaml")
	s.worker, err = s.binary.Run(s.file)
	return err
}

// once runs a verb to its end and shows what it prints.
func (s *stage) once(ctx context.Context, args ...string) error {
	say("$ daybook %s", strings.ReplaceAll(strings.Join(args, " "), s.dir+"/", ""))
	out, err := s.binary.Once(ctx, append(args, "--log-level", "warn")...)
	for line := range strings.Lines(out) {
		fmt.Print("     ", line)
	}
	return err
}
