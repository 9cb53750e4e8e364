package services_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-data/daybook/internal/services"
)

func TestKafkaKeepsDataThroughCrash(t *testing.T) {
	a := services.KafkaForTest(t, services.Options{})
	b := shared.Kafka(t)
	for _, k := range []*services.Kafka{a, b} {
		if _, err := kadm.NewClient(kafkaClient(t, k.Addr)).CreateTopic(t.Context(), 1, 1, nil, "t"); err != nil {
			t.Fatal(err)
		}
	}
	lifecycle{
		a: a.Server, b: b.Server, close: a.Close,
		write: func(t *testing.T, addr string) {
			r := &kgo.Record{Topic: "t", Value: []byte("v")}
			if err := kafkaClient(t, addr).ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		},
		count: func(t *testing.T, addr string) int {
			ends, err := kadm.NewClient(kafkaClient(t, addr)).ListEndOffsets(t.Context(), "t")
			if err != nil {
				t.Fatal(err)
			}
			end, ok := ends.Lookup("t", 0)
			if !ok || end.Err != nil {
				t.Fatalf("end of the partition: %v, %v", ok, end.Err)
			}
			return int(end.Offset)
		},
	}.test(t)
}

func TestKcatReadsFromKafka(t *testing.T) {
	k := shared.Kafka(t)
	client := kafkaClient(t, k.Addr)
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, nil, "kcat"); err != nil {
		t.Fatal(err)
	}
	r := &kgo.Record{Topic: "kcat", Value: []byte("through kcat")}
	if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
	cmd, err := services.Kcat(t.Context(), "-b", k.Addr, "-C", "-t", "kcat", "-e", "-q")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "through kcat") {
		t.Errorf("kcat: %q, %v", out, err)
	}
}

func kafkaClient(t *testing.T, addr string) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
