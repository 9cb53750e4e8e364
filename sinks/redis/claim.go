package redis

import (
	"context"
	"errors"
	"strings"
)

// claim checks server and target before the first write of a run.
func (s *Sink) claim(ctx context.Context) error {
	if s.target.incarnation != "" {
		return nil
	}
	if err := s.inspect(ctx); err != nil {
		return err
	}
	if err := s.target.claim(ctx); err != nil {
		return s.failure("checking the target", err)
	}
	return nil
}

// inspect refuses a cluster and warns of a server that may drop keys by itself. A user
// without the right to ask goes on: a cluster will say MOVED.
func (s *Sink) inspect(ctx context.Context) error {
	text, err := s.client.Info(ctx).Result()
	if err != nil {
		if firstWord(err) == "NOPERM" {
			return nil
		}
		return s.failure("asking the server who it is", err)
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	if info["cluster_enabled"] == "1" {
		return clusterError(s.config.Addr, errors.New("the server is part of a cluster"))
	}
	if policy := info["maxmemory_policy"]; info["maxmemory"] != "0" && strings.HasPrefix(policy, "allkeys-") {
		s.env.Log.Warn("redis drops keys when memory is short: rows and their versions may vanish; use maxmemory-policy noeviction",
			"addr", s.config.Addr, "policy", policy)
	}
	return nil
}
