package kafka_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/daybook-data/daybook/internal/services"
)

// kcat runs the command-line client of librdkafka against the broker.
func kcat(t *testing.T, b *broker, input string, args ...string) string {
	t.Helper()
	cmd, err := services.Kcat(t.Context(), append([]string{"-b", b.addr}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kcat %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// librdkafka sends uncompressed, without a word, if it does not like what
// the broker offers.
func TestKcatSendsCompressedAndReadsBack(t *testing.T) {
	b := newBroker(t, false)
	var lines strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&lines, "line %d of many that are all alike\n", i)
	}
	for i, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		b.topic(codec, 1, nil)
		kcat(t, b, lines.String(), "-P", "-t", codec, "-z", codec, "-X", "linger.ms=1000") // one batch: a single line does not get smaller, and is sent plain
		if got := kcat(t, b, "", "-C", "-t", codec, "-e", "-q"); got != lines.String() {
			t.Errorf("%s: %d bytes came back, want %d", codec, len(got), lines.Len())
		}
		if stored := rawBatches(t, b, codec, 0); int(stored[22]&7) != i {
			t.Errorf("%s: stored with compression %d, want %d", codec, stored[22]&7, i)
		}
	}
}

func TestKcatProducesIdempotentlyAndConsumesInAGroup(t *testing.T) {
	b := newBroker(t, false)
	b.topic("t", 3, nil)
	var lines strings.Builder
	for i := range 300 {
		fmt.Fprintf(&lines, "%d\n", i)
	}
	kcat(t, b, lines.String(), "-P", "-t", "t", "-X", "enable.idempotence=true", "-X", "acks=all")
	group := []string{"-G", "g", "-c", "300", "-q", "-X", "auto.offset.reset=earliest", "t"}
	if got := strings.Count(kcat(t, b, "", group...), "\n"); got != 300 {
		t.Errorf("the group read %d lines, want 300", got)
	}
	kcat(t, b, "more\n", "-P", "-t", "t")
	group[3] = "1"
	if got := kcat(t, b, "", group...); got != "more\n" {
		t.Errorf("the group went on with %q, want what it had not read", got)
	}
}

func TestKcatFindsOffsetsByTimeAndTheEnd(t *testing.T) {
	b := newBroker(t, false)
	b.topic("t", 1, nil)
	kcat(t, b, "a\nb\n", "-P", "-t", "t")
	for at, want := range map[string]string{"-1": "offset 2", "-2": "offset 0", "1": "offset 0"} {
		if got := kcat(t, b, "", "-Q", "-t", "t:0:"+at); !strings.Contains(got, want) {
			t.Errorf("time %s is at %q, want %s", at, got, want)
		}
	}
	if got := kcat(t, b, "", "-L"); !strings.Contains(got, `topic "t" with 1 partitions`) {
		t.Errorf("listing is %q", got)
	}
	if got := kcat(t, b, "", "-C", "-t", "t", "-o", "-1", "-e", "-q"); got != "b\n" {
		t.Errorf("the last record is %q, want b", got)
	}
}
