package services

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Names returns the names of all that can be installed, as Need takes them.
func Names() []string {
	return []string{"mysql", "mariadb", "redis", "nginx", "kcat", "python", "elasticsearch", "kafka", "nats"}
}

// Need installs the named services without starting anything. One that is there
// already takes some milliseconds. The error of a service that this machine
// can't have is an *Unavailable; the ones before it are installed.
func Need(ctx context.Context, names ...string) error {
	c, err := openCache()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := need(ctx, c, name); err != nil {
			return err
		}
	}
	return nil
}

func need(ctx context.Context, c cache, name string) (err error) {
	switch name {
	case "mysql":
		_, err = mysqlDebian().install(ctx, c)
	case "mariadb":
		_, err = mariaDebian().install(ctx, c)
	case "redis":
		_, err = redisDebian().install(ctx, c)
	case "nginx":
		_, err = nginxDebian().install(ctx, c)
	case "kcat":
		_, err = kcatDebian().install(ctx, c)
	case "python":
		_, err = pythonDebian().install(ctx, c)
	case "elasticsearch":
		_, err = elasticsearchServer().install(ctx, c)
	case "kafka":
		_, err = kafkaServer().install(ctx, c)
	case "nats":
		_, err = installNATS(ctx, c)
	default:
		err = fmt.Errorf("no service is named %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return err
}

func kcatDebian() debian {
	return debian{name: "kcat", suite: "bookworm", packages: []string{"kcat"}}
}

// Kcat installs kcat, the command-line client of Kafka, if needed and returns a
// command that runs it.
func Kcat(ctx context.Context, args ...string) (*exec.Cmd, error) {
	c, err := openCache()
	if err != nil {
		return nil, err
	}
	files, err := kcatDebian().install(ctx, c)
	if err != nil {
		return nil, err
	}
	return files.command(ctx, "usr/bin/kcat", args...)
}
