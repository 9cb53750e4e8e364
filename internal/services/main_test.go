package services_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

// childEnv makes the test binary a process that starts a server and waits to be
// killed; see TestServersDieWithTheirProcess.
const childEnv = "SERVICES_TEST_CHILD"

// child is what such a process prints once the server answers.
type child struct {
	PID       int
	Addr, Dir string
}

var shared services.Pool

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		if err := beChild(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(shared.Run(m))
}

func beChild(name string) error {
	ctx := context.Background()
	var s *services.Server
	switch name {
	case "mysql":
		m, err := services.StartMySQL(ctx, services.Options{})
		if err != nil {
			return err
		}
		s = m.Server
	case "mariadb":
		m, err := services.StartMariaDB(ctx, services.Options{})
		if err != nil {
			return err
		}
		s = m.Server
	case "redis":
		r, err := services.StartRedis(ctx, services.Options{})
		if err != nil {
			return err
		}
		s = r.Server
	case "elasticsearch":
		e, err := services.StartElasticsearch(ctx, services.Options{})
		if err != nil {
			return err
		}
		s = e.Server
	case "nginx":
		n, err := services.StartNginx(ctx, services.NginxOptions{})
		if err != nil {
			return err
		}
		s = n.Server
	case "kafka":
		k, err := services.StartKafka(ctx, services.Options{})
		if err != nil {
			return err
		}
		s = k.Server
	case "nats":
		n, err := services.StartNATS(ctx, services.Options{})
		if err != nil {
			return err
		}
		s = n.Server
	default:
		return fmt.Errorf("no server named %q", name)
	}
	if err := json.NewEncoder(os.Stdout).Encode(child{PID: s.PID, Addr: s.Addr, Dir: s.Dir}); err != nil {
		return err
	}
	<-s.Done()
	return fmt.Errorf("%s ended", name)
}
