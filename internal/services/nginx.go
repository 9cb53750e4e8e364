package services

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Nginx is a running nginx: a master and one worker.
type Nginx struct {
	*Server
}

// NginxOptions say what the server does. Options.Args are arguments of nginx.
type NginxOptions struct {
	Options
	// HTTP is put into the http block, where log_format belongs.
	HTTP string
	// Format is what follows the path in the access_log directive: the name of a
	// format, and parameters such as buffer=32k. Empty: combined.
	Format string
	// Server is put into the server block. Empty: every request is answered with
	// 200 and "ok".
	Server string
}

func nginxDebian() debian {
	return debian{name: "nginx", suite: "bookworm", packages: []string{"nginx-light"}}
}

// StartNginx installs nginx 1.22 if needed and starts one.
func StartNginx(ctx context.Context, o NginxOptions) (*Nginx, error) {
	if o.Variant != "" {
		return nil, fmt.Errorf("nginx has no variant %q", o.Variant)
	}
	c, err := openCache()
	if err != nil {
		return nil, err
	}
	files, err := nginxDebian().install(ctx, c)
	if err != nil {
		return nil, err
	}
	s, err := newServer(ctx, c, "nginx", o.Options)
	if err != nil {
		return nil, err
	}
	n := &Nginx{Server: s}
	config := filepath.Join(s.Dir, "nginx.conf")
	args := append([]string{"-p", s.Dir, "-c", config, "-e", "stderr"}, o.Args...)
	err = n.open(ctx, launch{
		name: "nginx",
		command: func(context.Context) (*exec.Cmd, error) {
			if err := os.WriteFile(config, []byte(n.config(o)), 0o644); err != nil {
				return nil, err
			}
			return files.command(context.Background(), "usr/sbin/nginx", args...)
		},
		ready: n.accepts,
		// The worker outlives a master that dies suddenly, so it is asked.
		death: syscall.SIGTERM,
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (n *Nginx) config(o NginxOptions) string {
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // the worker must reach files in a private directory
	}
	format := o.Format
	if format == "" {
		format = "combined"
	}
	server := o.Server
	if server == "" {
		server = `location / { return 200 "ok\n"; }`
	}
	return fmt.Sprintf(`daemon off;
%[1]s
worker_processes 1;
pid %[2]s/nginx.pid;
events { worker_connections 512; }
http {
	client_body_temp_path %[2]s/body;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	%[3]s
	access_log %[4]s %[5]s;
	server {
		listen %[6]s;
		%[7]s
	}
}
`, user, n.Dir, o.HTTP, n.AccessLog(), format, n.Addr, server)
}

// accepts connects without a request, which would be a line in the access log.
func (n *Nginx) accepts(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", n.Addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// URL returns the server's address as a URL without a slash at the end.
func (n *Nginx) URL() string { return "http://" + n.Addr }

// AccessLog returns the path of the access log.
func (n *Nginx) AccessLog() string { return filepath.Join(n.Dir, "access.log") }

// Reopen tells nginx to open its logs anew, as a rotation does after renaming
// them, and waits until the new access log is there. The worker may write to the
// renamed file for a moment longer.
func (n *Nginx) Reopen(ctx context.Context) error {
	if err := n.proc.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		return fmt.Errorf("telling nginx to reopen its logs: %w", err)
	}
	return poll(ctx, func() error {
		_, err := os.Stat(n.AccessLog())
		return err
	})
}
