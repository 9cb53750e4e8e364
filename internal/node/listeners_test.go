package node_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/node"
	"github.com/daybook-data/daybook/internal/services"
)

// An address that is taken ends a server before it has changed anything: it has not asked to be let into the cluster, and
// has no folder.
func TestATakenAddressChangesNothing(t *testing.T) {
	t.Parallel()
	l := lookAfter(t, 1)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for flag, take := range map[string]func(*node.ServerOptions, string){
		"--kafka":        func(o *node.ServerOptions, address string) { o.Kafka = address },
		"--http":         func(o *node.ServerOptions, address string) { o.HTTP = address },
		"cluster.listen": func(o *node.ServerOptions, address string) { o.Cluster.Listen = address },
	} {
		o := node.ServerOptions{
			Dir: filepath.Join(t.TempDir(), "data"), Kafka: services.AddressForTest(t), Log: slog.New(slog.DiscardHandler),
			Cluster: node.ClusterConfig{Listen: services.AddressForTest(t), Join: []string{l.servers[0].cluster}},
		}
		take(&o, taken.Addr().String())
		if err := node.Serve(t.Context(), o); !errors.Is(err, node.ErrEnvironment) || !strings.Contains(err.Error(), flag) {
			t.Errorf("with the address of %s taken the server said %v", flag, err)
		}
		if _, err := os.Stat(o.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("with the address of %s taken the folder is there (%v)", flag, err)
		}
	}
	if got := len(l.status().Members); got != 1 {
		t.Errorf("the cluster has %d members", got)
	}
}
