package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/daybook-data/daybook/internal/services"
	"github.com/daybook-data/daybook/internal/shop"
	"github.com/daybook-data/daybook/pipeline"
)

// killsOnBrokers is how often the worker dies in each test with a remote journal.
const killsOnBrokers = 6

func TestTheSamePipelineRunsOnApacheKafka(t *testing.T) {
	t.Parallel()
	kafka := services.KafkaForTest(t, services.Options{})
	runOnBrokers(t, kafka.Addr, 11)
}

func TestTheSamePipelineRunsOnADaybookServer(t *testing.T) {
	t.Parallel()
	runOnBrokers(t, startServer(t), 12)
}

// runOnBrokers runs the shop's pipeline on a journal in another process, with kills.
func runOnBrokers(t *testing.T, broker string, seed uint64) {
	dir := t.TempDir()
	s := openShop(t, shop.Options{NeedSearch: true, Seed: seed})
	file, _, err := s.WritePipeline(shop.PipelineOptions{
		Dir: dir, Journal: fmt.Sprintf("{brokers: [%q]}", broker), MaxOutOfOrder: "30s", Roll: "15s", Partitions: "2",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Database.Create(t.Context(), 500); err != nil {
		t.Fatal(err)
	}
	binary := shop.Binary{Path: binaryPath, Dir: dir}
	stopTraffic := startTraffic(t, s)
	rnd := rand.New(rand.NewPCG(seed, seed))
	for kill := range killsOnBrokers {
		w, err := binary.Run(file)
		if err != nil {
			t.Fatal(err)
		}
		waitForKill(t, s, w, rnd, kill)
		w.Kill()
	}
	admin := services.AddressForTest(t)
	w, err := binary.Run(file, "--http", admin)
	if err != nil {
		t.Fatal(err)
	}
	if err := stopTraffic(); err != nil {
		t.Fatalf("traffic: %v", w.Because(err))
	}
	// What transactions leave in the stream must not look like records that wait.
	err = shop.Until(t.Context(), 2*time.Minute, func(ctx context.Context) error { return stateSinksCaughtUp(ctx, binary, admin) })
	if err != nil {
		t.Fatal(w.Because(err))
	}
	compareAll(t, s, w, binary, file)
}

// startServer runs `daybook server` on free ports until the test ends, and returns its
// address for Kafka clients.
func startServer(t *testing.T) string {
	t.Helper()
	kafka, admin := services.AddressForTest(t), services.AddressForTest(t)
	cmd := exec.Command(binaryPath, "server", "--data", t.TempDir(), "--kafka", kafka, "--http", admin)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("stopping the server: %v", err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server's end: %v", err)
		}
	})
	err := shop.Until(t.Context(), 30*time.Second, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/ready", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("the server does not get ready: %v", err)
	}
	return kafka
}

// stateSinksCaughtUp returns an error unless status says that Elasticsearch and Redis have
// everything. (The archive's cursor moves when its files are closed.)
func stateSinksCaughtUp(ctx context.Context, binary shop.Binary, admin string) error {
	out, err := binary.Once(ctx, "status", "--http", admin, "--json")
	if err != nil {
		return err
	}
	var all []pipeline.Status
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return err
	}
	for _, s := range all[0].Sinks {
		if s.Kind != "file" && (s.Behind != 0 || s.State != pipeline.StateRunning || s.Records == 0) {
			return fmt.Errorf("sink %s is %s, %d behind after %d records", s.Name, s.State, s.Behind, s.Records)
		}
	}
	return nil
}
