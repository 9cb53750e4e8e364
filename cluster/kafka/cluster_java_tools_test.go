package kafka_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/daybook-data/daybook/internal/retry"
	"github.com/daybook-data/daybook/internal/services"
)

// verifiable is a VerifiableConsumer that runs, in the group "verifiable".
type verifiable struct {
	t     *testing.T
	topic string
	cmd   *exec.Cmd
	out   bytes.Buffer // its events; read when it has ended
}

func consumeVerifiably(t *testing.T, seeds, topic string) *verifiable {
	t.Helper()
	cmd, err := services.KafkaTool(t.Context(), "org.apache.kafka.tools.VerifiableConsumer", "--bootstrap-server", seeds, "--topic", topic,
		"--group-id", "verifiable", "--reset-policy", "earliest")
	if err != nil {
		t.Fatal(err)
	}
	v := &verifiable{t: t, topic: topic, cmd: cmd}
	cmd.Stdout = &v.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return v
}

// check waits until the consumer has committed all that there is, ends it, and wants each
// record in its events; some may stand there twice.
func (v *verifiable) check(adm *kadm.Client) {
	t := v.t
	t.Helper()
	ends, err := adm.ListEndOffsets(t.Context(), v.topic)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the verifiable consumer has it all", func() error {
		committed, err := adm.FetchOffsets(t.Context(), "verifiable")
		if err != nil {
			return err
		}
		var behind error
		ends.Each(func(end kadm.ListedOffset) {
			if o, ok := committed.Lookup(end.Topic, end.Partition); end.Offset > 0 && (!ok || o.At < end.Offset) {
				behind = fmt.Errorf("partition %d: %d of %d", end.Partition, o.At, end.Offset)
			}
		})
		return behind
	})
	if err := v.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = v.cmd.Wait() // it ends with the signal's code
	seen := map[int32][]bool{}
	ends.Each(func(o kadm.ListedOffset) { seen[o.Partition] = make([]bool, o.Offset) })
	for line := range bytes.Lines(v.out.Bytes()) {
		var event struct {
			Name       string
			Partitions []struct {
				Partition                   int32
				Count, MinOffset, MaxOffset int64
			}
		}
		if json.Unmarshal(line, &event) != nil || event.Name != "records_consumed" {
			continue
		}
		for _, p := range event.Partitions {
			if p.Count != p.MaxOffset-p.MinOffset+1 {
				t.Errorf("it got %d records from %d to %d of partition %d", p.Count, p.MinOffset, p.MaxOffset, p.Partition)
			}
			for o := p.MinOffset; o <= p.MaxOffset; o++ {
				seen[p.Partition][o] = true
			}
		}
	}
	for p, all := range seen {
		for o, got := range all {
			if !got {
				t.Fatalf("it did not get offset %d of partition %d", o, p)
			}
		}
	}
}

// produceLines has the console producer send the numbers below n, as somebody types them.
func produceLines(t *testing.T, seeds, topic string, n int, settings string) {
	typed, typing := io.Pipe()
	go func() {
		for i := range n {
			if i%500 == 0 {
				retry.Pause(t.Context(), time.Second)
			}
			if _, err := fmt.Fprintln(typing, i); err != nil {
				return // the tool has ended, which is told
			}
		}
		_ = typing.Close() // a pipe's has no errors
	}()
	defer typed.Close()
	out := toolOn(t, typed, "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", seeds, "--topic", topic, "--command-config", settings)
	if strings.Contains(out, "ERROR") {
		t.Errorf("the console producer says\n%.2000s", out)
	}
}
