package services

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
)

// Redis is a running Redis that keeps every write it has answered, also when it
// is killed (append-only file).
type Redis struct {
	*Server

	files unpacked
}

func redisDebian() debian {
	return debian{name: "redis", suite: "bookworm", packages: []string{"redis-server"}}
}

// StartRedis installs Redis 7 if needed and starts a server. Options.Args are
// arguments of redis-server, such as "--maxmemory", "1mb".
func StartRedis(ctx context.Context, o Options) (*Redis, error) {
	if o.Variant != "" {
		return nil, fmt.Errorf("redis has no variant %q", o.Variant)
	}
	c, err := openCache()
	if err != nil {
		return nil, err
	}
	files, err := redisDebian().install(ctx, c)
	if err != nil {
		return nil, err
	}
	s, err := newServer(ctx, c, "redis", o)
	if err != nil {
		return nil, err
	}
	r := &Redis{Server: s, files: files}
	args := append([]string{
		"--bind", "127.0.0.1", "--port", strconv.Itoa(s.port.port), "--dir", s.Dir, "--daemonize", "no",
		"--save", "", "--appendonly", "yes", "--appendfsync", "no",
	}, o.Args...)
	err = r.open(ctx, launch{
		name: "redis",
		command: func(context.Context) (*exec.Cmd, error) {
			return files.command(context.Background(), "usr/bin/redis-server", args...)
		},
		ready: r.ping,
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// ping is answered with PONG, or with an error while the data is being loaded or
// when a password was asked for in Options.Args.
func (r *Redis) ping(ctx context.Context) error {
	answer, err := firstLine(ctx, r.Addr, "PING\r\n")
	if err != nil {
		return err
	}
	if answer != "+PONG\r\n" && answer != "-NOAUTH Authentication required.\r\n" {
		return fmt.Errorf("redis answers %q", answer)
	}
	return nil
}

// Command returns a redis-cli that talks to this server.
func (r *Redis) Command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	host, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		return nil, err
	}
	return r.files.command(ctx, "usr/bin/redis-cli", append([]string{"-h", host, "-p", port}, args...)...)
}
