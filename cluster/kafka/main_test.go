package kafka_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/kafka"
)

// childDir, in the environment, makes the test binary a server of that directory,
// to be killed by the test that started it; childAddr is where it listens.
const (
	childDir  = "DAYBOOK_TEST_CHILD_DIR"
	childAddr = "DAYBOOK_TEST_CHILD_ADDR"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := serveChild(dir, os.Getenv(childAddr)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveChild serves until it is killed.
func serveChild(dir, addr string) error {
	node, err := cluster.Open(cluster.Options{Dir: dir, SegmentBytes: 256 << 10})
	if err != nil {
		return err
	}
	server, err := kafka.New(kafka.Options{Node: node, AutoPartitions: 2})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println("serving")
	return server.Serve(context.Background(), l, kafka.Access{})
}
