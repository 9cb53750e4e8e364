package services

import (
	"context"
	"os/exec"
)

// pythonDebian is Python with kafka-python, a client of Kafka that shares no code with
// the others.
func pythonDebian() debian {
	return debian{name: "python", suite: "bookworm", packages: []string{"python3-kafka"}}
}

// Python installs Python with kafka-python if needed and returns a command that runs a
// program with it.
func Python(ctx context.Context, program string, args ...string) (*exec.Cmd, error) {
	c, err := openCache()
	if err != nil {
		return nil, err
	}
	files, err := pythonDebian().install(ctx, c)
	if err != nil {
		return nil, err
	}
	cmd, err := files.command(ctx, "usr/bin/python3.11", append([]string{"-c", program}, args...)...)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Environ(), "PYTHONHOME="+files.path("usr"), "PYTHONPATH="+files.path("usr", "lib", "python3", "dist-packages"))
	return cmd, nil
}
